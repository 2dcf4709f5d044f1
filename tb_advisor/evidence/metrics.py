"""The metrics of a job: all of them, and the pair of accuracies that a practitioner would compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tb_advisor.evidence.roles import ACCURACY_WORDS, Assignment, Roles
from tb_advisor.message import Missing
from tb_advisor.series import Series

# Words that say which kind of plain accuracy it is. What else stands beside the word (top 5, a class, a rank) makes another metric.
_KINDS_OF_ACCURACY = ACCURACY_WORDS | frozenset("categorical sparse binary multiclass top cls clf classification percent pct".split())
_ERRORS_OF_REGRESSION = frozenset("mae mse rmse mape smape r2".split())
_LOOKED_FOR = {
    False: "epoch_accuracy in a run train/, train/acc, Accuracy/train, train_accuracy, acc",
    True: "epoch_accuracy in a run validation/, val/acc, eval/accuracy, Accuracy/val, val_accuracy, accuracy in a run eval/",
}
_SPECIAL = {
    "reinforcement-learning": "an accuracy says little about reinforcement learning",
    "gan": "an accuracy of adversarial training is the discriminator's",
}


@dataclass(frozen=True)
class Metric:
    """One metric of a job, without what a restart did again.

    `part` has the words that tell it from other metrics; training and validation of one metric have the same. `is_running` says
    that it is a running mean or of single batches, and not of an epoch; `is_test`, that it was measured on the test set.
    """

    series: Series
    is_validation: bool
    higher_is_better: bool
    part: frozenset[str]
    is_running: bool = False
    is_test: bool = False

    @property
    def name(self) -> str:
        """What it is called in a sentence: its split and its tag."""
        split = "Validation" if self.is_validation else "Training"
        return f"{split} metric ({self.series.tag})"

    @property
    def is_accuracy(self) -> bool:
        """Whether it is the share of examples, or the percentage, whose first guess is right."""
        values = self.series.finite.stored_values
        named = self.higher_is_better and bool(self.part) and self.part <= _KINDS_OF_ACCURACY and bool(self.part & ACCURACY_WORDS)
        return named and bool(len(values)) and float(values.min()) >= 0 and float(values.max()) <= 100

    @property
    def is_of_regression(self) -> bool:
        """Whether only the prediction of numbers has such a metric."""
        return bool(self.part & _ERRORS_OF_REGRESSION)


def metrics(roles: Roles) -> tuple[Metric, ...]:
    """Every metric of the job: training before validation, plain names before others, means of an epoch before running means.

    Raises `Missing` where there is none.
    """
    found = [_metric(a) for a in roles.of("metric")]
    if not found:
        raise Missing("no tag plays the role of a metric (looked for words such as accuracy, f1, auc, mae, perplexity)")
    return tuple(sorted(found, key=lambda m: (m.is_validation, *_rank(m, None))))


@dataclass(frozen=True)
class Accuracies:
    """The accuracy of both splits as shares, 0 to 1, None where one is not logged."""

    train: Series | None
    val: Series | None


def accuracies(roles: Roles) -> Accuracies:
    """The accuracies of the job, as far as they are logged, also where they are in percent. That of validation is the partner of
    that of training. One that is zero all the time was not measured: Keras logs that where the metric is not one of the task.
    """
    found = [metric for metric in map(_metric, roles.of("metric")) if metric.is_accuracy and metric.series.finite.stored_values.any()]
    train = min((m for m in found if not m.is_validation), key=lambda m: _rank(m, None), default=None)
    val = min((m for m in found if m.is_validation), key=lambda m: _rank(m, train), default=None)
    return Accuracies(_as_share(train), _as_share(val))


def train_accuracy(accuracies: Accuracies, task: str) -> Series:
    """The training accuracy, 0 to 1. Raises `Missing` where there is none, and for tasks that an accuracy says little about."""
    return _needed(accuracies.train, task, validation=False)


def val_accuracy(accuracies: Accuracies, task: str) -> Series:
    """The validation accuracy, 0 to 1, on the axis of the training accuracy where there is one. Raises `Missing` where there is
    none, and for tasks that an accuracy says little about.
    """
    return _needed(accuracies.val, task, validation=True)


def partner_of(metric: Metric, metrics: Iterable[Metric]) -> Metric | None:
    """The same metric of validation, for one of training: on its axis where there is one. None where there is none."""
    same = [m for m in metrics if m.is_validation and m.part == metric.part]
    return min(same, key=lambda m: _rank(m, metric), default=None)


def _metric(a: Assignment) -> Metric:
    running = "epoch" not in a.words and bool({"batch", "step", "iterations"}.intersection(a.words))
    test = bool({"test", "testing"} & {*a.words, *a.series.run.lower().split("/")})
    return Metric(a.series.surviving, a.evaluation, bool(a.higher_is_better), a.part, running, test)


def _rank(metric: Metric, train: Metric | None) -> tuple[object, ...]:
    """Smaller is better: the partner of `train`, plain names, means of an epoch, the axis of `train`, val before test, more points."""
    series = metric.series
    other_part = train is not None and metric.part != train.part
    other_axis = train is not None and bool(len(series) and len(train.series)) and not series.shares_axis_with(train.series)
    return other_part, len(metric.part), metric.is_running, other_axis, metric.is_test, -len(series), series.run, series.tag


def _needed(accuracy: Series | None, task: str, *, validation: bool) -> Series:
    if task in _SPECIAL:
        raise Missing(_SPECIAL[task])
    if accuracy is None:
        role = "val_accuracy" if validation else "train_accuracy"
        raise Missing("no tag plays the role of {role} (looked for {names})", role=role, names=_LOOKED_FOR[validation])
    return accuracy


def _as_share(metric: Metric | None) -> Series | None:
    """The series in shares: a value above 1 tells that it is in percent."""
    if metric is None or float(metric.series.finite.stored_values.max()) <= 1.01:
        return None if metric is None else metric.series
    series = metric.series
    return Series(series.steps, series.wall_times, series.values / 100, series.run, series.tag)
