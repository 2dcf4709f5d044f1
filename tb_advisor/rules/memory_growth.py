"""Memory use keeps rising over the run.

## Why it matters

Each step leaves something behind: a loss that is kept with its graph, outputs that are collected, a cache without a
limit. The run slows down as the machine begins to swap, and ends with an out-of-memory error after hours or days,
when it is longest.

## How it is found

In memory scalars of any unit. The first `warm_up` (20%) of the run is not judged: allocators, caches and worker
processes fill up then. From there to the end (median of the last tenth) memory must have grown by at least
`min_growth` (10%), and at least `min_late_share` (25%) of that in the second half of that time, where a steady leak
has half of it and a warm-up that levels out almost nothing. It must rise all along: of the medians of eight equal
parts, no step up makes more than `max_step` (40%) of the growth, which is a larger batch, a second phase or one more
model, and all steps down together no more than `max_fall` (20%) of it, so that a sawtooth of garbage collection is
silent.

Growth of 20%, of which 40% is late, gives high confidence. Where the tag says that it is a percentage, or that it is of a
device whose size a capture of the job names, the step at which it is full is told.

In captures with allocator events: the lowest use of each whole step but the first, of which `min_steps` (5) are needed. A
step of a healthy training ends with what it began with, to the byte. Here the lowest use must rise from step to step in at
least `min_rising` (80%) of them, under the same limits of `max_step`, `max_fall` and `min_late_share` (a queue or a cache
that fills), by at least `min_share` (0.1%) of the highest use a step, with which it doubles in a thousand steps, and
`min_bytes` (64 KiB), which is more than a metric that keeps one number a step. Eight rises and no fall give high
confidence. The step at which the device is full is told where its size is known.

## When it is wrong

A replay buffer or a cache with a limit that the run has not reached; in a capture, a list of outputs that ends with the
epoch. A peak since the start (`max_memory_allocated`) only rises, with every batch that is longer than all before: such
tags get low confidence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.memory import DEVICE_WORDS, UNIT_BYTES, AllocatorMemory, no_memory, unit_of
from tb_advisor.evidence.roles import words
from tb_advisor.memory_use import NEAR_LIMIT, allocator_exhibits, is_near_limit
from tb_advisor.message import Message, Value
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series

_PEAK_WORDS = frozenset({"peak", "max", "maximum", "maxrss", "highest"})


@rule(
    category="memory",
    fixes=("delete-references", "bounded-cache", "find-growth", "free-after-evaluation", "arrays-in-workers"),
)
def memory_growth(
    logged_memory: tuple[Series, ...],
    learning_curve: Series | None,
    allocator_memory: tuple[AllocatorMemory, ...],
    *,
    warm_up: float = 0.2,
    min_growth: float = 0.1,
    min_late_share: float = 0.25,
    max_step: float = 0.4,
    max_fall: float = 0.2,
    min_points: int = 8,
    min_steps: int = 5,
    min_rising: float = 0.8,
    min_share: float = 0.001,
    min_bytes: float = 64 * 2**10,
) -> Iterator[Diagnosis]:
    """One diagnosis for the memory scalar that grows most, which names how many others grow too, and one for each capture."""
    long_enough = [s.finite for s in logged_memory if len(s.finite) >= min_points]
    captured = [memory for memory in allocator_memory if len(memory.steps) > min_steps]
    if not long_enough and not captured:
        raise no_memory(logged_memory, allocator_memory, min_points, min_steps + 1)
    judged = [memory[round(warm_up * len(memory)) :] for memory in long_enough]
    growing = [memory for memory in judged if _grows(memory, min_growth, min_late_share, max_step, max_fall)]
    if growing:
        top = max(growing, key=_growth)
        yield _diagnosis(top, len(growing) - 1, learning_curve, _limit(top, allocator_memory))
    for name in dict.fromkeys(memory.capture.name for memory in captured):
        leaks = [
            (_a_step(memory), memory)
            for memory in captured
            if memory.capture.name == name
            and _a_step(memory) >= max(min_bytes, min_share * float(memory.peaks.max()))
            and _rises(memory.floors[1:], min_rising, min_late_share, max_step, max_fall)
        ]
        if leaks:
            yield _of_allocator(*max(leaks, key=lambda leak: leak[0]))


def _grows(memory: Series, min_growth: float, min_late_share: float, max_step: float, max_fall: float) -> bool:
    levels = memory.levels(min(8, len(memory)))
    rise = float(levels[-1] - levels[0])
    if not (levels[0] > 0 and _growth(memory) >= min_growth and rise > 0):
        return False
    steps = np.diff(levels)
    falls = -float(steps[steps < 0].sum())
    return bool(_late_share(memory) >= min_late_share and steps.max() <= max_step * rise and falls <= max_fall * rise)


def _growth(memory: Series) -> float:
    """How much it grew, as a share of the level at which it began."""
    return (memory.end - memory.start) / memory.start if memory.start > 0 else 0.0


def _late_share(memory: Series) -> float:
    """How much of the growth happened in the second half, 0 to 1."""
    before, middle, after = memory.start, float(np.median(memory[len(memory) // 2 :].values[:3])), memory.end
    return (after - middle) / (after - before) if after > before else 0.0


def _training_steps(memory: Series, begun: int, curve: Series | None) -> float:
    """How many steps were trained from point `begun` to the middle of the end level: by the learning curve where memory is logged on
    another axis.
    """
    steps = memory.steps.astype(np.float64)
    if curve is not None and not memory.shares_axis_with(curve):
        steps = Series(curve.steps, curve.wall_times, curve.steps.astype(np.float64)).at(memory)
    return max(1.0, float(steps[-max(3, len(memory) // 10) :].mean() - steps[begun]))


def _limit(memory: Series, allocators: tuple[AllocatorMemory, ...]) -> float | None:
    """What the scalar cannot exceed, in its own unit: 100%, or the size of the device that a capture of the job names."""
    named, unit = set(words(memory.tag)), unit_of(memory.tag)
    if unit == "%":
        return 100.0
    sizes = [a.capacity / UNIT_BYTES[unit] for a in allocators if a.capacity and "host" not in a.allocator] if unit else []
    fitting = [size for size in sizes if size > memory.end]
    return max(fitting, default=None) if DEVICE_WORDS & named else None


def _diagnosis(memory: Series, others: int, curve: Series | None, limit: float | None) -> Diagnosis:
    turn, at_once = memory.turn()
    begun = 0 if at_once else turn
    onset, last = int(memory.steps[begun]), int(memory.steps[-1])
    before, after = float(memory.smoothed()[begun]), memory.end
    growth = _growth(memory)
    per_step, per_own_step = ((after - before) / _training_steps(memory, begun, axis) for axis in (curve, None))
    unit = unit_of(memory.tag)
    shape = {"bytes": "{%s:bytes}", "": "{%s}"}.get(unit, "{%s} {unit}")
    values: dict[str, Value] = {"unit": unit} if unit not in ("bytes", "") else {}
    full = onset + round((limit - before) / per_own_step) if limit is not None and after < limit and per_own_step > 0 else None
    template = (
        f"{{tag}} rose from {shape % 'before'} at step {{onset}} to {shape % 'after'} (+{{growth:%}}) and rises on, "
        f"{shape % 'per_step'} a step"
        + ("; at this pace it is full at step {full}" if full is not None else "")
        + ("; {others} more memory scalars grow too." if others > 1 else "; one more memory scalar grows too." if others else ".")
    )
    message = Message(
        template,
        tag=memory.tag,
        onset=onset,
        before=before,
        after=after,
        growth=growth,
        per_step=per_step,
        full=full,
        others=others,
        **values,
    )
    steady = growth >= 0.2 and _late_share(memory) >= 0.4
    confidence = Confidence.LOW if _PEAK_WORDS & set(words(memory.tag)) else Confidence.HIGH if steady else Confidence.MEDIUM
    return Diagnosis(
        message,
        Severity.WARNING,
        confidence,
        onset_step=onset,
        last_step=last,
        impact=Impact(
            "memory",
            Message(f"Another run of this length would need {shape % 'more'} more.", more=max(0.0, after - before), **values),
        ),
        explains=("memory-near-limit",) if unit == "%" and after >= 100 * NEAR_LIMIT else (),
        exhibits=(SeriesExhibit(((memory.run, memory.tag),), (Mark(onset, last, Message("growth, +{growth:%}", growth=growth)),)),),
    )


def _a_step(memory: AllocatorMemory) -> float:
    """How many bytes the lowest use rises from one step to the next: the median slope of all pairs (Theil and Sen)."""
    floors = memory.floors[1:]
    first, second = np.triu_indices(len(floors), 1)
    return float(np.median((floors[second] - floors[first]) / (second - first)))


def _rises(floors: Floats, min_rising: float, min_late_share: float, max_step: float, max_fall: float) -> bool:
    steps, rise = np.diff(floors), float(floors[-1] - floors[0])
    late = float(floors[-1] - floors[len(floors) // 2])
    falls = -float(steps[steps < 0].sum())
    steady = bool(steps.max() <= max_step * rise and falls <= max_fall * rise and late >= min_late_share * rise)
    return steady and bool(np.mean(steps > 0) >= min_rising)


def _of_allocator(per_step: float, memory: AllocatorMemory) -> Diagnosis:
    floors, steps = memory.floors[1:], memory.steps[1:]
    before, after, capacity = float(floors[0]), float(floors[-1]), memory.capacity
    left = (capacity - float(memory.peaks[-1])) / per_step if capacity else None
    full = None if left is None else steps[-1] + max(0, round(left))
    message = Message(
        "{allocator} keeps {per_step:bytes} more with every step: its lowest use rose from {before:bytes} in step {first:d} to "
        "{after:bytes} in step {last:d}" + ("; at this pace {capacity:bytes} are full at step {full}." if full is not None else "."),
        allocator=memory.allocator,
        per_step=per_step,
        before=before,
        after=after,
        first=steps[0],
        last=steps[-1],
        capacity=capacity,
        full=full,
    )
    rises = np.diff(floors)
    return Diagnosis(
        message,
        Severity.WARNING,
        Confidence.HIGH if len(rises) >= 8 and bool((rises > 0).all()) else Confidence.MEDIUM,
        onset_step=steps[0],
        last_step=steps[-1],
        impact=Impact("memory", Message("1,000 more steps need {more:bytes} more.", more=1000 * per_step)),
        exhibits=allocator_exhibits(memory),
        explains=("memory-near-limit",) if is_near_limit(float(memory.peaks[-1]), memory) else (),
    )
