"""Training loss fell, then rose far above its best and stayed there.

## Why it matters

The run lost what it had learned. What came after the turn is wasted time, and the last checkpoint is worse than an
earlier one.

## How it is found

The training loss is smoothed by a rolling median over 5% of its points. Its start is the median of the first 5% of
the points, its end the median of the last 10%. It diverged when it ends at `min_rise_over_start` (2) times its start
or more; or when it ends at `min_rise_over_best` (3) times its best smoothed value or more and `min_progress_lost`
(30%) of the way from start to best is lost, which keeps small rises near zero silent. The same is asked of each point
against the best before it: the loss rose for good where the largest sum of what follows begins, when a point of which it
is true counts 2 and another one -1. A diverged loss that touches zero now and then does not move that point, and
neither does an early excursion that was made up for during at least twice its length.

A loss that goes below zero (a log density, an evidence lower bound) has no ratios. It diverged when all of its progress is lost:
it ends at its start or above, after a fall of at least `min_noise_ratio` (5) times the noise that it had until its best.

The turn is the last point before that which was as low as the best smoothed value; where the log tells, the finding
says what came in the five points before the rise (a restart, a learning rate that rose by half or more, a gradient norm
at five times its usual level). The turn must come before `latest_turn`
(90%) of the run, so that a rise in the last few points, which may still recover, is not judged. Fewer than
`min_points` (10) points say nothing.

## When it is wrong

A loss whose definition changes during training (a new term, a curriculum, a larger batch when the loss is summed)
rises without anything being wrong. Losses of reinforcement learning and adversarial training are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.checkpoints import NO_CHECKPOINTS, Checkpoints
from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series


@rule(
    category="stability",
    fixes=(
        *("lower-learning-rate", "warm-up", "clip-gradients", "check-inputs", "loss-scaling", "plot-schedule", "scale-inputs"),
        *("log-learning-rate", "log-gradient-norm"),
    ),
)
def loss_divergence(
    train_loss: Series,
    circumstances: Circumstances,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    *,
    min_rise_over_start: float = 2.0,
    min_rise_over_best: float = 3.0,
    min_progress_lost: float = 0.3,
    min_noise_ratio: float = 5.0,
    latest_turn: float = 0.9,
    min_points: int = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis where the loss blew up and stayed up."""
    loss = finite_points(train_loss, min_points)
    smoothed = loss.smoothed()
    start, best, end = loss.start, float(smoothed.min()), loss.end
    if best < 0 or start <= 0:
        until_best = loss[: int(smoothed.argmin()) + 1]
        over_best = len(until_best) > 1 and end >= start and start - best > min_noise_ratio * until_best.noise
        over_start = False
        risen = smoothed >= start
    else:
        over_start = end >= min_rise_over_start * start
        over_best = end >= min_rise_over_best * best and end - best >= min_progress_lost * (start - best)
        lowest = np.minimum.accumulate(smoothed)
        risen = (smoothed >= min_rise_over_best * lowest) & (smoothed - lowest >= min_progress_lost * (start - lowest))
        risen |= smoothed >= min_rise_over_start * start
    if not (over_start or over_best):
        return
    turn, rose_at = _turn(loss.values, smoothed, risen)
    onset = int(loss.steps[turn])
    if loss.share_of_run(onset) >= latest_turn:
        return
    last = int(loss.steps[-1])
    share, seconds = 1 - loss.share_of_run(onset), loss.seconds_after(onset)
    yield Diagnosis(
        Message(
            "Training loss turned at step {onset}: from {best} at its best it rose to {end}.",
            onset=onset,
            best=float(loss.values[: turn + 1].min()),
            end=end,
        )
        + (circumstances.before(loss, rose_at) or Message("")),
        severity=Severity.ERROR,
        confidence=Confidence.HIGH if over_best and len(loss) - turn >= min_points else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        impact=Impact(
            "time",
            Message("{share:%} of the run ({seconds:duration}) came after the turn.", share=share, seconds=seconds)
            + checkpoints.best_before(loss, onset),
            share,
        ),
        explains=(
            "class-collapse",
            "learning-rate-jump",
            "loss-not-decreasing",
            "loss-spikes",
            "noisy-validation",
            "oscillating-loss",
            "overfitting",
            "overtraining",
            "underfitting",
        ),
        exhibits=(
            SeriesExhibit(circumstances.beside(loss), (Mark(onset, last, Message("diverged, {best} → {end}", best=best, end=end)),)),
        ),
    )


def _turn(values: Floats, smoothed: Floats, risen: NDArray[np.bool_]) -> tuple[int, int]:
    """The last point as low as the best level before the loss rose for good, and the point where it rose.

    It rose for good where the sum of all that follows is largest, with 2 for a point that has `risen` and -1 for others.
    """
    rose_at = int(np.cumsum(np.where(risen, 2, -1)[::-1])[::-1].argmax())
    before = smoothed[: rose_at + 1]
    low = np.flatnonzero(values[: rose_at + 1] <= before.min())
    return int(low[-1]) if len(low) else int(before.argmin()), rose_at
