"""Training loss fell, then rose far above its best and stayed there.

## Why it matters

The run lost what it had learned. What came after the turn is wasted time, and the last checkpoint is worse than an
earlier one.

## How it is found

The training loss is smoothed by a rolling median over 5% of its points. Its start is the median of the first 5% of
the points, its end the median of the last 10%. It diverged when it ends at `min_rise_over_start` (2) times its start
or more; or when it ends at `min_rise_over_best` (3) times its best smoothed value or more and `min_progress_lost`
(30%) of the way from start to best is lost, which keeps small rises near zero silent. The best must come before
`latest_best` (90%) of the run, so that a rise in the last few points, which may still recover, is not judged. Fewer
than `min_points` (10) points say nothing.

## When it is wrong

A loss whose definition changes during training (a new term, a curriculum, a larger batch when the loss is summed)
rises without anything being wrong. Losses of reinforcement learning and adversarial training are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="stability",
    fixes=("lower-learning-rate", "warm-up", "clip-gradients", "check-inputs"),
)
def loss_divergence(
    train_loss: Series,
    *,
    min_rise_over_start: float = 2.0,
    min_rise_over_best: float = 3.0,
    min_progress_lost: float = 0.3,
    latest_best: float = 0.9,
    min_points: int = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis where the loss blew up and stayed up."""
    loss = finite_points(train_loss, min_points)
    smoothed = loss.smoothed()
    best_at = int(smoothed.argmin())
    start, best, end = loss.start, float(smoothed[best_at]), loss.end
    if best < 0 or start <= 0:
        raise Missing("{tag} takes values below zero, so that its rise has no scale", tag=loss.tag)
    best_step = int(loss.steps[best_at])
    over_start = end >= min_rise_over_start * start
    over_best = end >= min_rise_over_best * best and end - best >= min_progress_lost * (start - best)
    if not (over_start or over_best) or loss.share_of_run(best_step) >= latest_best:
        return
    # The turn is where the loss left its best for good, told from its own noise: not a share of how far it rose, which
    # an exponential reaches late.
    near_best = np.flatnonzero(smoothed <= best + min(0.1 * (end - best), max(0.1 * (start - best), 2 * loss.noise)))
    onset = int(loss.steps[near_best[-1]])
    last = int(loss.steps[-1])
    share, seconds = 1 - loss.share_of_run(onset), loss.seconds_after(onset)
    yield Diagnosis(
        Message(
            "Training loss turned at step {onset}: from {best} at its best it rose to {end}.",
            onset=onset,
            best=float(loss.values[: near_best[-1] + 1].min()),
            end=end,
        ),
        severity=Severity.ERROR,
        confidence=Confidence.HIGH if over_best and (len(loss) - near_best[-1] >= min_points) else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        impact=Impact(
            "time", Message("{share:%} of the run ({seconds:duration}) came after the turn.", share=share, seconds=seconds), share
        ),
        explains=("overfitting", "overtraining", "loss-spikes", "loss-not-decreasing"),
        exhibits=(SeriesExhibit(((loss.run, loss.tag),), (Mark(onset, last, Message("diverged, {best} → {end}", best=best, end=end)),)),),
    )
