"""Training loss jumps far above its level and comes back.

## Why it matters

A spike is a batch or an update that nearly broke the run: a bad record, a learning rate at the edge, a gradient
without a ceiling. It costs the steps until the loss is back, and the next one may not come back. TensorBoard draws a
sample of the points and clips outliers, so that a short spike is often not in its chart.

## How it is found

The local level of each point is the median of the `window` (15) points around it, or of the points just before it
where that is lower. A spike is at least `min_ratio`
(1.5) times that level, at least `min_deviations` (12) times the scaled median absolute residual above it (half of that
where the residuals nearby are larger: a loss is noisier before it has converged), and `min_log_deviations` (4) of them in
logarithms, since the noise of small batches multiplies: where single batches lie at twice and half the level all the time,
one at four times is no spike (real ones were 7 and more, single batches of healthy runs up to 3). It rises
by at least `min_progress` (30%) of the way that the loss fell in the whole run: the last keeps single outlier batches
at convergence silent. It must be back at half its height within 12 points or `max_recovery` (8%) of the run. The
first `skip_share` (2%) of the run, where the loss falls steeply, is left out, and more spikes than `max_share` (2%)
of the points are noise.

Where the log tells, the finding says with what the highest spike coincides, within five points: a restart, a learning
rate that rose by half or more, a gradient norm at five times its usual level; or that every spike is the first point
after an evaluation.

## When it is wrong

Small batches of uneven difficulty, a loss logged for single examples, or a loss that is summed over batches of
different size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.evidence.losses import finite_points
from tb_advisor.evidence.spikes import Spikes, find_spikes
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="stability",
    fixes=("clip-gradients", "check-inputs", "clean-rows", "lower-learning-rate", "plot-schedule", "warm-up", "log-gradient-norm"),
)
def loss_spikes(
    train_loss: Series,
    circumstances: Circumstances,
    *,
    window: int = 15,
    min_ratio: float = 1.5,
    min_deviations: float = 12.0,
    min_log_deviations: float = 4.0,
    min_progress: float = 0.3,
    max_recovery: float = 0.08,
    skip_share: float = 0.02,
    max_share: float = 0.02,
    min_points: int = 30,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the spikes."""
    spikes = find_spikes(
        finite_points(train_loss, min_points),
        window=window,
        min_ratio=min_ratio,
        min_deviations=min_deviations,
        min_log_deviations=min_log_deviations,
        min_progress=min_progress,
        max_recovery=max_recovery,
        skip_share=skip_share,
    )
    loss, steps = spikes.loss, spikes.steps
    if not steps or len(steps) > max(6, max_share * len(loss)):
        return
    yield Diagnosis(
        _message(spikes) + _cause(spikes, circumstances),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if spikes.height(spikes.highest) >= 0.5 * spikes.progress else Confidence.MEDIUM,
        onset_step=steps[0],
        last_step=steps[-1],
        exhibits=(
            SeriesExhibit(
                circumstances.beside(loss),
                tuple(Mark(step, step, Message("spike, {value}", value=loss.value_at(step))) for step in steps),
            ),
        ),
    )


def _cause(spikes: Spikes, circumstances: Circumstances) -> Message:
    """With what the highest spike coincides, or what all of them have in common; empty where the log says nothing."""
    cause = circumstances.before(spikes.loss, spikes.highest)
    if cause is not None:
        return cause
    if circumstances.follow_evaluations(spikes.loss, spikes.peaks):
        return Message(" Each comes right after an evaluation, where an epoch begins.")
    return Message("")


def _message(spikes: Spikes) -> Message:
    loss, peak, steps = spikes.loss, spikes.highest, spikes.steps
    before, height = spikes.before(peak), float(loss.values[peak])
    back = np.flatnonzero(loss.values[peak:] <= before + 0.1 * (height - before))
    jumped = "Training loss jumped from {before} to {height} at step {step}"
    if len(steps) > 1:
        jumped = "Training loss jumped {count} times, highest from {before} to {height} at step {step}"
    came_back = "; it was back by step {recovered}." if len(back) else "; it has not come back to its level since."
    return Message(
        jumped + came_back,
        count=len(steps),
        step=int(loss.steps[peak]),
        before=before,
        height=height,
        recovered=int(loss.steps[peak + back[0]]) if len(back) else None,
        steps=steps,
    )
