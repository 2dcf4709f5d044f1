"""The loss jumps in its first steps, and the learning rate is at its peak from the first step on.

## Why it matters

The first gradients are large and adaptive optimizers have seen too few of them to scale them. Full steps at that point
throw the weights far from where they were initialized; a part of the run is spent on coming back, and some units never
do.

## How it is found

The learning rate starts at `min_start` (95%) of its highest value or more. In the first `early_share` (10%) of the run,
which must hold at least `min_points` (5) points of the training loss, the median of three successive points rises to
`min_jump` (2) times the first point or more, by more than `min_noise_ratio` (5) times the noise of the loss, and the
loss ends below its first point: else the run diverged, which is another finding.

## When it is wrong

A loss that is summed, or that gets a new term after the first steps. The first batch may be an easy one by chance.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series, rolling_median


@rule(category="stability", fixes=("warm-up", "clip-gradients", "lower-learning-rate"))
def missing_warmup(
    train_loss: Series,
    learning_rate: Series,
    *,
    min_start: float = 0.95,
    early_share: float = 0.1,
    min_jump: float = 2.0,
    min_noise_ratio: float = 5.0,
    min_points: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis for the first steps."""
    loss = finite_points(train_loss, min_points)
    early = sum(loss.share_of_run(step) <= early_share for step in loss.steps[: len(loss) // 2].tolist())
    if early < min_points:
        raise Missing(
            "{tag} has {count} points in the first {share:%} of the run; {needed} are needed",
            tag=loss.tag,
            count=early,
            share=early_share,
            needed=min_points,
        )
    first = float(loss.values[0])
    smoothed = rolling_median(loss.values[:early], 3)
    peak = int(smoothed.argmax())
    high_from_start = 0 < min_start * learning_rate.values.max() <= learning_rate.values[0]
    jumped = first > 0 and smoothed[peak] >= max(min_jump * first, first + min_noise_ratio * loss.noise)
    if not high_from_start or not jumped or loss.end >= first:
        return
    step, back = int(loss.steps[peak]), _back(loss, peak)
    yield Diagnosis(
        Message(
            "Training loss rose from {first} to {peak} at step {step} and was back by step {back}; "
            "the learning rate was at its peak ({rate}) from the first step on.",
            first=first,
            peak=float(smoothed[peak]),
            step=step,
            back=back,
            rate=float(learning_rate.values[0]),
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if smoothed[peak] >= 2 * min_jump * first else Confidence.MEDIUM,
        onset_step=int(loss.steps[0]),
        last_step=back,
        exhibits=(SeriesExhibit(((loss.run, loss.tag),), (Mark(int(loss.steps[0]), back, Message("no warm-up")),)),),
    )


def _back(loss: Series, peak: int) -> int:
    """The first step after the peak at which the loss is at its first value again."""
    after = loss.values[peak:] <= loss.values[0]
    return int(loss.steps[peak + int(after.argmax())])
