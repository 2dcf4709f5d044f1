"""The value function explains nothing of the returns for most of the run.

## Why it matters

Advantages are returns minus the value function. Where that predicts no better than the mean, they are as noisy as the
returns, and the policy needs many more samples for the same improvement.

## How it is found

The explained variance is at or below zero at `min_share` (80%) of the points after the first quarter, where every
value function is untrained. Points that are not finite (all returns were the same) do not count; at least
`min_points` (20) must be left.

## When it is wrong

Rewards that are rare or random: there is nothing to explain. Short runs of simple tasks learn well with a poor value
function.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="reinforcement-learning", fixes=("train-value-function", "normalize-rewards", "more-rollouts"))
def value_function_useless(explained_variance: Series, *, min_share: float = 0.8, min_points: int = 20) -> Iterator[Diagnosis]:
    """One diagnosis from the first quarter on."""
    explained = finite_points(explained_variance, min_points)
    judged = explained[len(explained) // 4 :]
    share = float(np.mean(judged.values <= 0))
    if share < min_share:
        return
    onset, last = int(judged.steps[0]), int(judged.steps[-1])
    yield Diagnosis(
        Message(
            "Explained variance is at or below zero at {share:%} of the points since step {onset} (median {median}).",
            share=share,
            onset=onset,
            median=float(np.median(judged.values)),
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if share >= 0.95 else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        exhibits=(SeriesExhibit(((judged.run, judged.tag),), (Mark(onset, last, Message("explains nothing")),)),),
    )
