"""Memory over time: from logged scalars, and from allocator events of a profiler capture."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tb_advisor.evidence.intervals import Floats
from tb_advisor.evidence.roles import Roles, words
from tb_advisor.evidence.trace_steps import MarkedSteps
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.chrome_trace import MEMORY
from tb_advisor.logdir.jobs import Job
from tb_advisor.logdir.trace import Indices, Line, Trace
from tb_advisor.message import Missing
from tb_advisor.series import Series

_EVENTS = frozenset({"MemoryAllocation", "MemoryDeallocation"})
_PERCENT_WORDS = frozenset({"percent", "pct", "percentage"})
# Of what an allocator did, not of bytes: ``num_ooms``, ``mem-allocated-count``.
_COUNT_WORDS = frozenset({"num", "count", "retries", "ooms"})
# Words of memory that lies on an accelerator, and the sizes of units.
DEVICE_WORDS = frozenset({"gpu", "gpus", "vram", "cuda", "device", "hbm"})
UNIT_BYTES = {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "MiB": 2.0**20, "GB": 1e9, "GiB": 2.0**30}
_UNITS = {"bytes": "bytes", "mb": "MB", "mib": "MiB", "gb": "GB", "gib": "GiB", "kb": "kB"}
# c10/core/DeviceType.h; ROCm builds report 1 as well as 6.
_DEVICE_TYPES = {0: "CPU", 1: "GPU", 6: "GPU"}


@dataclass(frozen=True)
class Fullest:
    """The moment at which an allocator had most in use.

    `time_ms` counts from the beginning of the trace. `op` is what made most of the usage of that step, and `requested` what it asked for;
    where the trace does not tell, they are empty and None. `held` are the bytes that it had taken from the device, what it only kept for
    later included. `fragmentation` is 0-1: the share of the free bytes that lie outside the largest free piece or, of an allocator that
    takes memory piece by piece, the share of `held` that is not in use; None where it is not known. `step` is None where it was in no
    whole step.
    """

    used: float
    time_ms: float
    held: float
    step: int | None
    op: str
    requested: float | None
    fragmentation: float | None


@dataclass(frozen=True, eq=False)
class AllocatorMemory:
    """Bytes in use of one allocator over one trace.

    `times_ms` (from the beginning of the trace) and `bytes` have shape ``(n,)`` and give the usage after each event; `capacity` is in
    bytes, None where it is not known. `steps` are the numbers of the whole steps in which it did something, `peaks` the highest usage in
    each of them, at `peaks_ms`, and `floors` the lowest, all of shape ``(s,)``; `ops` names the op that made each peak, empty where the
    trace does not tell.
    """

    capture: Capture
    host: str
    allocator: str
    times_ms: Floats
    bytes: Floats
    capacity: float | None
    steps: tuple[int, ...]
    peaks: Floats
    peaks_ms: Floats
    floors: Floats
    ops: tuple[str, ...]
    fullest: Fullest


def logged_memory(roles: Roles) -> tuple[Series, ...]:
    """Every memory scalar of the job, without counts of what an allocator did; empty where none is logged."""
    return tuple(a.series.surviving for a in roles.of("memory") if _COUNT_WORDS.isdisjoint(a.words))


def allocation_retries(job: Job) -> tuple[Series, ...]:
    """How often PyTorch's allocator gave its cache back because a request failed: ``num_alloc_retries``."""
    return tuple(series.surviving for series in job.scalars if {"alloc", "retries"} <= set(words(series.tag)))


def no_memory(logged: tuple[Series, ...], allocators: tuple[AllocatorMemory, ...], points: int, steps: int) -> Missing:
    """Why memory cannot be judged where `points` of a scalar or `steps` of a capture are needed."""
    if allocators:
        longest = max(allocators, key=lambda memory: len(memory.steps))
        template = "the allocator events of {name} cover {count} whole steps; {least} are needed"
        return Missing(template, name=longest.capture.name, count=len(longest.steps), least=steps)
    if logged:
        most = max(logged, key=lambda memory: len(memory.finite))
        template = "the memory scalar {tag} has {count} finite points; {least} are needed"
        return Missing(template, tag=most.tag, count=len(most.finite), least=points)
    return Missing(
        "neither a memory scalar (looked for the words memory, mem, rss, ram, vram, and allocated or reserved with a unit) nor allocator "
        "events in a profiler capture; a capture of a CPU holds no allocator events, except PyTorch's with profile_memory=True"
    )


