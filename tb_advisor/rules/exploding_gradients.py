"""Gradients grow far beyond their usual size, and the run does not come back from it.

## Why it matters

A gradient that is a hundred times its usual size moves the weights a hundred times as far, to a place that nothing was
learned about. The next gradient is often larger still, until the loss is NaN or the model is stuck. What was learned
before is lost within a step, and the loss shows it only afterwards.

## How it is found

In the logged norm of the gradient over the whole model, else in the norms and histograms of the layers, of which a
histogram counts by the largest absolute value that it reaches. The usual size is the median of the first `early_share`
(20%) of the points. Gradients explode when

- they reach `min_rise` (20) times their usual size, and `min_size` (10): smaller ones also move in healthy runs, and
  clipping deals with them; or
- their norm reaches `max_norm` (1,000), and `max_norm_per_loss` (300) for each unit of the lowest training loss: in a
  healthy run a norm is some ten times its loss, also where the loss is a sum over many examples, and larger only by as
  much as the loss falls. It must end below that: a norm that stays large in a run that learns is a matter of scale, as
  when it is logged before the loss scale is divided out. Where the training loss does not end lower by `min_progress`
  (10%) and twice the standard error of the two levels, nothing is learned, and the loss is no scale: gradients that
  explode from the first step on lift it with them. The norm alone counts then; or
- their norm becomes NaN or infinite and stays so to the end, for three points or with a loss that is NaN too. Single such
  points are healthy in mixed precision, where the loss scaling skips the step.

A gradient norm also rises 20- to 40-fold where a small transformer starts to learn, and for one corrupt batch. Therefore
a rise counts only with its damage: the training loss (the median of its last 10%) ends more than `max_loss_rise` (25%) and
its own noise above its level before the rise; or, where it had not fallen by `min_progress` yet, never falls by as much.
Where there is no training loss whose level says anything, the gradients must end `far_beyond` (5) times further up. A
norm beyond any scale (the second case) also counts without damage, in the first tenth of the points or for three points:
then it is a warning. Confidence is high where `far_beyond` times the limit is reached, or where the norm rose before it
became NaN.

One cause is told once: the gradient acts before the loss shows it, so that divergence and spikes of the loss are folded
under exploding gradients. A training loss that becomes NaN stays the first finding, because it ended the run; the
gradients that led there are folded under it. Where the training loss hides its NaN (the Trainer of Hugging Face writes 0
for it unless `logging_nan_inf_filter=False`), the gradients are the first finding.

## When it is wrong

A layer that the optimizer does not update keeps its gradient from step to step, so that its histogram grows without
bound: where several layers are logged and one alone grows, nothing is said. A task that becomes harder during training,
such as a curriculum, lets gradients and loss rise together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.gradients import Gradients
from tb_advisor.message import Message, Missing, number
from tb_advisor.rule import rule
from tb_advisor.series import Series

_LASTING = 3
_CONSEQUENCES = (
    "class-collapse",
    "loss-divergence",
    "loss-not-decreasing",
    "loss-spikes",
    "noisy-validation",
    "oscillating-loss",
    "overfitting",
    "overtraining",
    "underfitting",
)


@dataclass(frozen=True, eq=False)
class _Curve:
    """A norm, or the largest values of a layer's histograms; `layer` is empty for the whole model."""

    series: Series
    layer: str = ""
    of_histograms: bool = False


@dataclass(frozen=True, eq=False)
class _Explosion:
    """Where it began, the usual and the highest size, and the step at which the norm became `kind` (NaN, +Inf) for good."""

    curve: _Curve
    onset_step: int
    usual: float
    highest: float
    highest_step: int
    did_damage: bool
    certain: bool
    broken_step: int | None = None
    kind: str = ""


