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
follows, and by 5 times its noise, was learned within the start. Fewer than `min_points` (10) points say
nothing, and a loss that is constantly zero was not measured.

## When it is wrong

A run that goes on from a converged checkpoint starts at its floor; where the first step is far from zero the
confidence is low for that reason. Some models sit on a plateau for a long time before they learn. Losses of
reinforcement learning and adversarial training are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="optimization", fixes=("check-training-loop", "tune-learning-rate", "check-inputs", "better-initialization"))
def loss_not_decreasing(
    train_loss: Series,
    *,
    min_fall: float = 0.07,
    max_rise: float = 2.0,
    min_steady_fall: float = 0.03,
    min_noise_ratio: float = 5.0,
    min_points: int = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis where the loss stayed at its start from the first to the last point."""
    loss = finite_points(train_loss, min_points)
    if not np.any(loss.values):
        raise Missing("{tag} is constantly zero: it was not measured", tag=loss.tag)
    smoothed = loss.smoothed(share=1 / 6)
    start, lowest = loss.start, float(smoothed[max(3, len(loss) // 20) :].min())
    if start - lowest >= min_fall * abs(start) or loss.end >= max_rise * abs(start):
        return
    first_points = float(np.median(loss.values[:3]))
    if first_points - lowest >= max(min_fall * abs(first_points), min_noise_ratio * loss.noise):
        return
    first, last = int(loss.steps[0]), int(loss.steps[-1])
    resumed = first > last - first
    error = 1.25 * loss.noise * np.sqrt(1 / max(3, len(loss) // 20) + 1 / max(3, len(loss) // 10))  # of a difference of medians
    falls = start - loss.end >= max(min_steady_fall * abs(start), min_noise_ratio * float(error))
    clear_cut = len(loss) >= 3 * min_points and start - lowest < min_fall / 2 * abs(start)
    yield Diagnosis(
        Message("Training loss stayed at {start}: it ends at {end} after {steps} steps.", start=start, end=loss.end, steps=last - first),
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
