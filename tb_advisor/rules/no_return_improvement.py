"""The mean return is the same at the end of the run as at its start.

## Why it matters

The agent did not learn: the reward is too rare to be found, the learning rate or the reward's scale is wrong, or the
policy is never updated.

## How it is found

Over at least `min_points` (50) points, the medians of the first and of the last third differ by less than
`max_change` (0.5) standard deviations of the return (robust: from the median absolute deviation), where even a slow
steady improvement makes more than two; and no tenth of the run is better than the first by more than `max_excursion`
(1) standard deviation. An agent that learned within its first points and stays at its best is told from that by those
points: they lie `min_early` (4) standard deviations below the rest. A return that never changes at all (a
placeholder, a solved task) is not judged, nor self-play and curricula.

A run that does not begin near step zero goes on with a policy that may have been good before: low confidence.

## When it is wrong

A policy that begins at its best (pretrained, or imitated), or a run that ends before rare rewards are found.
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
    category="reinforcement-learning",
    fixes=("normalize-rewards", "entropy-bonus", "more-rollouts", "tune-learning-rate", "train-value-function"),
)
def no_return_improvement(
    episode_return: Series,
    *,
    max_change: float = 0.5,
    max_excursion: float = 1.0,
    min_early: float = 4.0,
    min_points: int = 50,
) -> Iterator[Diagnosis]:
    """One diagnosis over the whole run."""
    returns = finite_points(episode_return, min_points)
    values = returns.values
    level = float(np.median(values))
    deviation = 1.4826 * float(np.median(np.abs(values - level)))
    if not deviation > 1e-6 * abs(level):
        raise Missing("{tag} hardly changes ({level}), so that it cannot be told whether that is good", tag=returns.tag, level=level)
    third = len(returns) // 3
    before, after = float(np.median(values[:third])), float(np.median(values[-third:]))
    levels = returns.levels(10)
    if (
        abs(after - before) > max_change * deviation
        or float(levels.max() - levels[0]) > max_excursion * deviation
        or float(values[:3].min()) < level - min_early * deviation
    ):
        return
    first, last = int(returns.steps[0]), int(returns.steps[-1])
    yield Diagnosis(
        Message(
            "The mean return did not improve: {before} over the first third of the run, {after} over the last, at a spread of {deviation}.",
            before=before,
            after=after,
            deviation=deviation,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM if first <= 0.1 * last else Confidence.LOW,
        onset_step=first,
        last_step=last,
        impact=Impact(
            "time",
            Message("The whole run ({seconds:duration}) brought no better policy.", seconds=returns.seconds_after(first)),
            1.0,
        ),
        exhibits=(SeriesExhibit(((returns.run, returns.tag),), (Mark(first, last, Message("no improvement")),)),),
    )
