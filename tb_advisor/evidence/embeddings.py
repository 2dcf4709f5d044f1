"""The embeddings that a log shows in the Projector, where their vectors are files: TSV, or raw float32 with a shape in the config."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tb_advisor.logdir.attachments import PROJECTOR
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing

LARGEST_CONFIG = 1 << 20
# Of each tensor so much is read, and so many vectors are looked at: for the spread of a cloud a few thousand are enough.
LARGEST_READ = 32 << 20
MOST_VECTORS, MOST_TENSORS = 4096, 16
WIDEST = 4096


@dataclass(frozen=True, eq=False)
class Embedding:
    """Vectors of one tensor, shape ``(n, d)``, all of them finite; `directory` is where its config lies."""

    name: str
    directory: str
    vectors: NDArray[np.float64]


def embeddings(job: Job) -> tuple[Embedding, ...]:
    """The embeddings that can be read. Raises `Missing` where there is none."""
    found = []
    configs = [attached for attached in job.attachments if attached.kind == PROJECTOR]
    if not configs:
        raise Missing("no embeddings (looked for projector_config.pbtxt)")
    for attached in configs:
        for name, path, shape in _tensors(attached.files[0])[:MOST_TENSORS]:
            vectors = _read(attached.files[0].parent, path, shape)
            if vectors is not None:
                found.append(Embedding(name, attached.directory, vectors))
    if not found:
        raise Missing("the projector config names no file of vectors that can be read (vectors in checkpoints are not)")
    return tuple(found)


def _tensors(config: Path) -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, path and shape of the tensors that a projector config lists."""
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    try:
        with config.open("rb") as stream:
            text = stream.read(LARGEST_CONFIG).decode("utf-8")
        parsed = text_format.Parse(text, ProjectorConfig())
    except (OSError, UnicodeDecodeError, text_format.ParseError, RecursionError):
        return []
    return [(e.tensor_name or e.tensor_path, e.tensor_path, tuple(e.tensor_shape)) for e in parsed.embeddings if e.tensor_path]


def _read(directory: Path, name: str, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    """The vectors in a file, which must lie below its config; None where there are none."""
    try:
        path = (directory / name).resolve()
        if not path.is_relative_to(directory.resolve()) or not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as stream:
            data = stream.read(LARGEST_READ)
    except (OSError, ValueError):
        return None
    vectors = _from_text(data)
    if vectors is None:
        vectors = _from_bytes(data, shape)
    if vectors is None:
        return None
    vectors = vectors[np.isfinite(vectors).all(axis=1) & (np.abs(vectors) < 1e30).all(axis=1)]
    return vectors if len(vectors) else None


def _from_bytes(data: bytes, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    if len(shape) != 2 or not 0 < shape[1] <= WIDEST:
        return None
    rows = min(len(data) // (4 * shape[1]), max(0, shape[0]))
    whole = np.frombuffer(data[: 4 * rows * shape[1]], "<f4").reshape(rows, shape[1])
    return whole[:: max(1, -(-rows // MOST_VECTORS))].astype(np.float64)


def _from_text(data: bytes) -> NDArray[np.float64] | None:
    lines = data.split(b"\n")
    lines = lines[:-1] if len(data) == LARGEST_READ else lines
    lines = [line for line in lines if line.strip()]
    chosen = lines[:: max(1, -(-len(lines) // MOST_VECTORS))]
    if not chosen:
        return None
    width = chosen[0].count(b"\t") + 1
    rows = []
    for line in chosen:
        parts = line.split(b"\t")
        if width > WIDEST or len(parts) != width:
            return None
        try:
            rows.append([float(part) for part in parts])
        except ValueError:
            return None
    return np.array(rows, np.float64)
