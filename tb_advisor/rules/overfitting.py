"""Validation loss rises while training loss keeps falling.

## Why it matters

The model learns the training examples by heart. Everything after the best validation loss costs time and makes the
model worse on new data; the last checkpoint is not the one to keep.

## How it is found

The lowest validation loss must come before `latest_best` (80%) of the run, and the median of the last three evaluations
must lie at least `min_rise` (15%) above it: one bad evaluation is noise, three are not. The rise must also be larger
than `min_noise_ratio` (2) times the evaluation's own jitter, and larger than `min_rise_of_start` (5%) of the first
validation loss (of 1 where that is higher), so that a converged loss near zero, where 0.011 to 0.03 is "×2.7", stays
silent. The lowest of many noisy evaluations is always a lucky one: the loss must have risen as a whole too, the median
of its last fifth above the lowest median of a fifth, by half of `min_rise` and by `min_level_noise_ratio` (2.5)
standard errors of such a median. (Of 300 simulated healthy runs of 20 to 200 evaluations with 5 to 20% noise, 0 to 1% are
then called overfitting, against 0 to 18% without this.) Meanwhile the training loss must have fallen to `max_train`
(90%) of its value at that point, or be below 5% of its start: else the job diverges, and that is another diagnosis.
Training and validation are matched by step, or by wall time where they count steps in different units.

## When it is wrong

A validation set of a few dozen examples, or one that changes between evaluations. A cross entropy may rise while
accuracy still improves: the model becomes too sure of its mistakes, and calibration or label smoothing helps more
than stopping.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.checkpoints import NO_CHECKPOINTS, Checkpoints
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="generalization",
    fixes=("early-stopping", "weight-decay", "dropout", "augment-data", "label-smoothing", "smaller-model", "more-data", "ensemble"),
)
def overfitting(
    train_loss: Series,
    val_loss: Series,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    *,
    min_rise: float = 0.15,
    min_rise_of_start: float = 0.05,
    min_noise_ratio: float = 2.0,
    min_level_noise_ratio: float = 2.5,
    max_train: float = 0.9,
    latest_best: float = 0.8,
    min_evaluations: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis from the best evaluation on."""
    val, train = (finite_points(series, min_evaluations) for series in (val_loss, train_loss))
    best_at = int(val.values.argmin())
    best, best_step, last = float(val.values[best_at]), int(val.steps[best_at]), int(val.steps[-1])
    end = float(np.median(val.values[-3:]))
    rise = end - best
    if best <= 0:
        raise Missing("{tag} takes values at or below zero, so that its rise has no scale", tag=val.tag)
    floor = max(min_rise * best, min_rise_of_start * min(1.0, float(val.values[0])), min_noise_ratio * val.noise)
    trained = train.level_at(val)
    train_at_best, train_end = float(trained[best_at]), float(np.median(trained[-3:]))
    train_fell = train_at_best > 0 and (train_end <= max_train * train_at_best or train_end < 0.05 * train.start)
    if (
        rise < floor
        or val.share_of_run(best_step) >= latest_best
        or not train_fell
        or not _level_rose(val, min_rise, min_level_noise_ratio)
    ):
        return
    share, seconds = 1 - val.share_of_run(best_step), val.seconds_after(best_step)
    clear_cut = rise >= 2 * floor or (len(val) - best_at >= 6 and rise >= 2 * min_rise * best)
    curves = [(val.run, val.tag)]
    if train.shares_axis_with(val):
        curves.insert(0, (train.run, train.tag))
    yield Diagnosis(
        Message(
            "Validation loss was lowest at step {best_step} ({best}); it has risen {rise:%} since, while training loss fell {fall:%}.",
            best_step=best_step,
            best=best,
            rise=rise / best,
            fall=1 - train_end / train_at_best,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if clear_cut else Confidence.MEDIUM,
        onset_step=best_step,
        last_step=last,
        impact=Impact(
            "time",
            Message("{share:%} of the run ({seconds:duration}) came after the best checkpoint.", share=share, seconds=seconds)
            + checkpoints.best_before(val, best_step),
            share,
        ),
        explains=("overtraining",),
        exhibits=(SeriesExhibit(tuple(curves), (Mark(best_step, last, Message("overfitting, validation +{rise:%}", rise=rise / best)),)),),
    )


def _level_rose(val: Series, min_rise: float, min_noise_ratio: float) -> bool:
    """Whether the validation loss rose as a whole: the median of its last fifth against the lowest median of a fifth."""
    window = max(3, len(val) // 5)
    lowest = float(np.median(np.lib.stride_tricks.sliding_window_view(val.values, window), axis=1).min())
    rise = float(np.median(val.values[-window:])) - lowest
    noise = 1.25 * val.noise / np.sqrt(window)  # standard error of a median of Gaussian noise
    return bool(rise >= max(min_rise / 2 * lowest, min_noise_ratio * noise))
