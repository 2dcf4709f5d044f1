"""Validation accuracy is stuck at one value: the model predicts one class, or guesses.

## Why it matters

The model does not use its inputs. The accuracy may look good where one class is frequent, and it will not change with more
training: the units are dead, the step was so large that it broke the network, or always saying the frequent class is the
easiest way to a lower loss.

## How it is found

Two forms, both with at least `min_evaluations` (5) evaluations of accuracy and loss:

- **At chance.** All accuracies lie within `max_range` (0.1), and the validation loss never falls below `min_loss_share` (97%) of ln k,
  the cross entropy of a guess among k classes. The number of classes is read from the loss of the untrained model, which is ln k
  too (the first point of training or validation), and the accuracy must then be 1/k to half of `max_range`, or exactly
  the same in most evaluations. Weights that are not small make the first loss higher than ln k: smaller numbers are tried down
  to 1/`max_excess` (1.2) of that, which must be one over the accuracy within 20%, and the loss in the second half must then be
  at `min_loss_share` of the first or more (a slow learner is below). Or, where the first losses were far higher, it is one over the
  accuracy, and the loss must end within 5% of ln k.
- **At the majority.** At least `min_stuck` (75%) of the evaluations have exactly the same accuracy, from the first quarter
  of them to the last, below `max_accuracy` (97%). The training accuracy, where it is logged, ends near it (two standard errors
  of fifty examples). The validation loss stays at `min_loss_share` or more of the entropy of two classes of which one has that
  share: a constant prediction cannot do better, and a model that tells classes apart usually does. In its second half the
  loss must still change: else nothing is updated any more (a learning rate of zero), which is another diagnosis.

## When it is wrong

A long plateau at the start of a run that learns later. A validation set of a few dozen examples whose labels are
partly wrong: the accuracy then stays at one value because nothing more can be learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series

_SAME = 1e-5
_FITS = 0.2


@rule(
    category="data",
    fixes=(
        "imbalance-metric",
        "class-weights",
        "resample-classes",
        "focal-loss",
        "lower-learning-rate",
        "better-initialization",
        "check-training-loop",
    ),
)
def class_collapse(
    train_loss: Series,
    val_loss: Series,
    val_accuracy: Series,
    accuracies: Accuracies,
    *,
    min_loss_share: float = 0.97,
    max_excess: float = 1.2,
    max_range: float = 0.1,
    min_stuck: float = 0.75,
    max_accuracy: float = 0.97,
    min_evaluations: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis from the first evaluation at the value at which the accuracy is stuck."""
    accuracy, val = (finite_points(series, min_evaluations) for series in (val_accuracy, val_loss))
    train = finite_points(train_loss, 1)
    median = float(np.median(accuracy.values))
    value, stuck = _most_frequent(accuracy)
    if min(value, median) < _SAME:
        return
    at_value = np.abs(accuracy.values - value) <= _SAME
    classes = 0
    if float(np.ptp(accuracy.values)) <= max_range:
        untrained = min(float(train.values[0]), float(val.values[0]))
        near = math.inf if stuck >= min_stuck else max_range / 2
        classes = _classes_guessed(val, median, untrained, min_loss_share, near, max_excess)
    majority = (
        stuck >= min_stuck
        and value < max_accuracy
        and bool(at_value[-1] and at_value[: math.ceil(len(accuracy) / 4)].any())
        and _training_agrees(accuracies.train, value)
        and val.level(0.5, 1) >= min_loss_share * _entropy(value)
        and float(np.ptp(val.values[len(val) // 2 :])) > 1e-4 * abs(float(val.values[-1]))
    )
    if not classes and not majority:
        return
    onset, last = int(accuracy.steps[0 if classes else at_value.argmax()]), int(accuracy.steps[-1])
    template = (
        "Validation accuracy is {value:%} in {stuck:%} of the evaluations, and the loss is no lower than that of always saying one class."
    )
    if classes:
        template = "Validation accuracy stays near {value:%}, and the loss ({loss}) is that of a guess among {classes} classes or worse."
    yield Diagnosis(
        Message(
            template,
            value=median if classes else value,
            stuck=stuck,
            loss=val.end,
            classes=classes,
        ),
        severity=Severity.ERROR,
        confidence=Confidence.HIGH if classes and stuck >= 0.9 and len(accuracy) >= 8 else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        fixes=("lower-learning-rate", "better-initialization", "check-training-loop", "imbalance-metric", "class-weights")
        if classes
        else (),
        explains=("underfitting", "unfinished-training", "generalization-gap", "metric-loss-disagreement", "noisy-validation"),
        exhibits=(SeriesExhibit(((accuracy.run, accuracy.tag),), (Mark(onset, last, Message("stuck at {value:%}", value=value)),)),),
    )


def _most_frequent(accuracy: Series) -> tuple[float, float]:
    """The value that occurs most often, and the share of the evaluations that have it."""
    values, counts = np.unique(np.round(accuracy.values / _SAME).astype(np.int64), return_counts=True)
    return float(values[counts.argmax()]) * _SAME, float(counts.max()) / len(accuracy)


def _classes_guessed(val: Series, accuracy: float, untrained: float, min_loss_share: float, near: float, max_excess: float) -> int:
    """The number of classes among which the model guesses all the time, 0 where it does not."""
    lowest = float(val.values.min())
    classes = round(math.exp(untrained)) if 0 < untrained < 20 else 0
    if classes >= 2 and lowest >= min_loss_share * math.log(classes) and abs(accuracy - 1 / classes) <= near:
        return classes
    for fewer in range(classes - 1, 1, -1):
        if fewer * max_excess < classes or val.level(0.5, 1) < min_loss_share * untrained:
            break
        if lowest >= min_loss_share * math.log(fewer) and abs(accuracy * fewer - 1) <= _FITS:
            return fewer
    classes = round(1 / accuracy)
    floor = min_loss_share * math.log(classes)
    return classes if classes >= 2 and floor <= lowest and val.end <= 1.05 * math.log(classes) else 0


def _entropy(share: float) -> float:
    """The entropy of two classes of which one has this share, in nats."""
    return -share * math.log(share) - (1 - share) * math.log(1 - share) if 0 < share < 1 else 0.0


def _training_agrees(train: Series | None, value: float) -> bool:
    """Whether the training accuracy is not logged, or ends within two standard errors of fifty examples of `value`."""
    return train is None or not len(train.finite) or abs(train.finite.end - value) <= 2 * math.sqrt(max(0.0, value * (1 - value)) / 50)
