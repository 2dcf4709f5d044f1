"""No validation loss is logged beside the training loss.

## Why it matters

Training loss alone cannot tell learning from memorising. Overfitting, overtraining and a leak between the data sets
stay invisible, and nobody can say which checkpoint to keep.

## How it is found

The job logs a training loss with at least `min_points` (5) points and neither a loss nor a metric of a validation
set: no run below the job is called validation, val, eval or test, and no tag has such a word.

## When it is wrong

Validation may be logged elsewhere, or under a name that the role table does not know. Pre-training for one pass over
the data needs none: each batch is new.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
from tb_advisor.evidence.roles import Roles
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="logging", fixes=("log-validation-loss", "log-metric"))
def missing_validation(train_loss: Series, roles: Roles, *, min_points: int = 5) -> Iterator[Diagnosis]:
    """One diagnosis where nothing of a validation set is logged."""
    if len(train_loss) < min_points:
        raise Missing("{tag} has {count} points; {needed} are needed", tag=train_loss.tag, count=len(train_loss), needed=min_points)
    if roles.of("loss", evaluation=True) or roles.of("metric", evaluation=True):
        return
    yield Diagnosis(
        Message("Only {tag} is logged: nothing says how the model does on data it has not seen.", tag=train_loss.tag),
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        onset_step=int(train_loss.steps[0]),
        last_step=int(train_loss.steps[-1]),
    )