def learning_curve(roles: Roles) -> Series | None:
    """The training loss with most points, whose steps are those of the training; None where no loss is logged."""
    found = max(roles.of("loss", evaluation=False), key=lambda a: len(a.series), default=None)
    return found.series.surviving if found else None


def unit_of(tag: str) -> str:
    """The unit that the tag of a memory scalar names, empty where it names none: bytes, MB, %."""
    named = words(tag)
    if "%" in tag or not _PERCENT_WORDS.isdisjoint(word.rstrip("0123456789") for word in named):
        return "%"
    return next((_UNITS[word] for word in named if word in _UNITS), "")


def allocator_memory(marked_steps: tuple[MarkedSteps, ...]) -> tuple[AllocatorMemory, ...]:
    """The usage of every allocator in every trace. Empty where no trace has allocator events: captures of a CPU have none."""
    found = []
    for steps in marked_steps:
        read = _of_kineto if steps.trace.format == "kineto" else _of_xplane
        for allocator, usage in sorted(read(steps.trace).items()):
            found.append(_by_step(steps, allocator, usage))
    return tuple(found)


@dataclass(eq=False)
class _Usage:
    """Events of one allocator, thread by thread, and where each came from: times, bytes in use after it (or changes, where `sums` is set),
    held and free then, the fragmentation that the allocator gives, and the bytes that were asked for.
    """

    lines: list[tuple[Line, Indices]] = field(default_factory=list)
    columns: dict[str, list[Floats]] = field(default_factory=lambda: defaultdict(list))
    capacity: float | None = None
    sums: bool = False

    def add(self, line: Line, events: list[int], **columns: Mapping[int, float]) -> None:
        """Events of one thread; what is not known of one is NaN."""
        self.lines.append((line, np.array(events, np.int64)))
        self.columns["times"].append(line.start_ms[events])
        for name, column in columns.items():
            self.columns[name].append(np.array([column.get(i, np.nan) for i in events]))


def _of_xplane(trace: Trace) -> dict[str, _Usage]:
    """Usage is stack (`bytes_reserved`) and heap (`bytes_allocated`) together; a TPU tells its cores apart by number, not by name."""
    found: dict[str, _Usage] = defaultdict(_Usage)
    for line in trace.host_lines:
        at = np.flatnonzero(line.where(lambda name: name in _EVENTS))
        if not len(at):
            continue
        allocators = _texts(line, "allocator_name")
        cores = {**_numbers(line, "device_ordinal"), **_numbers(line, "index_on_host")}
        heap, stack, free = (_numbers(line, name) for name in ("bytes_allocated", "bytes_reserved", "bytes_available"))
        used = {i: heap.get(i, 0.0) + stack.get(i, 0.0) for i in {*heap, *stack}}
        used = {i: taken for i, taken in used.items() if 0 <= taken < math.inf}
        fragmentation, requested = _numbers(line, "fragmentation"), _numbers(line, "requested_bytes")
        groups = defaultdict(list)
        for i in at.tolist():
            if i in used:
                groups[allocators.get(i) or f"device {cores.get(i, 0):.0f}"].append(i)
        for allocator, events in groups.items():
            found[allocator].add(line, events, used=used, held=used, free=free, fragmentation=fragmentation, requested=requested)
    for usage in found.values():
        total = np.concatenate(usage.columns["used"]) + np.concatenate(usage.columns["free"])
        usage.capacity = float(np.nanmedian(total)) if np.isfinite(total).any() else None
    return dict(found)


def _of_kineto(trace: Trace) -> dict[str, _Usage]:
    """``[memory]`` events of PyTorch with `profile_memory=True`: totals where it writes them, else what was taken and given back."""
    found: dict[str, _Usage] = defaultdict(_Usage)
    capacities = {plane.name: plane.stats.get("memory_size") for plane in trace.devices}
    for line in trace.host_lines:
        at = np.flatnonzero(line.where(lambda name: name == MEMORY))
        if not len(at):
            continue
        kinds, numbers = _numbers(line, "Device Type"), _numbers(line, "Device Id")
        change, total, held = _numbers(line, "Bytes"), _numbers(line, "Total Allocated"), _numbers(line, "Total Reserved")
        groups = defaultdict(list)
        for i in at.tolist():
            kind = _DEVICE_TYPES.get(int(kinds.get(i, 0)), "device")
            groups[kind if kind == "CPU" else f"{kind}:{numbers.get(i, 0):.0f}"].append(i)
        for allocator, events in groups.items():
            usage = found[allocator]
            usage.sums = not total
            used = {i: (total or change).get(i, 0.0) for i in events}
            # 1 - used / held: of what was taken from the device, what is kept for later. The CPU's allocator keeps nothing.
            unused = {i: 1 - used[i] / held[i] for i in events if held.get(i, 0.0) > 0}
            usage.add(line, events, used=used, held={**used, **({} if usage.sums else held)}, fragmentation=unused, requested=change)
            size = capacities.get(f"/device:{allocator}")
            usage.capacity = size if isinstance(size, float) else None
    return dict(found)


