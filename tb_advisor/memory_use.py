"""What an allocator had in use, shown alike by every rule about memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tb_advisor.diagnosis import Exhibit, TableExhibit, TimelineExhibit, TraceExhibit
from tb_advisor.evidence.intervals import Floats
from tb_advisor.evidence.memory import AllocatorMemory
from tb_advisor.logdir.captures import XPLANE
from tb_advisor.message import Message, size

# From here on a longer batch, an evaluation or one more cache may be too much.
NEAR_LIMIT = 0.85
# A chart has some 900 pixels in which to show them.
MOST_POINTS = 800


def is_near_limit(used: float, memory: AllocatorMemory) -> bool:
    """Whether so many bytes in use leave little of the allocator's capacity."""
    return bool(memory.capacity and used >= NEAR_LIMIT * memory.capacity)


def allocator_exhibits(memory: AllocatorMemory, peak_of: int | None = None) -> tuple[Exhibit, ...]:
    """The usage over time with its peak marked, highest and lowest use in each step, and the Profile tool that shows every allocation.

    The marked peak is that of step number `peak_of` of those in `memory.steps`, else the highest of all.
    """
    timeline = _timeline(memory, peak_of)
    rows = tuple(
        (step, size(float(peak)), size(float(floor)), op or None)
        for step, peak, floor, op in zip(memory.steps, memory.peaks, memory.floors, memory.ops, strict=True)
    )
    title = Message("Use of {allocator} in each step", allocator=memory.allocator)
    table = (TableExhibit(title, ("step", "highest", "lowest", "op"), rows),) if rows else ()
    if not memory.capture.in_profile_tab:
        return *timeline, *table
    host = next((path.name.removesuffix(XPLANE) for path in memory.capture.files if path.name.startswith(memory.host)), memory.host)
    return *timeline, *table, TraceExhibit(memory.capture.name, "memory_profile", host)


def _timeline(memory: AllocatorMemory, peak_of: int | None) -> tuple[Exhibit, ...]:
    known = np.isfinite(memory.bytes) & np.isfinite(memory.times_ms)
    times, used = memory.times_ms[known], memory.bytes[known]
    if len(times) < 2:
        return ()
    fullest = memory.fullest
    moment, peak, step, op = fullest.time_ms, fullest.used, fullest.step, fullest.op
    if peak_of is not None:
        moment, peak = float(memory.peaks_ms[peak_of]), float(memory.peaks[peak_of])
        step, op = memory.steps[peak_of], memory.ops[peak_of]
    label = Message("{peak:bytes}", peak=peak)
    if step is not None:
        label += Message(" in step {step:d}", step=step)
    if op:
        label += Message(", {op}", op=op)
    shown = _extremes(used)
    title = Message("Memory of {allocator} in use", allocator=memory.allocator)
    return (TimelineExhibit(title, tuple(times[shown].tolist()), tuple(used[shown].tolist()), memory.capacity, moment, peak, label),)


def _extremes(values: Floats) -> NDArray[np.int64]:
    """Which of so many values to draw: all of them, or the lowest and the highest of each of equal parts, and both ends."""
    if len(values) <= MOST_POINTS:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), MOST_POINTS // 2).astype(np.int64)
    parts = [(first, values[first:last]) for first, last in pairwise(edges.tolist())]
    extremes = [first + int(at) for first, part in parts for at in (part.argmin(), part.argmax())]
    return np.unique([0, *extremes, len(values) - 1])
