"""Memory use jumps far above its usual level and comes back.

## Why it matters

The highest moment decides whether a training fits: one spike of a few milliseconds ends it with an out-of-memory error,
or keeps the batch small for all the steps that would have fitted. A spike has a place: an evaluation with larger batches, a
checkpoint, a batch that is longer than the others.

## How it is found

In memory scalars of any unit (bytes, megabytes, percent): the local level of a point is the median of the `window` (15)
points around it, or of a tenth of the run where that is more. A spike is at least `min_ratio` (1.5) times that level and
at least `min_deviations` (12) times the scaled median absolute residual above it, so that noise and a sawtooth of garbage
collection are silent. It must be back below half its height within `max_points` (5) points or `max_share` (4%) of the
run, so that warm-up, stairs and growth are no spikes; the first two points and the last one cannot be judged. Where the
tag says that it is a percentage, the spike must be `min_headroom` (10) points high.

In captures with allocator events: the highest peak of a step against the median peak of all whole steps but the first,
at least `min_ratio` times as high, by at least `min_headroom` (10%) of the capacity where that is known and by at least
`min_bytes` (16 MiB), below which nothing is won. A step before it and a step after it must be below half its height, so that
a queue that drains and memory that grows are no spikes.

From `warn_ratio` (twice the usual) on it is a warning.

## When it is wrong

A planned evaluation or checkpoint in the same process is a spike with a reason. Sampling every few seconds misses most spikes, so that
a clear result says little about scalars.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.memory import AllocatorMemory, no_memory, unit_of
from tb_advisor.memory_use import allocator_exhibits, is_near_limit
from tb_advisor.message import Message, Value
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series, rolling_median

_LEAST_POINTS = 10
_LEAST_STEPS = 4


@dataclass(frozen=True)
class _Spike:
    first: int
    last: int
    top: int
    level: float


@rule(
    category="memory",
    fixes=(
        "find-allocation",
        "free-after-evaluation",
        "delete-references",
        "gradient-accumulation",
        "smaller-batch",
        "gradient-checkpointing",
        "mixed-precision",
        "memory-growth-option",
    ),
)
def memory_spike(
    logged_memory: tuple[Series, ...],
    allocator_memory: tuple[AllocatorMemory, ...],
    *,
    min_ratio: float = 1.5,
    warn_ratio: float = 2.0,
    min_deviations: float = 12.0,
    window: int = 15,
    max_points: int = 5,
    max_share: float = 0.04,
    min_headroom: float = 0.1,
    min_bytes: float = 16 * 2**20,
) -> Iterator[Diagnosis]:
    """One diagnosis for each memory scalar and each allocator that has spikes."""
    scalars = [s.finite for s in logged_memory if len(s.finite) >= _LEAST_POINTS]
    allocators = [a for a in allocator_memory if len(a.peaks) >= _LEAST_STEPS]
    if not scalars and not allocators:
        raise no_memory(logged_memory, allocator_memory, _LEAST_POINTS, _LEAST_STEPS)
    for memory in scalars:
        longest = max(max_points, round(max_share * len(memory)))
        around = max(window, len(memory) // 10)
        spikes = _spikes(memory, min_ratio, min_deviations, around, longest, min_headroom)
        if spikes:
            yield _logged(memory, spikes, warn_ratio)
    for allocator in allocators:
        usual = float(np.median(allocator.peaks[1:]))
        top = 1 + int(allocator.peaks[1:].argmax())
        least = max(min_bytes, min_headroom * (allocator.capacity or 0.0))
        high = allocator.peaks[top] >= max(min_ratio * usual, usual + least)
        if usual > 0 and high and _comes_and_goes(allocator.peaks, top, usual):
            yield _allocated(allocator, usual, top, warn_ratio)


def _comes_and_goes(peaks: Floats, top: int, usual: float) -> bool:
    """Whether the peak at `top` rises from a lower level and falls back. In the last step it must rise at once: nothing comes after."""
    excess = float(peaks[top]) - usual
    if top == len(peaks) - 1:
        return bool(peaks[top - 1] <= usual + excess / 4)
    return bool(peaks[:top].min() <= usual + excess / 2 and peaks[top + 1 :].min() <= usual + excess / 2)


def _spikes(memory: Series, min_ratio: float, min_deviations: float, window: int, max_points: int, min_headroom: float) -> list[_Spike]:
    values = memory.values
    level = rolling_median(values, window)
    residual = values - level
    spread = 1.4826 * float(np.median(np.abs(residual)))
    high = (residual >= min_deviations * spread) & (values >= min_ratio * level) & (level > 0)
    if unit_of(memory.tag) == "%":
        high &= residual >= 100 * min_headroom
    spikes: list[_Spike] = []
    for top in np.flatnonzero(high).tolist():
        if spikes and top <= spikes[-1].last:
            continue
        found = _extent(memory, top, float(level[top]), max_points)
        if found is not None:
            spikes.append(found)
    return spikes


def _extent(memory: Series, start: int, level: float, max_points: int) -> _Spike | None:
    """The spike that begins at `start`, None where it does not fall to half its height within `max_points`, or begins too early to tell."""
    values = memory.values
    end = start
    top = start
    while end < len(values) and values[end] > level + (values[top] - level) / 2:
        top = end if values[end] > values[top] else top
        end += 1
    if start < 2 or end == len(values) or end - start > max_points:
        return None
    return _Spike(start, end - 1, top, level)


def _logged(memory: Series, spikes: list[_Spike], warn_ratio: float) -> Diagnosis:
    highest = max(spikes, key=lambda spike: float(memory.values[spike.top]) / spike.level)
    top, ratio = float(memory.values[highest.top]), float(memory.values[highest.top]) / highest.level
    unit = unit_of(memory.tag)
    shape = {"bytes": "{%s:bytes}", "": "{%s}"}.get(unit, "{%s} {unit}")
    values: dict[str, Value] = {"unit": unit} if unit not in ("bytes", "") else {}
    often = "{count} times, highest" if len(spikes) > 1 else "once,"
    message = Message(
        f"{{tag}} jumps {often} at step {{step:d}}, to {shape % 'top'}, {{ratio:.1f}}× the usual {shape % 'usual'}.",
        tag=memory.tag,
        top=top,
        usual=highest.level,
        step=int(memory.steps[highest.top]),
        ratio=ratio,
        count=len(spikes),
        **values,
    )
    marks = tuple(_mark(memory, spike) for spike in spikes)
    return Diagnosis(
        message,
        Severity.WARNING if ratio >= warn_ratio else Severity.INFO,
        Confidence.HIGH if ratio >= warn_ratio else Confidence.MEDIUM,
        onset_step=int(memory.steps[spikes[0].first]),
        last_step=int(memory.steps[spikes[-1].last]),
        impact=Impact("memory", Message(f"{shape % 'more'} are needed for this alone.", more=top - highest.level, **values)),
        exhibits=(SeriesExhibit(((memory.run, memory.tag),), marks),),
    )


def _mark(memory: Series, spike: _Spike) -> Mark:
    label = Message("spike, {ratio:.1f}×", ratio=float(memory.values[spike.top]) / spike.level)
    return Mark(int(memory.steps[spike.first]), int(memory.steps[spike.last]), label)


def _allocated(memory: AllocatorMemory, usual: float, top: int, warn_ratio: float) -> Diagnosis:
    peak = float(memory.peaks[top])
    op = memory.ops[top]
    room = "; {free:bytes} of {capacity:bytes} stay free" if memory.capacity else ""
    place = " ({op})" if op else ""
    values: dict[str, Value] = {"op": op} if op else {}
    if memory.capacity:
        values |= {"free": max(0.0, memory.capacity - peak), "capacity": memory.capacity}
    message = Message(
        f"Memory of {{allocator}} peaks at {{peak:bytes}} in step {{step:d}}{place}, {{ratio:.1f}}× the usual {{usual:bytes}}{room}.",
        step=memory.steps[top],
        peak=peak,
        allocator=memory.allocator,
        ratio=peak / usual,
        usual=usual,
        **values,
    )
    return Diagnosis(
        message,
        Severity.WARNING if peak >= warn_ratio * usual else Severity.INFO,
        Confidence.HIGH if len(memory.peaks) >= 6 else Confidence.MEDIUM,
        onset_step=memory.steps[top],
        last_step=memory.steps[top],
        impact=_impact(memory, peak, usual),
        exhibits=allocator_exhibits(memory, top),
        explains=("memory-near-limit",) if is_near_limit(peak, memory) and not is_near_limit(usual, memory) else (),
    )


def _impact(memory: AllocatorMemory, peak: float, usual: float) -> Impact:
    text = Message("{more:bytes} are needed for this one moment.", more=peak - usual)
    if memory.capacity:
        text = Message(
            "{more:bytes} are needed for this one moment; without it {free:bytes} of {capacity:bytes} would always be free.",
            more=peak - usual,
            free=max(0.0, memory.capacity - usual),
            capacity=memory.capacity,
        )
    return Impact("memory", text)