@rule(
    category="stability",
    fixes=(
        "clip-gradients",
        "lower-learning-rate",
        "warm-up",
        "check-inputs",
        "better-initialization",
        "normalize-layers",
        "residual-links",
        "loss-scaling",
        "scale-inputs",
        "clean-rows",
        "stable-loss",
        "plot-schedule",
        "log-histograms",
    ),
)
def exploding_gradients(
    gradients: Gradients,
    *,
    min_rise: float = 20.0,
    min_size: float = 10.0,
    max_norm: float = 1000.0,
    max_norm_per_loss: float = 300.0,
    early_share: float = 0.2,
    max_loss_rise: float = 0.25,
    min_progress: float = 0.1,
    far_beyond: float = 5.0,
    min_points: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis: of the whole model's norm, else of the layer whose gradient grew most."""
    loss = gradients.loss
    whole = [_Curve(gradients.norm)] if gradients.norm is not None else []
    layers = [_Curve(layer.largest, layer.layer, layer.of_histograms) for layer in gradients.layers]

    def explosion(curve: _Curve) -> _Explosion | None:
        broken = _broken_at(curve, loss)
        if broken is not None:
            return _breakdown(curve, broken, min_rise, min_size)
        points = curve.series.finite
        if len(points) < min_points:
            return None
        usual = float(np.median(points.values[: max(3, round(early_share * len(points)))]))
        limit = max(min_rise * usual, min_size)
        large = points.values >= limit
        beyond = _beyond_scale(curve, loss, max_norm, max_norm_per_loss, min_progress)
        if loss is None:
            damaged = bool(points.end >= far_beyond * limit)
        else:
            damaged = bool(large.any()) and _did_damage(points, int(large.argmax()), loss, max_loss_rise, min_progress)
        if usual > 0 and damaged:
            return _rise(curve, large, usual, did_damage=True, certain=bool(beyond.any() or points.values.max() >= far_beyond * limit))
        if beyond[: len(beyond) // 10 + 1].any() or beyond.sum() >= _LASTING:
            return _rise(curve, beyond, float(np.median(points.values)), did_damage=False, certain=False)
        return None

    if all(len(curve.series.finite) < min_points and _broken_at(curve, loss) is None for curve in (*whole, *layers)):
        raise Missing("{tag} has fewer than {needed} finite points", tag=(*whole, *layers)[0].series.tag, needed=min_points)
    of_model = [found for found in map(explosion, whole) if found is not None]
    of_layers = sorted((found for found in map(explosion, layers) if found is not None), key=_times, reverse=True)
    one_of_many = len({found.curve.layer for found in of_layers}) == 1 < len({curve.layer for curve in layers})
    if of_model:
        yield _diagnosis(of_model[0], loss, most=of_layers[0].curve.layer if of_layers else "")
    elif of_layers and not one_of_many:
        yield _diagnosis(of_layers[0], loss)


def _times(found: _Explosion) -> float:
    return found.highest / found.usual if found.usual > 0 else np.inf


def _broken_at(curve: _Curve, loss: Series | None) -> int | None:
    """The index from which on a norm is NaN or infinite to the end; None where it is not, or where it never was a number
    beside a loss that is one.
    """
    usable = np.flatnonzero(np.isfinite(curve.series.values))
    first = int(usable[-1]) + 1 if len(usable) else 0
    loss_broke = loss is not None and not np.isfinite(loss.values[-1])
    lasts = loss_broke or (len(usable) > 0 and len(curve.series) - first >= _LASTING)
    return first if first < len(curve.series) and lasts and not curve.of_histograms else None


def _breakdown(curve: _Curve, broken: int, min_rise: float, min_size: float) -> _Explosion:
    """How a norm came to its end: the rise before it counts from its lowest usual size, for the end may come early."""
    series = curve.series
    before = series[:broken].finite
    kind, step = number(float(series.values[broken])), int(series.steps[broken])
    if not len(before):
        return _Explosion(curve, step, np.nan, np.nan, step, True, False, step, kind)
    usual = min(float(np.median(before.values)), float(before.values[0]))
    large = np.flatnonzero(before.values >= max(min_rise * usual, min_size))
    onset = int(before.steps[large[0]]) if len(large) else step
    top = int(before.values.argmax())
    return _Explosion(curve, onset, usual, float(before.values[top]), int(before.steps[top]), True, len(large) > 0, step, kind)


def _rise(curve: _Curve, large: NDArray[np.bool_], usual: float, *, did_damage: bool, certain: bool) -> _Explosion:
    points = curve.series.finite
    top = int(points.values.argmax())
    onset, highest, highest_step = int(points.steps[large.argmax()]), float(points.values[top]), int(points.steps[top])
    return _Explosion(curve, onset, usual, highest, highest_step, did_damage, certain)


def _beyond_scale(curve: _Curve, loss: Series | None, max_norm: float, max_norm_per_loss: float, min_progress: float) -> NDArray[np.bool_]:
    """Which finite points of a norm are too large for the loss that this run reaches, or for any where it learns nothing."""
    points = curve.series.finite
    if curve.of_histograms or loss is None or not len(loss.finite):
        return np.zeros(len(points), dtype=np.bool_)
    loss = loss.finite
    if not _learns(loss, min_progress):
        return np.asarray(points.values >= max_norm)
    limit = max(max_norm, max_norm_per_loss * float(loss.smoothed().min()))
    return np.asarray((points.values >= limit) & bool(points.end < limit))


def _learns(loss: Series, min_progress: float) -> bool:
    """Whether the loss ends below its start by more than two standard errors of these medians (each 1.25 × noise ÷ √points)."""
    error = 1.25 * loss.noise * np.hypot(max(3, len(loss) // 20) ** -0.5, max(3, len(loss) // 10) ** -0.5)
    return bool(loss.start - loss.end >= max(min_progress * abs(loss.start), 2 * error))


def _did_damage(points: Series, onset: int, loss: Series, max_loss_rise: float, min_progress: float) -> bool:
    """Whether the training loss ends above its level before the rise; where nothing had been learned by then, whether it never
    falls below that level.
    """
    if not np.isfinite(loss.values[-1]):
        return True
    loss = loss.finite
    beside = loss.at(points)[: max(1, onset)]
    start, before = float(np.median(beside[: max(3, len(points) // 20)])), float(np.median(beside[-15:]))
    little = min_progress * abs(start)
    if before > start - little:
        return loss.end > min(before, start) - little
    return loss.end - before > max(max_loss_rise * max(abs(before), 0.2 * abs(start)), loss.noise)  # near zero, a ratio says nothing


def _diagnosis(found: _Explosion, loss: Series | None, most: str = "") -> Diagnosis:
    series = found.curve.series
    last = int(series.steps[-1])
    share, seconds = 1 - series.share_of_run(found.onset_step), series.seconds_after(found.onset_step)
    mark = Mark(found.onset_step, last, Message("gradients {usual} → {highest}", usual=found.usual, highest=found.highest))
    chart = HistogramExhibit(series.run, series.tag) if found.curve.of_histograms else SeriesExhibit(((series.run, series.tag),), (mark,))
    hidden = found.broken_step is not None and loss is not None and bool(np.isfinite(loss.values[-1]))
    after = Message("{share:%} of the run ({seconds:duration}) came after it.", share=share, seconds=seconds)
    return Diagnosis(
        _message(found, most),
        severity=Severity.ERROR if found.did_damage else Severity.WARNING,
        confidence=Confidence.HIGH if found.certain else Confidence.MEDIUM,
        onset_step=found.onset_step,
        last_step=last,
        impact=Impact("time", after, share) if found.did_damage else None,
        exhibits=(chart,),
        explains=(*_CONSEQUENCES, *(["non-finite-loss"] if hidden else [])) if found.did_damage else (),
    )


def _message(found: _Explosion, most: str) -> Message:
    what = "The gradient norm"
    if found.curve.layer:
        what = "The largest gradient of {layer}" if found.curve.of_histograms else "The gradient norm of {layer}"
    if not found.kind and not found.did_damage:
        said = " reached {highest} at step {step}; its median is {usual}"
    elif not found.kind:
        said = " rose from {usual} to {highest} at step {step}"
        said += ", from step {onset} on" if found.onset_step < found.highest_step else ""
    elif found.certain:
        said = " rose from {usual} to {highest} at step {step}, and is {kind} from step {broken} on"
    elif np.isfinite(found.usual):
        said = " is {kind} from step {broken} on; it was {usual} before"
    else:
        said = " is {kind} from its first point on"
    return Message(
        what + said + ("; {most} grew most." if most and not found.kind else "."),
        layer=found.curve.layer,
        usual=found.usual,
        highest=found.highest,
        step=found.highest_step,
        onset=found.onset_step,
        broken=found.broken_step,
        kind=found.kind,
        most=most,
    )
