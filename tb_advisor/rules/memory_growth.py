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

Growth of 20%, of which 40% is late, gives high confidence. Where the tag says that it is a percentage, the step at
which it is full is told.

## When it is wrong

A replay buffer or a cache with a limit that the run has not reached. A peak since the start (`max_memory_allocated`)
only rises, with every batch that is longer than all before: such tags get low confidence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.memory import unit_of
from tb_advisor.evidence.roles import words
from tb_advisor.message import Message, Missing, Value
from tb_advisor.rule import rule
from tb_advisor.series import Series

_PEAK_WORDS = frozenset({"peak", "max", "maximum", "maxrss", "highest"})


@rule(
    category="memory",
    fixes=("delete-references", "bounded-cache", "find-growth", "free-after-evaluation", "arrays-in-workers"),
)
def memory_growth(
    logged_memory: tuple[Series, ...],
    learning_curve: Series | None,
    *,
    warm_up: float = 0.2,
    min_growth: float = 0.1,
    min_late_share: float = 0.25,
    max_step: float = 0.4,
    max_fall: float = 0.2,
    min_points: int = 8,
) -> Iterator[Diagnosis]:
    """One diagnosis for the memory scalar that grows most; it names how many others grow too."""
    long_enough = [s.finite for s in logged_memory if len(s.finite) >= min_points]
    if not long_enough:
        raise _missing(logged_memory, min_points)
    judged = [memory[round(warm_up * len(memory)) :] for memory in long_enough]
    growing = [memory for memory in judged if _grows(memory, min_growth, min_late_share, max_step, max_fall)]
    if growing:
        yield _diagnosis(max(growing, key=_growth), len(growing) - 1, learning_curve)


def _missing(logged: tuple[Series, ...], least: int) -> Missing:
    if not logged:
        return Missing("no memory scalar (looked for the words memory, mem, rss, ram, vram, and allocated or reserved with a unit)")
    longest = max(logged, key=lambda memory: len(memory.finite))
    template = "the memory scalar {tag} has {count} finite points; {least} are needed"
    return Missing(template, tag=longest.tag, count=len(longest.finite), least=least)


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


def _diagnosis(memory: Series, others: int, curve: Series | None) -> Diagnosis:
    turn, at_once = memory.turn()
    begun = 0 if at_once else turn
    onset, last = int(memory.steps[begun]), int(memory.steps[-1])
    before, after = float(memory.smoothed()[begun]), memory.end
    growth = _growth(memory)
    per_step, per_own_step = ((after - before) / _training_steps(memory, begun, axis) for axis in (curve, None))
    unit = unit_of(memory.tag)
    shape = {"bytes": "{%s:bytes}", "": "{%s}"}.get(unit, "{%s} {unit}")
    values: dict[str, Value] = {"unit": unit} if unit not in ("bytes", "") else {}
    full = onset + round((100 - before) / per_own_step) if unit == "%" and after < 100 and per_own_step > 0 else None
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
        exhibits=(SeriesExhibit(((memory.run, memory.tag),), (Mark(onset, last, Message("growth, +{growth:%}", growth=growth)),)),),
    )
