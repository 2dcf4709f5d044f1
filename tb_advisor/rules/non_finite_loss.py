"""A loss is NaN or infinite.

## Why it matters

Every weight that such a loss updates becomes NaN too, and stays so: what is trained after the first NaN is lost, and
so is a checkpoint written after it. TensorBoard shows a random sample of the points, so that a single NaN is usually
not in its chart.

## How it is found

Any NaN or infinite value in any loss, among all points that were logged (SageMaker Debugger's ExplodingTensor and
Keras's TerminateOnNaN ask the same). It is an error when the loss never becomes finite again, and a warning when it
does: mixed-precision training skips steps whose loss or gradient overflows, and goes on healthy. A loss that starts
again in the same directory after the NaN is judged from its restart on.

## When it is wrong

A tag that is called a loss but is not one, or one that is NaN by definition where there was nothing to measure (an
empty batch, a class without examples). Metrics are left out for that reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.message import Message, number
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series


@rule(
    category="stability",
    fixes=("lower-learning-rate", "clip-gradients", "check-inputs", "stable-loss", "terminate-on-nan", "find-first-nan"),
)
def non_finite_loss(losses: tuple[Series, ...]) -> Iterator[Diagnosis]:
    """One diagnosis for the job: the loss that broke first, and the others that broke with it."""
    broken = [series for series in (loss.surviving for loss in losses) if not np.isfinite(series.values).all()]
    if not broken:
        return
    first = _first_to_break(broken)
    others = tuple(series for series in broken if series is not first and series.shares_axis_with(first))
    bad = ~np.isfinite(first.values)
    at = _first_bad(first)
    onset, last = int(first.steps[at]), int(first.steps[-1])
    recovered = bool(np.isfinite(first.values[-1]))
    last_bad = int(first.steps[np.flatnonzero(bad)[-1]])
    count = int(bad.sum())
    kind = number(float(first.values[at]))
    before = first.values[:at][np.isfinite(first.values[:at])]
    yield Diagnosis(
        _message(first.tag, kind, onset, count, recovered, before),
        severity=Severity.WARNING if recovered else Severity.ERROR,
        confidence=Confidence.HIGH,
        onset_step=onset,
        last_step=last_bad,
        impact=None if recovered else _impact(first, onset),
        exhibits=(
            SeriesExhibit(
                tuple((series.run, series.tag) for series in (first, *others)),
                (Mark(onset, last_bad if recovered else last, Message("{kind} from step {onset}", kind=kind, onset=onset)),),
            ),
        ),
        explains=() if recovered else ("loss-divergence", "loss-not-decreasing", "overfitting", "overtraining"),
    )


def _first_to_break(broken: list[Series]) -> Series:
    """The first of the losses, in their order, that broke no later than any other as far as its points can tell."""
    earliest = min(float(series.wall_times[_first_bad(series)]) for series in broken)
    return next(series for series in broken if _last_good_time(series) < earliest)


def _last_good_time(series: Series) -> float:
    at = _first_bad(series)
    return float(series.wall_times[at - 1]) if at else float("-inf")


def _first_bad(series: Series) -> int:
    return int(np.flatnonzero(~np.isfinite(series.values))[0])


def _message(tag: str, kind: str, onset: int, count: int, recovered: bool, before: Floats) -> Message:
    if recovered:
        return Message(
            "{tag} was {kind} at step {onset} and in {count} points in all; it became finite again.",
            tag=tag,
            kind=kind,
            onset=onset,
            count=count,
        )
    if not len(before):
        return Message("{tag} is {kind} from its first point, step {onset}, on.", tag=tag, kind=kind, onset=onset)
    return Message(
        "{tag} became {kind} at step {onset} and never recovered; the last finite value was {last}, the lowest {lowest}.",
        tag=tag,
        kind=kind,
        onset=onset,
        last=float(before[-1]),
        lowest=float(before.min()),
    )


def _impact(series: Series, onset: int) -> Impact:
    share = 1 - series.share_of_run(onset)
    seconds = series.seconds_after(onset)
    return Impact(
        "time", Message("{share:%} of the run ({seconds:duration}) came after it and is lost.", share=share, seconds=seconds), share
    )
