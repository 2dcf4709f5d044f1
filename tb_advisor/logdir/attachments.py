"""What lies beside event files and is read only when a rule asks for it: dumps of TensorFlow's debugger, and projector configs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DUMP, PROJECTOR = "dump", "projector"
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
    return found
