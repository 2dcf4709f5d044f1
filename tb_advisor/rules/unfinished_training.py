"""Training ended while the loss still fell steadily.

## Why it matters

The run was stopped, or its learning rate so low, that the model had not come near what it can reach. The same model trained
longer, or with a higher learning rate, is better; conclusions about its size or its data are premature.

## How it is found

A healthy loss falls fast at first and then levels off. Here the second half of the training loss brought at least
`min_progress` (a third) of all progress, half as much as the first half: at that pace another run of the same length brings a
quarter of all progress again. (Small language models and fine-tuning, which have a high floor, come to 18 to 28%.) That much
is enough where at least `min_left` (65%) of the loss at the start is left; the less is left, the more it must be, up to
`min_steep_progress` (45%; a straight line brings 50%) at `min_left_when_steep` (50%), and nothing is said below that. A second
half that brought `min_steep_progress` is a warning; a lesser one must come of a steady fall, in which no tenth of the run lies
above the one before by `max_setback` (10%) of all progress, for what only makes up for a setback is no creep.

In all cases the loss must have fallen by `min_fall` (1%), or nothing moves at all; the last fifth must lie below the fifth
before it by `min_noise_ratio` (2) standard errors of their medians; the best validation loss, where it is logged, must be
among the last fifth of the evaluations; and no accuracy may end above `max_accuracy` (85%), where healthy classifiers are.
The job must be over. Fewer than `min_points` (10) points say nothing.

## When it is wrong

A fine-tuning that starts near its floor creeps too. A warm-up that fills most of a short run bends the curve in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import Loss, finite_points, main_validation
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="optimization", fixes=("train-longer", "raise-learning-rate", "tune-learning-rate"))
def unfinished_training(
    train_loss: Series,
    losses: tuple[Loss, ...],
    accuracies: Accuracies,
    finished: bool,
    *,
    min_progress: float = 1 / 3,
    min_left: float = 0.65,
    min_steep_progress: float = 0.45,
    min_left_when_steep: float = 0.5,
    max_setback: float = 0.1,
    max_accuracy: float = 0.85,
    min_fall: float = 0.01,
    min_noise_ratio: float = 2.0,
    min_points: int = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis over the second half of the run."""
    loss = finite_points(train_loss, min_points)
    if not finished or loss.start <= 0 or loss.end > (1 - min_fall) * loss.start:
        return
    if loss.fall_at_end < min_noise_ratio or not _validation_follows(losses):
        return
    left, progress = loss.end / loss.start, loss.progress_since(0.5)
    needed = np.interp(left, (min_left_when_steep, min_left), (min_steep_progress, min_progress))
    steep = progress >= min_steep_progress
    if left < min_left_when_steep or progress < needed or _is_solved(accuracies, max_accuracy):
        return
    if not steep and float(np.diff(loss.levels(10)).max()) > max_setback * (loss.start - loss.end):
        return
    first, last = int(loss.steps[0]), int(loss.steps[-1])
    middle = int(loss.steps[len(loss) // 2])
    resumed = first > last - first
    yield Diagnosis(
        Message(
            "Training loss still fell at the end ({end}, {left:%} of its start): {progress:%} of its fall came in the second half.",
            end=loss.end,
            left=left,
            progress=progress,
        ),
        severity=Severity.WARNING if steep else Severity.INFO,
        confidence=Confidence.LOW if resumed else Confidence.HIGH if steep and loss.fall_at_end >= 5 else Confidence.MEDIUM,
        onset_step=middle,
        last_step=last,
        exhibits=(SeriesExhibit(((loss.run, loss.tag),), (Mark(middle, last, Message("still falling")),)),),
    )


def _is_solved(accuracies: Accuracies, max_accuracy: float) -> bool:
    """Whether an accuracy that is logged ends above `max_accuracy`."""
    known = [a.finite for a in (accuracies.train, accuracies.val) if a is not None]
    return any(len(accuracy) and accuracy.end > max_accuracy for accuracy in known)


def _validation_follows(losses: tuple[Loss, ...]) -> bool:
    """Whether the main validation loss, where it is logged, has its best among its last fifth, at least the last two."""
    val = main_validation(losses)
    if val is None or len(val) < 3:
        return True
    return int(val.values.argmin()) >= len(val) - max(2, len(val) // 5)
