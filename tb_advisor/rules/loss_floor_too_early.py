"""Training loss reached its floor almost at once, and everything was right from then on.

## Why it matters

A task that is solved in the first percent of the run is either trivial, so that most of the run is wasted, or not the task that
was meant: the label is among the inputs, or can be told from an artefact of how the data was made.

## How it is found

The smoothed training loss falls below `max_floor` (5%) of its first value within `latest` (10%) of the run and stays there
(after trainspotter), and from that step on at least `min_accuracy` (99.5%) of the examples are right in the median, on validation as well
where its accuracy is logged. The accuracy is needed: the loss of a regression with large targets falls by as much in any
healthy run. A validation accuracy of 99.95% makes the confidence medium. Fewer than `min_points` (20) points say nothing.

## When it is wrong

Easy tasks trained for long (digits, a few well separated clusters), and runs that go on from a trained model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="data", fixes=("check-features", "check-split", "early-stopping"))
def loss_floor_too_early(
    train_loss: Series,
    train_accuracy: Series,
    accuracies: Accuracies,
    *,
    max_floor: float = 0.05,
    latest: float = 0.1,
    min_accuracy: float = 0.995,
    min_points: int = 20,
) -> Iterator[Diagnosis]:
    """One diagnosis from the step at which the floor was reached."""
    loss = finite_points(train_loss, min_points)
    above = np.flatnonzero(loss.smoothed() > max_floor * float(loss.values[0]))
    if loss.values[0] <= 0 or loss.values.min() < 0 or not len(above) or above[-1] + 1 >= len(loss):
        return
    reached, last = int(loss.steps[above[-1] + 1]), int(loss.steps[-1])
    share, seconds = 1 - loss.share_of_run(reached), loss.seconds_after(reached)
    later = [_later_half(series.finite, latest) for series in (train_accuracy, accuracies.val) if series is not None]
    if share < 1 - latest or any(level is None or level < min_accuracy for level in later):
        return
    perfect = len(later) == 2 and later[1] is not None and later[1] >= 0.9995
    yield Diagnosis(
        Message(
            "Training loss fell below {floor:%} of its start by step {reached} ({early:%} of the run); accuracy is {accuracy:%} since.",
            floor=max_floor,
            early=1 - share,
            reached=reached,
            accuracy=later[0],
        ),
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM if perfect else Confidence.LOW,
        onset_step=reached,
        last_step=last,
        impact=Impact(
            "time", Message("{share:%} of the run ({seconds:duration}) came after the floor.", share=share, seconds=seconds), share
        ),
        exhibits=(SeriesExhibit(((loss.run, loss.tag),), (Mark(reached, last, Message("at the floor")),)),),
    )


def _later_half(accuracy: Series, latest: float) -> float | None:
    """The median accuracy after `latest` of its points, None where there are fewer than three."""
    return accuracy.level(latest, 1) if len(accuracy) >= 3 else None
