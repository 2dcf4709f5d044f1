"""The training loss is logged so rarely that little can be seen in it.

## Why it matters

What happens between two points stays invisible: spikes, the first NaN, the step at which a loss turned. Most checks
need a few dozen points. A scalar takes some fifty bytes; a hundred times as many cost nothing.

## How it is found

A finished run has fewer than `few_points` (30) points of the training loss, the number that the search for spikes
needs, and the usual gap between them is at least `min_gap` (100) steps or `min_gap_s` (300) seconds. A run that counts
epochs and ends after ten of them within minutes is short, not sparse.

## When it is wrong

The loss may be logged more often elsewhere, or under a name that the role table does not know. Where a point is the
mean of all steps before it nothing is lost but the detail.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, SeriesExhibit, Severity
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="logging", fixes=("log-more-often",))
def sparse_logging(
    train_loss: Series, finished: bool, *, few_points: int = 30, min_gap: int = 100, min_gap_s: float = 300.0
) -> Iterator[Diagnosis]:
    """One diagnosis where the points of the training loss are few and far between."""
    if len(train_loss) < 2:
        raise Missing("{tag} has one point; two are needed to know a gap", tag=train_loss.tag)
    gap = float(np.median(np.diff(train_loss.steps.astype(np.float64))))
    gap_s = float(np.median(np.diff(train_loss.wall_times)))
    if not finished or len(train_loss) >= few_points or (gap < min_gap and gap_s < min_gap_s):
        return
    yield Diagnosis(
        Message(
            "{tag} has {count} points, one every {gap:.0f} steps ({seconds:duration}).",
            tag=train_loss.tag,
            count=len(train_loss),
            gap=gap,
            seconds=gap_s,
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        onset_step=int(train_loss.steps[0]),
        last_step=int(train_loss.steps[-1]),
        exhibits=(SeriesExhibit(((train_loss.run, train_loss.tag),)),),
    )
