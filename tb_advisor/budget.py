"""How much memory a log directory may take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tb_advisor.logdir.jobs import JobFiles
from tb_advisor.logdir.reading import memory_needed

_UNKNOWN_MACHINE = 8 << 30
# A point takes 45 to 100 bytes of an event file and 12 to 24 of memory, a bucket of a histogram 24 of both. Blobs stay in the file.
_BYTES_IN_FILE = 3


def default_budget() -> int:
    """A quarter of the machine's memory, or of what a container may have of it, in bytes."""
    sizes = []
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):  # "max" where there is no limit
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return min(sizes, default=_UNKNOWN_MACHINE) // 4


def memory_for(files: JobFiles, budget: int) -> int:
    """The most that reading a job is expected to take, in bytes: its points, and the largest capture that is read within the `budget`."""
    needs = (memory_needed(path) for capture in files.captures for path in capture.files)
    return event_bytes(files) // _BYTES_IN_FILE + max((need for need in needs if need <= budget), default=0)


def event_bytes(files: JobFiles) -> int:
    """Size of the job's event files; captures are not kept in memory."""
    return sum(size for run in files.runs for size, _, _ in run.fingerprints)


def share_to_keep(found: Sequence[JobFiles], budget: int) -> float | None:
    """How many bytes of curves may be kept for each byte of event files. None where everything can be kept."""
    total = sum(event_bytes(files) for files in found)
    return None if total // _BYTES_IN_FILE <= budget else budget / total
