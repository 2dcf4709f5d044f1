"""No learning rate is logged beside the training loss.

## Why it matters

The learning rate is the first thing to look at when a loss breaks, jumps or stands still. Without its curve nobody can
say whether a schedule did what was meant: that it ended too early, never arrived or jumped stays invisible.

## How it is found

The job logs a training loss with at least `min_points` (10) points, and no tag plays the role of a learning rate.

## When it is wrong

A constant rate may stand among the hyperparameters, or the log may call it by a name that the role table does not know.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="logging", fixes=("log-learning-rate",))
def missing_learning_rate(train_loss: Series, learning_rates: tuple[Series, ...], *, min_points: int = 10) -> Iterator[Diagnosis]:
    """One diagnosis where no learning rate is logged."""
    loss = finite_points(train_loss, min_points)
    if learning_rates:
        return
    yield Diagnosis(
        Message("No learning rate is logged beside {tag}: its schedule cannot be checked.", tag=loss.tag),
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        onset_step=int(loss.steps[0]),
        last_step=int(loss.steps[-1]),
    )
