"""What lies beside event files and is read only when a rule asks for it: dumps of TensorFlow's debugger, projector configs, and
checkpoints, of which only the names matter.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

DUMP, PROJECTOR, CHECKPOINT = "dump", "projector", "checkpoint"
PROJECTOR_CONFIG = "projector_config.pbtxt"
# The files of a dump whose names are told apart by these endings: tensorflow/core/util/debug_events_writer.h.
DUMP_ENDINGS = (".metadata", ".execution", ".graph_execution_traces", ".graphs", ".stack_frames", ".source_files")
# A file (or, with Hugging Face and Orbax, a directory) that holds a model and says its step or epoch: ckpt-1200.index,
# epoch=3-step=1200.ckpt, weights.10.keras, model_1200.pt, checkpoint-1200/.
_CHECKPOINT_ENDINGS = (".index", ".ckpt", ".pt", ".pth", ".h5", ".keras", ".safetensors", ".msgpack")
_ENDINGS = (DUMP_ENDINGS[0], PROJECTOR_CONFIG, *_CHECKPOINT_ENDINGS)
CHECKPOINT_DIRECTORY = re.compile(r"(checkpoint|ckpt|global_step|step)[-_]?\d+", re.IGNORECASE)
_DUMP_PREFIX = "tfdbg_events."


@dataclass(frozen=True)
class Attachment:
    """Files of one `kind` that belong together, in a `directory` named as TensorBoard names runs."""

    kind: str
    directory: str
    files: tuple[Path, ...]


def find_attachments(name: str, directory: str, names: list[str]) -> list[Attachment]:
    """Those among the files `names` in `directory`, which is called `name`; opens none of them."""
    named = [file for file in names if file.endswith(_ENDINGS)]
    if not named and not directory[-1:].isdecimal():  # most directories
        return []
    found = []
    checkpoints = []
    for file in named:
        if file.startswith(_DUMP_PREFIX) and file.endswith(DUMP_ENDINGS[0]):
            dump = file.removesuffix(DUMP_ENDINGS[0])
            files = tuple(Path(directory, f"{dump}{ending}") for ending in DUMP_ENDINGS if f"{dump}{ending}" in names)
            found.append(Attachment(DUMP, name, files))
        elif file == PROJECTOR_CONFIG:
            found.append(Attachment(PROJECTOR, name, (Path(directory, file),)))
        elif file.endswith(_CHECKPOINT_ENDINGS) and any(map(str.isdecimal, file)):
            checkpoints.append(Path(directory, file))
    if names and CHECKPOINT_DIRECTORY.fullmatch(os.path.basename(directory)):
        checkpoints = [Path(directory)]
    if checkpoints:
        found.append(Attachment(CHECKPOINT, name, tuple(checkpoints)))
    return sorted(found, key=lambda attachment: attachment.kind)
