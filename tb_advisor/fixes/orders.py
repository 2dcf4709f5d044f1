"""What a run's evidence points at comes first: for a rule, a condition and the fixes that go before the others where it holds.

Conditions are functions of evidence by name, and of the `diagnosis` that the fixes are for. The first row of a rule whose condition
holds counts; where the log does not tell, the rule's own order stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_advisor.diagnosis import Diagnosis
from tb_advisor.evidence.histograms import LayerHistograms
from tb_advisor.evidence.losses import Loss
from tb_advisor.evidence.restarts import Restart
from tb_advisor.fixes.values import rate_before_rise
from tb_advisor.logdir.jobs import Job
from tb_advisor.series import Series

# The cross entropy of a guess among 5e8 classes, the squared error of targets with a spread of 4.5.
_FAR_OFF = 20.0
_RISE_BEFORE = 3.0
_STILL = 2e-4


@dataclass(frozen=True)
class Order:
    """Which fixes of a rule come first where a condition holds."""

    rule: str
    condition: Callable[..., bool]
    first: tuple[str, ...]


def starts_far_off(train_loss: Series) -> bool:
    """Whether the first training loss is above that of any guess on scaled data: inputs, targets or weights have the wrong scale."""
    first = train_loss.finite.values[:1]
    return bool((first > _FAR_OFF).any())


def nan_out_of_nothing(losses: tuple[Loss, ...]) -> bool:
    """Whether the first value that is no number is NaN, and the loss had not risen before: one bad row, or one bad operation."""
    return _broke_as(losses, np.isnan)


def infinite_out_of_nothing(losses: tuple[Loss, ...]) -> bool:
    """Whether the first value that is no number is infinite, and the loss had not risen before: a logarithm of zero, or an overflow."""
    return _broke_as(losses, np.isinf)


def _broke_as(losses: tuple[Loss, ...], is_kind: Callable[[float], bool]) -> bool:
    broken = [loss.series for loss in losses if not np.isfinite(loss.series.values).all()]
    if not broken:
        return False
    series = min(broken, key=lambda s: float(s.wall_times[~np.isfinite(s.values)][0]))
    at = int(np.flatnonzero(~np.isfinite(series.values))[0])
    before = series.values[max(0, at - 5) : at]
    usual = float(np.median(series.values[max(0, at - 55) : max(1, at - 5)])) if at else 0.0
    return bool(is_kind(float(series.values[at]))) and not (len(before) and before.max() >= _RISE_BEFORE * abs(usual))


def rate_rose(learning_rate: Series, diagnosis: Diagnosis) -> bool:
    """Whether the learning rate rose by half or more just before the onset."""
    return rate_before_rise(learning_rate, diagnosis) is not None


def rate_still_rises(learning_rate: Series) -> bool:
    """Whether the learning rate is highest in the last tenth of its points, and was below a third of that in the beginning."""
    values = learning_rate.values
    return len(values) >= 3 and int(values.argmax()) >= 0.9 * (len(values) - 1) and 3 * float(values[0]) < float(values.max())


def rate_is_zero(learning_rate: Series) -> bool:
    """Whether the learning rate is zero in the whole run."""
    return len(learning_rate) > 0 and not (learning_rate.values > 0).any()


def loss_stays_up(train_loss: Series, diagnosis: Diagnosis) -> bool:
    """Whether the loss is still up at the point behind a spike. One bad batch is over with the next one; where the loss has to come down
    again, a step was too long.
    """
    loss, onset = train_loss.finite, diagnosis.onset_step
    at = -1 if onset is None else int(np.searchsorted(loss.steps, onset))
    if not 3 <= at < len(loss) - 1:
        return False
    usual = float(np.median(loss.values[max(0, at - 15) : at]))
    return float(loss.values[at + 1]) - usual >= 0.25 * (float(loss.values[at]) - usual) > 0


def model_stands_still(val_loss: Series) -> bool:
    """Whether the validation loss is the same in all evaluations, to 0.02%: the weights do not move."""
    values = val_loss.finite.values
    return len(values) >= 3 and float(np.ptp(values)) < _STILL * abs(float(np.median(values)))


def model_moves(val_loss: Series) -> bool:
    """Whether the validation loss changes: the weights do move."""
    return len(val_loss.finite) >= 3 and not model_stands_still(val_loss)


def saturated_from_start(activation_histograms: tuple[LayerHistograms, ...], diagnosis: Diagnosis) -> bool:
    """Whether it is so at the first histogram already: no training brought it there, but the inputs or the first weights."""
    first = min((int(each.histograms.steps[0]) for each in activation_histograms), default=None)
    return first is not None and diagnosis.onset_step is not None and diagnosis.onset_step <= first


def validation_is_little_better(train_loss: Series, val_loss: Series) -> bool:
    """Whether the validation loss ends between a tenth and all of the training loss: labels or difficulty differ. A leak takes it further
    down, and the same data gives the same loss.
    """
    train, val = train_loss.finite, val_loss.finite
    return bool(len(train) and len(val)) and 0.1 * train.end < val.end < (1 - 1e-6) * train.end


def goes_on_after_reset(job: Job, restarts: tuple[Restart, ...]) -> bool:
    """Whether a counter went back to the start of a curve while its value went on: the weights were kept, the step was not."""
    for restart in restarts:
        start = float(job.runs[restart.run].scalars[restart.tag].values[0])
        early = restart.next_step - restart.first_step <= 0.1 * (restart.last_step - restart.first_step)
        if early and abs(restart.after - restart.before) < 0.5 * abs(start - restart.after):
            return True
    return False


_DATA_OR_OPERATION = ("clean-rows", "stable-loss")
_OPERATION = ("stable-loss", "loss-scaling")
_SCALE = ("scale-inputs", "better-initialization")
_SCHEDULE = ("lower-learning-rate", "plot-schedule")

ORDERS = (
    *(
        row
        for rule in ("non-finite-loss", "exploding-gradients", "non-finite-weights")
        for row in (
            Order(rule, rate_rose, _SCHEDULE),
            Order(rule, starts_far_off, _SCALE),
            Order(rule, infinite_out_of_nothing, _OPERATION),
            Order(rule, nan_out_of_nothing, _DATA_OR_OPERATION),
        )
    ),
    Order("loss-divergence", rate_rose, _SCHEDULE),
    Order("loss-divergence", starts_far_off, ("lower-learning-rate", "scale-inputs")),
    Order("loss-not-decreasing", rate_is_zero, ("plot-schedule", "schedule-length")),
    Order("loss-not-decreasing", rate_still_rises, ("plot-schedule", "shorter-warm-up")),
    Order("loss-not-decreasing", model_stands_still, ("check-training-loop", "tune-learning-rate")),
    Order("loss-not-decreasing", model_moves, ("look-at-batch", "better-initialization")),
    Order("loss-spikes", rate_rose, _SCHEDULE),
    Order("loss-spikes", loss_stays_up, _SCHEDULE),
    Order("restart-overlap", goes_on_after_reset, ("resume-step", "checkpoint-whole-state")),
    Order("saturated-activations", saturated_from_start, _SCALE),
    Order("suspicious-validation", validation_is_little_better, ("check-labels", "representative-validation")),
)
