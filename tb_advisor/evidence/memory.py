"""Memory over time: from logged scalars, and from allocator events of a profiler capture."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.intervals import Floats
from tb_advisor.evidence.roles import Roles, words
from tb_advisor.evidence.trace_steps import MarkedSteps
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.chrome_trace import MEMORY
from tb_advisor.logdir.trace import Line, Trace
from tb_advisor.series import Series

_EVENTS = frozenset({"MemoryAllocation", "MemoryDeallocation"})
_PERCENT_WORDS = frozenset({"percent", "pct", "percentage"})
_UNITS = {"bytes": "bytes", "mb": "MB", "mib": "MiB", "gb": "GB", "gib": "GiB", "kb": "kB"}
# c10/core/DeviceType.h; ROCm builds report 1 as well as 6.
_DEVICE_TYPES = {0: "CPU", 1: "GPU", 6: "GPU"}


@dataclass(frozen=True, eq=False)
class AllocatorMemory:
    """Bytes in use of one allocator over one trace.

    `times_ms` (from the beginning of the trace) and `bytes` have shape ``(n,)`` and give the usage after each event; `capacity` is in
    bytes, None where it is not known. `steps` are the numbers of the whole steps in which it did something, and `peaks` the highest usage
    in each of them, both of shape ``(s,)``; `ops` names the op that made each peak, empty where the trace does not tell.
    """

    capture: Capture
    host: str
    allocator: str
    times_ms: Floats
    bytes: Floats
    capacity: float | None
    steps: tuple[int, ...]
    peaks: Floats
    ops: tuple[str, ...]


def logged_memory(roles: Roles) -> tuple[Series, ...]:
    """Every memory scalar of the job; empty where none is logged."""
    return tuple(a.series.surviving for a in roles.of("memory"))


def learning_curve(roles: Roles) -> Series | None:
    """The training loss with most points, whose steps are those of the training; None where no loss is logged."""
    found = max(roles.of("loss", evaluation=False), key=lambda a: len(a.series), default=None)
    return found.series.surviving if found else None


def unit_of(tag: str) -> str:
    """The unit that the tag of a memory scalar names, empty where it names none: bytes, MB, %."""
    named = words(tag)
    if "%" in tag or _PERCENT_WORDS & set(named):
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
    """Events of one allocator: times, bytes in use after each (or changes, where `sums` is set), and where each came from."""

    times: list[Floats]
    used: list[Floats]
    free: list[Floats]
    origins: list[tuple[Line, np.ndarray[tuple[int], np.dtype[np.int64]]]]
    capacity: float | None = None
    sums: bool = False


def _of_xplane(trace: Trace) -> dict[str, _Usage]:
    """Usage is stack (`bytes_reserved`) and heap (`bytes_allocated`) together; a TPU tells its cores apart by number, not by name."""
    found: dict[str, _Usage] = defaultdict(lambda: _Usage([], [], [], []))
    for line in trace.host_lines:
        at = np.flatnonzero(line.where(lambda name: name in _EVENTS))
        if not len(at):
            continue
        allocators = _texts(line, "allocator_name")
        cores = {**_numbers(line, "device_ordinal"), **_numbers(line, "index_on_host")}
        heap, stack, free = (_numbers(line, name) for name in ("bytes_allocated", "bytes_reserved", "bytes_available"))
        groups = defaultdict(list)
        for i in at.tolist():
            if i in heap or i in stack:
                groups[allocators.get(i) or f"device {cores.get(i, 0):.0f}"].append(i)
        for allocator, events in groups.items():
            usage = found[allocator]
            usage.times.append(line.start_ms[events])
            usage.used.append(np.array([heap.get(i, 0.0) + stack.get(i, 0.0) for i in events]))
            usage.free.append(np.array([free.get(i, np.nan) for i in events]))
            usage.origins.append((line, np.array(events, np.int64)))
    for usage in found.values():
        total = np.concatenate(usage.used) + np.concatenate(usage.free)
        usage.capacity = float(np.nanmedian(total)) if np.isfinite(total).any() else None
    return dict(found)


def _of_kineto(trace: Trace) -> dict[str, _Usage]:
    """``[memory]`` events of PyTorch with `profile_memory=True`: totals where it writes them, else what was taken and given back."""
    found: dict[str, _Usage] = defaultdict(lambda: _Usage([], [], [], []))
    capacities = {plane.name: plane.stats.get("memory_size") for plane in trace.devices}
    for line in trace.host_lines:
        at = np.flatnonzero(line.where(lambda name: name == MEMORY))
        if not len(at):
            continue
        kinds, numbers = _numbers(line, "Device Type"), _numbers(line, "Device Id")
        change, total = _numbers(line, "Bytes"), _numbers(line, "Total Allocated")
        groups = defaultdict(list)
        for i in at.tolist():
            kind = _DEVICE_TYPES.get(int(kinds.get(i, 0)), "device")
            groups[kind if kind == "CPU" else f"{kind}:{numbers.get(i, 0):.0f}"].append(i)
        for allocator, events in groups.items():
            usage = found[allocator]
            usage.sums = not total
            usage.times.append(line.start_ms[events])
            usage.used.append(np.array([(total or change).get(i, 0.0) for i in events]))
            usage.origins.append((line, np.array(events, np.int64)))
            size = capacities.get(f"/device:{allocator}")
            usage.capacity = size if isinstance(size, float) else None
    return dict(found)


def _by_step(steps: MarkedSteps, allocator: str, usage: _Usage) -> AllocatorMemory:
    times, used = np.concatenate(usage.times), np.concatenate(usage.used)
    origins = [(line, int(i)) for line, events in usage.origins for i in events]
    order = np.argsort(times, kind="stable")
    times, used = times[order], used[order]
    if usage.sums:
        used = np.cumsum(used)
        used -= min(0.0, float(used.min()))
    window = np.searchsorted(steps.edges_ms, times, side="right") - 1
    numbers, peaks, ops = [], [], []
    for step in range(steps.periods):
        inside = np.flatnonzero(window == step)
        if len(inside):
            top = int(inside[used[inside].argmax()])
            numbers.append(steps.numbers[step])
            peaks.append(used[top])
            ops.append(_op(*origins[order[top]]))
    host, capture = steps.trace.host, steps.capture
    return AllocatorMemory(capture, host, allocator, times, used, usage.capacity, tuple(numbers), np.array(peaks), tuple(ops))


def _op(line: Line, index: int) -> str:
    """The op that an allocator event belongs to: by its own stat, else the innermost event around it on its thread."""
    named = _texts(line, "tf_op").get(index)
    if named is not None:
        return named
    around = np.flatnonzero((line.start_ms <= line.start_ms[index]) & (line.end_ms > line.start_ms[index]))
    return line.names[line.ids[around[-1]]] if len(around) else ""


def _numbers(line: Line, stat: str) -> dict[int, float]:
    column = line.numbers.get(stat)
    return {} if column is None else dict(zip(column.events.tolist(), column.values.tolist(), strict=True))


def _texts(line: Line, stat: str) -> dict[int, str]:
    column = line.texts.get(stat)
    return {} if column is None else dict(zip(column.events, column.values, strict=True))
