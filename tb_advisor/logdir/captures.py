"""Finds profiler captures: XPlane sessions below ``plugins/profile`` and the traces that PyTorch's profiler writes into run directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Capture:
    """One profiling session. `name` is ``<run>/<session>``, as in TensorBoard's Profile tab; a session has one file a host."""

    name: str
    run: str
    files: tuple[Path, ...]


def find_captures(run: str, directory: Path, names: list[str]) -> list[Capture]:
    """The captures whose files are `names` in `directory`, the directory of the run `run` or a session directory below it."""
    found = []
    planes = tuple(directory / name for name in names if name.endswith(".xplane.pb"))
    if planes:
        found.append(Capture(_capture_name(run, directory.name), run, planes))
    for name in names:
        if name.endswith((".pt.trace.json", ".pt.trace.json.gz")):
            found.append(Capture(_capture_name(run, name.split(".pt.trace.json")[0]), run, (directory / name,)))
    return found


def _capture_name(run: str, session: str) -> str:
    return session if run == "." else f"{run}/{session}"
