"""Reads a file of a capture, by its name: a small one here, a large one in a process of its own, with a limit of memory and time.

Nothing is ever written beside a capture.
"""

from __future__ import annotations

import os
import pickle
import threading
from contextlib import suppress
from pathlib import Path

from tb_advisor.logdir.captures import XPLANE
from tb_advisor.logdir.trace import Trace, UnreadableTrace
from tb_advisor.message import Message
from tb_advisor.process import can_start, questions_and_answers, start

# Measured: an XSpace of 105 MB (6.0 million events) takes 290 MB, a Chrome trace of 84 MB (300,000 events) 160 MB. Twice that is safe.
_MEMORY_A_BYTE = 6
# protobuf's own limit for one message.
_LARGEST_FILE = 2 << 30
# Below this, starting a process (0.2 s) takes longer than reading.
_LARGE = 32 << 20
# Measured: 0.6 s for 100 MB of XSpace, 2 s for 100 MB of JSON; a busy machine takes several times as long.
_SECONDS, _SECONDS_A_BYTE = 30.0, 1e-6


def read_trace(path: Path, memory_bytes: int | None = None) -> Trace:
    """Read one file, whatever its format. Raises `UnreadableTrace` where it cannot be read, or would take more than `memory_bytes`."""
    largest = _LARGEST_FILE if memory_bytes is None else min(_LARGEST_FILE, max(0, memory_bytes // _MEMORY_A_BYTE))
    size = _unpacked_size(path)
    if size > _LARGEST_FILE:
        raise UnreadableTrace(
            Message("{file} is larger ({size:bytes}) than what is read ({limit:bytes})", file=path.name, size=size, limit=_LARGEST_FILE),
            broken=False,
        )
    if size > largest:
        template = "{file} would take about {need:bytes} of memory to read, of {room:bytes} that may be taken"
        room = max(0, memory_bytes or 0)
        raise UnreadableTrace(Message(template, file=path.name, need=_MEMORY_A_BYTE * size, room=room), broken=False)
    if size < _LARGE or not can_start():
        return _read(path, largest)
    return _read_apart(path, largest, _MEMORY_A_BYTE * size, _SECONDS + _SECONDS_A_BYTE * size)


def memory_needed(path: Path) -> int:
    """How much memory reading the file is expected to take, in bytes."""
    return _MEMORY_A_BYTE * _unpacked_size(path)


def _unpacked_size(path: Path) -> int:
    """Size of the file; of a packed one what its end says of it. 0 where it is gone."""
    try:
        size = path.stat().st_size
        if not path.name.endswith(".gz") or size < 4:
            return size
        with path.open("rb") as stream:
            stream.seek(-4, os.SEEK_END)
            return max(size, int.from_bytes(stream.read(4), "little"))
    except OSError:
        return 0


def _read(path: Path, largest: int) -> Trace:
    if path.name.endswith(XPLANE):
        from tb_advisor.logdir.xplane import read_xplane

        return read_xplane(path)
    if path.name.endswith((".json", ".json.gz")) and not path.name.endswith((".pod_viewer.json", ".memory_profile.json.gz")):
        from tb_advisor.logdir.chrome_trace import read_chrome_trace

        return read_chrome_trace(path, largest)
    from tb_advisor.logdir.old_profile import read_old_profile

    return read_old_profile(path, largest)


def _read_apart(path: Path, largest: int, memory_bytes: int, seconds: float) -> Trace:
    """Read a file in a process that may take so much memory and time. Here only what it found is in memory."""
    process = start("tb_advisor.logdir.reading", "work")
    if process is None:
        return _read(path, largest)
    assert process.stdin and process.stdout
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    answer: object = None
    is_late = False
    with suppress(OSError), process:  # closing a broken pipe fails
        try:
            with suppress(OSError, EOFError, pickle.PickleError):
                pickle.dump((path, largest, memory_bytes), process.stdin)
                process.stdin.flush()
                answer = pickle.load(process.stdout)
        finally:
            is_late = timer.finished.is_set()
            timer.cancel()
            process.kill()
    if isinstance(answer, UnreadableTrace):
        raise answer
    if not isinstance(answer, Trace):
        template = "{file} cannot be read within {seconds:duration}" if is_late else "the process that read {file} died"
        raise UnreadableTrace(Message(template, file=path.name, seconds=seconds), broken=False)
    return answer


def work() -> None:
    """What such a process does: answers with the trace, or why it cannot be read."""
    questions, answers = questions_and_answers()
    path, largest, memory_bytes = pickle.load(questions)
    answer: Trace | UnreadableTrace
    try:
        import tb_advisor.logdir.chrome_trace
        import tb_advisor.logdir.xplane  # noqa: F401

        _limit_memory(memory_bytes)
        answer = _read(path, largest)
    except UnreadableTrace as error:
        answer = error
    except MemoryError:
        template = "{file} takes more memory to read than {limit:bytes}"
        answer = UnreadableTrace(Message(template, file=path.name, limit=memory_bytes), broken=False)
    with suppress(BrokenPipeError):  # who asked is gone
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _limit_memory(more: int) -> None:
    """Let this process take so many bytes beyond what it has, where the system can limit that."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        has = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (has + more, hard))
