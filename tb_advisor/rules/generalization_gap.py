"""Training accuracy lies far above validation accuracy, and the gap stays.

## Why it matters

The model knows its training examples better than the task. The validation loss need not rise for that: the gap is what
regularization, augmentation or more data could win.

## How it is found

In the last fifth of the evaluations the training accuracy, smoothed over the points since the evaluation before, lies
at least `min_gap` (15 percentage points) above the validation accuracy in the median, and never less than half of that. The
gap must also be `min_noise_ratio` (4) times the jitter of the validation accuracy. Fewer than `min_evaluations` (5) say nothing.

## When it is wrong

A validation set that is harder by design (another domain, later data). Gaps of about ten points are usual on small image sets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="generalization", fixes=("augment-data", "weight-decay", "dropout", "label-smoothing", "more-data", "ensemble", "check-split")
)
def generalization_gap(
    train_accuracy: Series, val_accuracy: Series, *, min_gap: float = 0.15, min_noise_ratio: float = 4.0, min_evaluations: int = 5
) -> Iterator[Diagnosis]:
    """One diagnosis from the evaluation on after which the gap stayed."""
    train, val = (finite_points(series, min_evaluations) for series in (train_accuracy, val_accuracy))
    level = train.level_at(val)
    gaps = level - val.values
    last_fifth = gaps[-max(3, len(val) // 5) :]
    gap = float(np.median(last_fifth))
    if gap < max(min_gap, min_noise_ratio * val.noise) or float(last_fifth.min()) < min_gap / 2:
        return
    small = np.flatnonzero(gaps < min_gap / 2)
    onset, last = int(val.steps[small[-1] + 1 if len(small) else 0]), int(val.steps[-1])
    curves = [(val.run, val.tag)]
    if train.shares_axis_with(val):
        curves.insert(0, (train.run, train.tag))
    yield Diagnosis(
        Message(
            "Training accuracy is {train:%}, validation accuracy {val:%}; the gap has stayed since step {onset}.",
            train=float(np.median(level[-max(3, len(val) // 5) :])),
            val=float(np.median(val.values[-max(3, len(val) // 5) :])),
            onset=onset,
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if gap >= 2 * min_gap and len(val) >= 2 * min_evaluations else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        exhibits=(SeriesExhibit(tuple(curves), (Mark(onset, last, Message("gap of {gap:%}", gap=gap)),)),),
    )
