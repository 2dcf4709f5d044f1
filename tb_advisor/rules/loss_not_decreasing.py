"""Training loss never fell below its start.

## Why it matters

Nothing is learned: the optimizer does not reach the weights, the labels do not belong to the inputs, the learning
rate is far too small or so large that every step is thrown away. More time will not help.

## How it is found

The training loss is smoothed by a rolling median over a sixth of the run. After its first 5% it must never come `min_fall` (7%) below
its start, the median of the first 5% of the points and at least 3: runs that learn come further down, noise does not
(SageMaker Debugger's LossNotDecreasing asks for 0.1% between checks, which fires on most healthy runs). A loss that
ends at `max_rise` (2) times its start has diverged instead. Where the loss ends `min_steady_fall` (3%) below its start
and that is `min_noise_ratio` (5) times the error of the two levels it does fall, if slowly, and the confidence is low:
a large model that is fine-tuned gains no more than that. A loss whose first three points lie `min_fall` above all that
follows, and by 5 times its noise, was learned within the start; so was one whose first point alone lies 5 times its noise above
every later one and `min_fall` above the lowest level, which is a mean over an epoch in which most was learned.

A validation loss that is the same to six digits in all of at least `min_evaluations` (5) evaluations says by itself that
nothing changes; the training loss may then wander with the examples that it is measured on, as long as it does not fall by more
than the error of its levels. Fewer than `min_points` (10) points say
nothing, and a loss that is constantly zero was not measured.

## When it is wrong

A run that goes on from a converged checkpoint starts at its floor; where the first step is far from zero the
confidence is low for that reason. Some models sit on a plateau for a long time before they learn. Losses of
reinforcement learning and adversarial training are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import Loss, finite_points, main_validation
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="optimization",
    fixes=(
        *("check-training-loop", "tune-learning-rate", "look-at-batch", "check-inputs", "better-initialization", "check-labels"),
        *("plot-schedule", "shorter-warm-up", "schedule-length", "log-learning-rate", "log-histograms"),
    ),
)
def loss_not_decreasing(
    train_loss: Series,
    losses: tuple[Loss, ...],
    *,
    min_fall: float = 0.07,
    max_rise: float = 2.0,
    min_steady_fall: float = 0.03,
    min_noise_ratio: float = 5.0,
    min_evaluations: int = 5,
    min_points: int = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis where the loss stayed at its start from the first to the last point."""
    loss = finite_points(train_loss, min_points)
    if not np.any(loss.values):
        raise Missing("{tag} is constantly zero: it was not measured", tag=loss.tag)
    smoothed = loss.smoothed(share=1 / 6)
    start, lowest = loss.start, float(smoothed[max(3, len(loss) // 20) :].min())
    error = 1.25 * loss.noise * math.sqrt(1 / max(3, len(loss) // 20) + 1 / max(3, len(loss) // 10))  # of a difference of medians
    falls = start - loss.end >= max(min_steady_fall * abs(start), min_noise_ratio * error)
    constant = not falls and _validation_is_constant(losses, min_evaluations)
    if loss.end >= max_rise * abs(start):
        return
    if not constant and (start - lowest >= min_fall * abs(start) or _learned_at_once(loss, lowest, min_fall, min_noise_ratio)):
        return
    first, last = int(loss.steps[0]), int(loss.steps[-1])
    resumed = first > last - first
    clear_cut = len(loss) >= 3 * min_points and start - lowest < min_fall / 2 * abs(start)
    yield Diagnosis(
        Message(
            "Training loss did not fall: {start} at the start, {end} after {steps} steps.", start=start, end=loss.end, steps=last - first
        ),
        severity=Severity.ERROR,
        confidence=Confidence.LOW if resumed or falls else Confidence.HIGH if clear_cut else Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        impact=Impact(
            "time", Message("The whole run ({seconds:duration}) taught the model nothing.", seconds=loss.seconds_after(first)), 1.0
        ),
        explains=("class-collapse", "oscillating-loss", "underfitting", "unfinished-training"),
        exhibits=(SeriesExhibit(((loss.run, loss.tag),), (Mark(first, last, Message("no progress")),)),),
    )


def _learned_at_once(loss: Series, lowest: float, min_fall: float, min_noise_ratio: float) -> bool:
    """Whether the first three points lie above all that follows, or the first one above each later one."""
    first, first_points, noise = float(loss.values[0]), float(np.median(loss.values[:3])), min_noise_ratio * loss.noise
    if first_points - lowest >= max(min_fall * abs(first_points), noise):
        return True
    return first - lowest >= min_fall * abs(first) and first - float(loss.values[1:].max()) > noise


def _validation_is_constant(losses: tuple[Loss, ...], needed: int) -> bool:
    """Whether the main validation loss has one value, to six digits, in all of at least `needed` evaluations."""
    val = main_validation(losses)
    return val is not None and len(val) >= needed and bool(val.values[0] and np.ptp(val.values) <= 1e-6 * abs(val.values[0]))