def _by_step(steps: MarkedSteps, allocator: str, usage: _Usage) -> AllocatorMemory:
    columns = {name: np.concatenate(parts) for name, parts in usage.columns.items()}
    origins = [(line, int(i)) for line, events in usage.lines for i in events]
    order = np.argsort(columns["times"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    used = columns["used"]
    if usage.sums:
        used = np.cumsum(used)
        used -= min(0.0, float(used.min()))
    window = np.searchsorted(steps.edges_ms, columns["times"], side="right") - 1
    numbers, peaks, peaks_ms, floors, ops = [], [], [], [], []
    for step in range(steps.periods):
        inside = np.flatnonzero(window == step)
        if len(inside):
            top = int(inside[used[inside].argmax()])
            numbers.append(steps.numbers[step])
            peaks.append(used[top])
            peaks_ms.append(columns["times"][top])
            floors.append(used[max(0, inside[0] - 1) : inside[-1] + 1].min())
            ops.append(_op(*origins[order[_cause(used, int(inside[0]), top)]]))
    top = int(used.argmax())
    same_step = np.flatnonzero(window[: top + 1] != window[top])
    cause = _cause(used, int(same_step[-1]) + 1 if len(same_step) else 0, top)
    fullest = Fullest(
        used=float(used[top]),
        time_ms=float(columns["times"][top]),
        held=float(max(columns["held"][top], used[top])),
        step=steps.numbers[window[top]] if 0 <= window[top] < steps.periods else None,
        op=_op(*origins[order[cause]]),
        requested=_known(columns["requested"][cause]),
        fragmentation=_known(columns["fragmentation"][top]) if not usage.sums else None,
    )
    return AllocatorMemory(
        capture=steps.capture,
        host=steps.trace.host,
        allocator=allocator,
        times_ms=columns["times"],
        bytes=used,
        capacity=usage.capacity,
        steps=tuple(numbers),
        peaks=np.array(peaks),
        peaks_ms=np.array(peaks_ms),
        floors=np.array(floors),
        ops=tuple(ops),
        fullest=fullest,
    )


def _cause(used: Floats, first: int, top: int) -> int:
    """Which event from `first` to `top` made most of the usage at `top`: the largest rise below which the usage never fell again."""
    level = used[first : top + 1]
    lowest_after = np.minimum.accumulate(level[::-1])[::-1]
    rise = np.diff(level, prepend=used[max(0, first - 1)])
    rise[lowest_after < level] = -np.inf
    return first + int(rise.argmax())


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# tensorflow/core/framework/types.proto
_TYPES: Mapping[float, str] = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    6: "int8",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    19: "float16",
}
# Events that are looked at before all others for one that encloses an event.
_NEAR = 4096


def _op(line: Line, index: int) -> str:
    """The op that an allocator event belongs to, with the type and shape that are known: by its own stats, else the innermost event around
    it on its thread.
    """
    named = _texts(line, "tf_op").get(index)
    if named is None:
        return _enclosing(line, index)
    kind = _texts(line, "data_type").get(index, _TYPES.get(_numbers(line, "data_type").get(index, 0), ""))
    shape = _texts(line, "shape").get(index, "")
    tensor = f"{'' if kind == 'INVALID' else kind}{shape}"
    return f"{named} {tensor}" if tensor else named


def _enclosing(line: Line, index: int) -> str:
    time = float(line.start_ms[index])
    stop = int(np.searchsorted(line.start_ms, time, side="right"))
    for first in (max(0, stop - _NEAR), 0):
        around = np.flatnonzero(line.end_ms[first:stop] > time)
        if len(around):
            return line.names[int(line.ids[first + around[-1]])]
    return ""


def _numbers(line: Line, stat: str) -> dict[int, float]:
    column = line.numbers.get(stat)
    return {} if column is None else dict(zip(column.events.tolist(), column.values.tolist(), strict=True))


def _texts(line: Line, stat: str) -> dict[int, str]:
    column = line.texts.get(stat)
    return {} if column is None else dict(zip(column.events, column.values, strict=True))
