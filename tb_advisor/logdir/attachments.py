"""What lies beside event files and is read only when a rule asks for it: dumps of TensorFlow's debugger, projector configs, and
checkpoints, of which only the names matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DUMP, PROJECTOR, CHECKPOINT = "dump", "projector", "checkpoint"
# A file (or, with Hugging Face and Orbax, a directory) that holds a model and says its step or epoch: ckpt-1200.index,
# epoch=3-step=1200.ckpt, weights.10.keras, model_1200.pt, checkpoint-1200/.
CHECKPOINT_FILE = re.compile(r".*\d.*\.(index|ckpt|pt|pth|h5|keras|safetensors|msgpack)", re.IGNORECASE)
CHECKPOINT_DIRECTORY = re.compile(r"(checkpoint|ckpt|global_step|step)[-_]?\d+", re.IGNORECASE)
PROJECTOR_CONFIG = "projector_config.pbtxt"
_DUMP_PREFIX = "tfdbg_events."
# The files of a dump whose names are told apart by these endings: tensorflow/core/util/debug_events_writer.h.
DUMP_ENDINGS = (".metadata", ".execution", ".graph_execution_traces", ".graphs", ".stack_frames", ".source_files")


@dataclass(frozen=True)
class Attachment:
    """Files of one `kind` that belong together, in a `directory` named as TensorBoard names runs."""

    kind: str
    directory: str
    files: tuple[Path, ...]


def find_attachments(name: str, directory: Path, names: list[str]) -> list[Attachment]:
    """Those among the files `names` in `directory`, which is called `name`; opens none of them."""
    found = []
    present = frozenset(names)
    for metadata in names:
        if metadata.startswith(_DUMP_PREFIX) and metadata.endswith(DUMP_ENDINGS[0]):
            dump = metadata.removesuffix(DUMP_ENDINGS[0])
            files = tuple(directory / f"{dump}{ending}" for ending in DUMP_ENDINGS if f"{dump}{ending}" in present)
            found.append(Attachment(DUMP, name, files))
    if PROJECTOR_CONFIG in present:
        found.append(Attachment(PROJECTOR, name, (directory / PROJECTOR_CONFIG,)))
    if names and CHECKPOINT_DIRECTORY.fullmatch(directory.name):
        return [*found, Attachment(CHECKPOINT, name, (directory,))]
    checkpoints = tuple(directory / file for file in names if CHECKPOINT_FILE.fullmatch(file))
    return [*found, Attachment(CHECKPOINT, name, checkpoints)] if checkpoints else found
