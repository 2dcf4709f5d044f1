"""Training steps take longer and longer, or have become slow at some step.

## Why it matters

A step does the same work from the first to the last. Where it takes twice as long after an hour, something that is no
training grows or is in the way: a list that each step walks through, a graph that gets longer, a data source that
slows down, a processor that throttles, a neighbour on the machine. The rest of the run pays for it.

## How it is found

From a logged throughput or step time of the training; where there is none, from the wall times of the events.
Evaluations and averages since the start (`time/fps` of Stable-Baselines3, which falls in healthy runs) are left
aside. The first `warm_up` (5%) of the points, at least one, is compilation and caching. Of the rest, the median step
of the last quarter must take at least `min_slowdown` (1.7) times as long as that of the first: half the speed, with
some room for a first quarter that is already slower. It must be slow as a whole, too: nine of ten steps of the last
quarter must be at least `min_separation` (1.3) times slower than nine of ten of the first. A busy machine makes many
steps slow and leaves others as fast as before; a cause in the training does not. (On a shared machine, wall times of
healthy runs show medians that are 1.7 to 4 times slower, but this separation stays below 1.1.) A ramp spreads within
the quarters that are compared, so that it separates less than a jump of the same size. Where it is steady, it is
enough that nine of ten steps are slower at all: of the medians of twelve equal parts the later must be the slower in
more than `min_rising` (85%) of all pairs. Other load comes and goes: where it separated the quarters at all, it reached
81%. And the difference must be `min_noise_ratio` (3) times the jitter between neighbouring points, which matters where
there are few.

The turn is where a step or a ramp fits the times best. High confidence asks for a logged throughput or step time with
at least `min_points` points, a slow-down of 2 and a separation of 1.5.

## When it is wrong

The work of a step grows by plan: larger images, longer sequences, a growing network, a curriculum. Wall times alone
also show other load on the machine, which is why they never give high confidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.speed import Pace
from tb_advisor.message import Message, Value
from tb_advisor.rule import rule
from tb_advisor.series import Series

_PARTS = 12  # of which each has at least three points


@rule(
    category="input",
    fixes=("time-parts-of-step", "check-machine", "delete-references", "record-more-steps", "dataloader-workers", "prefetch"),
)
def throughput_degradation(
    pace: Pace,
    *,
    min_slowdown: float = 1.7,
    min_separation: float = 1.3,
    min_rising: float = 0.85,
    min_noise_ratio: float = 3.0,
    warm_up: float = 0.05,
    min_points: int = 40,
) -> Iterator[Diagnosis]:
    """One diagnosis from the step on at which steps begin to take longer."""
    times = pace.times[ceil(warm_up * len(pace.times)) :]
    quarter = max(3, len(times) // 4)
    first, last = times.values[:quarter], times.values[-quarter:]
    before, after = float(np.median(first)), float(np.median(last))
    separation = float(np.quantile(last, 0.1) / np.quantile(first, 0.9))
    slowdown = after / before
    steady = len(times) >= 3 * _PARTS and times.share_rising(_PARTS) > min_rising
    apart = separation >= (1 if steady else min_separation)
    if not (slowdown >= min_slowdown and apart and after - before >= min_noise_ratio * times.noise):
        return
    sure = slowdown >= 2 and separation >= 1.5 and len(pace.times) >= min_points
    turn, at_once = times.turn()
    onset, end = int(times.steps[turn]), int(times.steps[-1])
    lost, share = _lost(times[turn:], before, float(times.wall_times[-1] - times.wall_times[0]))
    yield Diagnosis(
        _message(pace, before, after, onset, at_once),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if sure and pace.source != "wall_times" else Confidence.MEDIUM,
        onset_step=onset,
        last_step=end,
        impact=Impact("time", Message("{share:%} of the run ({lost:duration}) went into slower steps.", share=share, lost=lost), share),
        exhibits=(SeriesExhibit(((times.run, times.tag),), (Mark(onset, end, Message("{slowdown:.1f}× slower", slowdown=slowdown)),)),),
    )


def _message(pace: Pace, before: float, after: float, onset: int, at_once: bool) -> Message:
    values: dict[str, Value] = {"slowdown": after / before, "onset": onset, "tag": pace.times.tag}
    when = " at step {onset}." if at_once else ", beginning at step {onset}."
    if pace.source == "wall_times":
        template = "A step takes {after:duration} at the end and took {before:duration} at the start ({slowdown:.1f}×)"
        grew = "; it became slow" if at_once else "; it grew"
        return Message(
            f"{template}{grew}{when} No throughput is logged: this is from wall times of {{tag}}.", before=before, after=after, **values
        )
    if pace.source == "throughput":
        return Message(
            f"{{tag}} fell from {{before}} to {{after}} ({{slowdown:.1f}}× slower){when}", before=1 / before, after=1 / after, **values
        )
    return Message(f"{{tag}} rose from {{before}} to {{after}} ({{slowdown:.1f}}× slower){when}", before=before, after=after, **values)


def _lost(slow: Series, before: float, whole_run: float) -> tuple[float, float]:
    """Seconds that the slow steps took beyond the time they would have taken at first, and their share of the run."""
    seconds = np.maximum(0.0, np.diff(slow.wall_times))
    lost = float((seconds * np.maximum(0.0, 1 - before / slow.values[1:])).sum())
    return lost, min(1.0, lost / whole_run) if whole_run > 0 else 0.0
