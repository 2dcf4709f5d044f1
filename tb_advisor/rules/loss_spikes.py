"""Training loss jumps far above its level and comes back.

## Why it matters

A spike is a batch or an update that nearly broke the run: a bad record, a learning rate at the edge, a gradient
without a ceiling. It costs the steps until the loss is back, and the next one may not come back. TensorBoard draws a
sample of the points and clips outliers, so that a short spike is often not in its chart.

## How it is found

The local level of each point is the median of the `window` (15) points around it, or of the points just before it
where that is lower. A spike is at least `min_ratio`
(1.5) times that level, at least `min_deviations` (12) times the scaled median absolute residual above it, and rises
by at least `min_progress` (30%) of the way that the loss fell in the whole run: the last keeps single outlier batches
at convergence silent. It must be back at half its height within 12 points or `max_recovery` (8%) of the run. The
first `skip_share` (2%) of the run, where the loss falls steeply, is left out, and more spikes than `max_share` (2%)
of the points are noise.

## When it is wrong

Small batches of uneven difficulty, a loss logged for single examples, or a loss that is summed over batches of
different size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series, rolling_median


@rule(category="stability", fixes=("clip-gradients", "check-inputs", "lower-learning-rate", "warm-up"))
def loss_spikes(
    train_loss: Series,
    *,
    window: int = 15,
    min_ratio: float = 1.5,
    min_deviations: float = 12.0,
    min_progress: float = 0.3,
    max_recovery: float = 0.08,
    skip_share: float = 0.02,
    max_share: float = 0.02,
    min_points: int = 30,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the spikes."""
    loss = finite_points(train_loss, min_points)
    level = _level(loss.values, window)
    residual = loss.values - level
    spread = 1.4826 * float(np.median(np.abs(residual)))
    progress = loss.start - float(loss.smoothed().min())
    high = (
        (residual >= min_deviations * spread) & (residual >= min_progress * progress) & (loss.values >= min_ratio * level) & (residual > 0)
    )
    high[: max(3, round(skip_share * len(loss)))] = False
    longest = max(12, round(max_recovery * len(loss)))
    spikes = [peak for peak in _peaks(high, loss.values) if _recovers(loss.values, level, peak, longest)]
    if not spikes or len(spikes) > max(6, max_share * len(loss)):
        return
    highest = max(spikes, key=lambda index: float(residual[index]))
    steps = tuple(int(loss.steps[index]) for index in spikes)
    yield Diagnosis(
        _message(loss, level, highest, steps),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if float(residual[highest]) >= 0.5 * progress else Confidence.MEDIUM,
        onset_step=steps[0],
        last_step=steps[-1],
        exhibits=(
            SeriesExhibit(
                ((loss.run, loss.tag),),
                tuple(Mark(step, step, Message("spike, {value}", value=loss.value_at(step))) for step in steps),
            ),
        ),
    )


def _level(values: Floats, window: int) -> Floats:
    """The median of the points around each point or of those just before it, whichever is lower: a slow recovery lifts
    the former.
    """
    around = rolling_median(values, window)
    behind = window // 2 + 1
    level: Floats = np.minimum(around, np.concatenate([around[:behind], around[:-behind]]))
    return level


def _message(loss: Series, level: Floats, highest: int, steps: tuple[int, ...]) -> Message:
    before, height = _before(level, highest), float(loss.values[highest])
    back = np.flatnonzero(loss.values[highest:] <= before + 0.1 * (height - before))
    jumped = "Training loss jumped from {before} to {height} at step {step}"
    if len(steps) > 1:
        jumped = "Training loss jumped {count} times, highest from {before} to {height} at step {step}"
    came_back = "; it was back by step {recovered}." if len(back) else "; it has not come back to its level since."
    return Message(
        jumped + came_back,
        count=len(steps),
        step=int(loss.steps[highest]),
        before=before,
        height=height,
        recovered=int(loss.steps[highest + back[0]]) if len(back) else None,
        steps=steps,
    )


def _peaks(high: NDArray[np.bool_], values: Floats, gap: int = 3) -> Iterator[int]:
    """The highest point of each group of high points; points up to `gap` apart are one group."""
    indices = np.flatnonzero(high)
    if len(indices):
        for group in np.split(indices, np.flatnonzero(np.diff(indices) > gap) + 1):
            yield int(group[values[group].argmax()])


def _recovers(values: Floats, level: Floats, peak: int, longest: int) -> bool:
    before = _before(level, peak)
    after = values[peak + 1 : peak + 1 + longest]
    return bool(len(after) and (after <= before + 0.5 * (values[peak] - before)).any())


def _before(level: Floats, peak: int) -> float:
    return float(level[max(0, peak - 2)])
