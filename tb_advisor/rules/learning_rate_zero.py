"""The learning rate is zero, or almost zero long before the run ends.

## Why it matters

Without a learning rate the weights stay where they are: the steps are paid for and teach nothing. Most often the
schedule counts steps where epochs were meant, or ends before the run does.

## How it is found

A learning rate that is zero in every point is an error. It is a warning when the rate falls below `max_share` (1%) of
its peak before `latest_onset` (60%) of the run and stays there to the end: the steps of a schedule that fits end at
1% or below in its last third (cosine at 94%, linear at 99%, one-cycle in its last tenth), and two drops by a factor of
ten, which end at 1% exactly, are no fault. The peak is that of the rolling median over three points, so that a single
high point does not count. Warm restarts come back and are silent, and so is a run that is still going on. A group of
parameters with the rate zero beside others that are trained is a frozen part of the model. Fewer than `min_points`
(5) points say nothing.

## When it is wrong

A first phase with a rate more than a hundred times higher, on purpose, followed by a long second one. A rate that is
logged before the schedule or the scaling of the optimizer applies; where the training loss falls although the rate is
said to be zero the confidence is low for that reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.evidence.roles import Roles
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series, rolling_median


@rule(category="optimization", fixes=("schedule-length", "schedule-floor", "plot-schedule"))
def learning_rate_zero(
    learning_rate: Series,
    roles: Roles,
    finished: bool,
    *,
    max_share: float = 0.01,
    latest_onset: float = 0.6,
    min_points: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis from the step on from which nothing is learned any more."""
    rate = finite_points(learning_rate, min_points)
    first, last = int(rate.steps[0]), int(rate.steps[-1])
    if not rate.values.any():
        yield Diagnosis(
            Message("The learning rate ({tag}) is zero in all {count} points.", tag=rate.tag, count=len(rate)),
            severity=Severity.ERROR,
            confidence=Confidence.LOW if _learns(roles, min_points) else Confidence.HIGH,
            onset_step=first,
            last_step=last,
            impact=_impact(rate, first),
            explains=("loss-not-decreasing", "frozen-weights", "underfitting", "unfinished-training", "overtraining"),
            exhibits=(_exhibit(rate, first, Message("learning rate 0")),),
        )
        return
    peak = float(rolling_median(rate.values, 3).max())
    # A hundredth less than the share: ten times ten in float32 is not exactly a hundred.
    above = np.flatnonzero(rate.values >= 0.99 * max_share * peak)
    low_from = int(above[-1]) + 1 if len(above) else 0
    if not finished or peak <= 0 or len(rate) - low_from < 3:
        return
    onset = int(rate.steps[low_from])
    if rate.share_of_run(onset) >= latest_onset:
        return
    end = float(np.median(rate.values[low_from:]))
    yield Diagnosis(
        Message(
            "The learning rate fell below {limit:%} of its peak ({peak}) at step {onset} and stayed there for {share:%} of the run.",
            limit=max_share,
            peak=peak,
            onset=onset,
            share=1 - rate.share_of_run(onset),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if end <= max_share / 10 * peak else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        impact=_impact(rate, onset),
        explains=("overtraining", "unfinished-training", "underfitting"),
        exhibits=(_exhibit(rate, onset, Message("below {limit:%} of its peak", limit=max_share)),),
    )


def _learns(roles: Roles, min_points: int) -> bool:
    """Whether a training loss falls by a third or more, which it cannot at a learning rate of zero."""
    losses = (a.series.finite for a in roles.of("loss", evaluation=False) if len(a.series.finite) >= 2 * min_points)
    return any(loss.end < 0.67 * loss.start for loss in losses)


def _impact(rate: Series, onset: int) -> Impact:
    share, seconds = 1 - rate.share_of_run(onset), rate.seconds_after(onset)
    return Impact(
        "time", Message("{share:%} of the run ({seconds:duration}) moved the weights hardly or not.", share=share, seconds=seconds), share
    )


def _exhibit(rate: Series, onset: int, label: Message) -> SeriesExhibit:
    return SeriesExhibit(((rate.run, rate.tag),), (Mark(onset, int(rate.steps[-1]), label),))
