"""Validation loss reached its best early; the rest of the run brought nothing.

## Why it matters

More than half of the time and money of the run was spent without a better model. Stopping when validation no longer
improves gives the same model earlier, or pays for a second experiment.

## How it is found

The first evaluation within `tolerance` (1%) of the best validation loss comes before `latest_best` (50%) of the run,
with at least `min_evaluations` (15) evaluations in all, after validation had improved by at least `min_improvement`
(5%). The last quarter of the evaluations must be no better than the quarter after that point: else the best was a lucky one
among noisy evaluations, and the run still improved. Confidence is high where 60% of the run brought nothing, and low below
55%: a run that went on for as long again is a matter of taste. A loss below `min_loss` (0.001) has nothing left to improve.

## When it is wrong

A metric that matters more than the loss may still improve. Some methods need the long flat part (a learning-rate
decay at the end, weight averaging, grokking).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.checkpoints import NO_CHECKPOINTS, Checkpoints
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="generalization", fixes=("early-stopping", "decay-learning-rate"))
def overtraining(
    val_loss: Series,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    *,
    tolerance: float = 0.01,
    latest_best: float = 0.5,
    min_improvement: float = 0.05,
    min_loss: float = 1e-3,
    min_evaluations: int = 15,
) -> Iterator[Diagnosis]:
    """One diagnosis from the first evaluation that was as good as the best."""
    val = finite_points(val_loss, min_evaluations)
    best = float(val.values.min())
    if best <= min_loss:
        return
    reached_at = int(np.flatnonzero(val.values <= (1 + tolerance) * best)[0])
    reached, last = int(val.steps[reached_at]), int(val.steps[-1])
    improvement = 1 - best / float(val.values[0])
    share, seconds = 1 - val.share_of_run(reached), val.seconds_after(reached)
    if share <= 1 - latest_best or improvement < min_improvement or _still_improves(val, reached_at, tolerance):
        return
    yield Diagnosis(
        Message(
            "Validation loss came within {tolerance:%} of its best ({best}) at step {reached}; the other {share:%} brought nothing better.",
            tolerance=tolerance,
            best=best,
            reached=reached,
            share=share,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if share >= 0.6 else Confidence.MEDIUM if share >= 0.55 else Confidence.LOW,
        onset_step=reached,
        last_step=last,
        impact=Impact(
            "time",
            Message("{share:%} of the run ({seconds:duration}) brought no better model.", share=share, seconds=seconds)
            + checkpoints.best_before(val, reached),
            share,
        ),
        exhibits=(SeriesExhibit(((val.run, val.tag),), (Mark(reached, last, Message("no improvement")),)),),
    )


def _still_improves(val: Series, reached_at: int, tolerance: float) -> bool:
    """Whether the last quarter of the evaluations is better than the quarter after the best was reached: then it was a lucky one."""
    quarter = max(3, len(val) // 4)
    after = float(np.median(val.values[reached_at : reached_at + quarter]))
    return float(np.median(val.values[-quarter:])) < (1 - tolerance) * after
