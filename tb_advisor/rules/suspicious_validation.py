"""Validation is far better than training, or exactly the same.

## Why it matters

A score on new data that beats the score on the training data is most often no score on new data: examples of the training set
are in the validation set, the label is among the inputs, only the easy examples were kept for validation, or the training labels
are broken. The model will do worse in use than the log promises.

## How it is found

Each evaluation after the first `skip_share` (20%) is compared with the training loss before it, smoothed over the points since
the last evaluation. One of these must hold for most of them:

- the validation accuracy lies `min_gap` (0.15) above the training accuracy (strong dropout explains up to about 0.08);
- the validation loss is at most `max_ratio` (0.42) of the training loss, which is itself above 5% of its start (strong dropout
  explains down to 0.49); where both accuracies are logged, that of validation must be higher by 0.1 as well, for a penalty or
  label smoothing in the training loss alone changes its scale. Near the ceiling, where no such gap has room, the share of wrong
  answers must be at most `max_error_ratio` (0.1) of that in training, since who knows the labels makes no errors; that in
  training must be `min_error` (3%) or more, and its accuracy must not have become worse again by that much. A loss that is at most a tenth
  of that of training from the first evaluation on, and stays in the same proportion to it (within a factor of
  `max_change`, 2), is a mean beside a sum: no leak helps a model that has learned nothing yet;
- both losses are the same to six digits while they move: validation runs on the training data.

A training loss that ends above its start is another diagnosis. Fewer than `min_evaluations` (5) evaluations say nothing.

## When it is wrong

Mixup, label smoothing, heavy augmentation, or very strong dropout make training much harder than validation.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="data", fixes=("check-split", "check-labels", "representative-validation"))
def suspicious_validation(
    train_loss: Series,
    val_loss: Series,
    accuracies: Accuracies,
    *,
    max_ratio: float = 0.42,
    min_gap: float = 0.15,
    max_error_ratio: float = 0.1,
    min_error: float = 0.03,
    max_change: float = 2.0,
    skip_share: float = 0.2,
    min_evaluations: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis over all evaluations."""
    train, val = (finite_points(series, min_evaluations) for series in (train_loss, val_loss))
    if train.end > train.start:
        return
    gap = _accuracy_gap(accuracies, skip_share, min_evaluations)
    ratio = _loss_ratio(train, val, skip_share, max_ratio)
    if _identical(train, val):
        message = Message("Training and validation loss are the same to six digits in {count} evaluations.", count=len(val))
        clear_cut = True
    elif gap is not None and gap >= min_gap:
        message = Message(
            "Validation accuracy lies {points:.0f} percentage points above training accuracy in the median.", points=100 * gap
        )
        clear_cut = accuracies.val is not None and accuracies.val.finite.end >= 0.99
    elif (
        ratio is not None
        and (gap is None or gap >= 0.1 or _fewer_errors(accuracies, skip_share, max_error_ratio, min_error))
        and not _other_unit(train, val, ratio, max_change)
    ):
        message = Message("Validation loss is {ratio:%} of the training loss in most evaluations.", ratio=ratio)
        clear_cut = ratio <= 0.1
    else:
        return
    first, last = int(val.steps[0]), int(val.steps[-1])
    curves = [(val.run, val.tag)]
    if train.shares_axis_with(val):
        curves.insert(0, (train.run, train.tag))
    yield Diagnosis(
        message,
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if clear_cut else Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        explains=("loss-floor-too-early", "overtraining", "noisy-validation"),
        exhibits=(SeriesExhibit(tuple(curves), (Mark(first, last, Message("validation too good")),)),),
    )


def _accuracy_gap(accuracies: Accuracies, skip_share: float, needed: int) -> float | None:
    """The median of validation minus training accuracy, None where one is not logged or too short."""
    if accuracies.train is None or accuracies.val is None:
        return None
    train, val = accuracies.train.finite, accuracies.val.finite
    if len(train) < needed or len(val) < needed:
        return None
    return float(np.median((val.values - train.level_at(val))[int(skip_share * len(val)) :]))


def _loss_ratio(train: Series, val: Series, skip_share: float, max_ratio: float) -> float | None:
    """The median of validation by training loss where most evaluations are below `max_ratio`, else None."""
    kept = slice(int(skip_share * len(val)), None)
    level, values = train.level_at(val)[kept], val.values[kept]
    counts = level > 0.05 * abs(train.start)
    low = counts & (values >= 0) & (values <= max_ratio * level)
    if counts.sum() < max(3, len(level) // 2) or low.sum() < 0.6 * counts.sum():
        return None
    return float(np.median(values[counts] / level[counts]))


def _fewer_errors(accuracies: Accuracies, skip_share: float, max_ratio: float, min_error: float) -> bool:
    """Whether the median share of wrong answers is far lower in validation. Both accuracies are there."""
    if accuracies.train is None or accuracies.val is None:
        return False
    train, val = accuracies.train.finite, accuracies.val.finite
    kept = slice(int(skip_share * len(val)), None)
    error, val_error = float(np.median(1 - train.level_at(val)[kept])), float(np.median(1 - val.values[kept]))
    became_harder = float(train.smoothed().max()) - train.end >= min_error
    return error >= min_error and val_error <= max_ratio * error and not became_harder


def _other_unit(train: Series, val: Series, ratio: float, max_change: float) -> bool:
    """Whether validation is a small share of training from the first evaluation on, and always about the same one."""
    first = float(val.values[0]) / max(float(train.level_at(val)[0]), 1e-300)
    return 0 < first <= 0.1 and ratio <= max_change * first and first <= max_change * ratio


def _identical(train: Series, val: Series) -> bool:
    """Whether both curves have the same values, to six digits, and move by more than 1%."""
    if len(train) > 2 * len(val) or np.ptp(val.values) <= 0.01 * float(np.abs(val.values).max()):
        return False
    same = np.abs(train.at(val) - val.values) <= 1e-6 * np.abs(val.values)
    return bool(same.mean() >= 0.9)
