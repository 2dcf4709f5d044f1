"""Validation loss improves while validation accuracy gets worse, or the other way round.

## Why it matters

What is trained is then not what is measured: the checkpoint with the best loss is not the one with the best metric, and early
stopping on one of them throws the other away.

## How it is found

Both are smoothed over a fifth of their evaluations. One reached its best before `latest_best` (60%) of the run and has lost at
least `min_loss` (0.05 of accuracy, or 15% of the best loss) by the end, and `min_noise_ratio` (3) times its own jitter. In the same
time the other still improved: the loss by `min_gain` (10%) of its value, or the accuracy by 0.02. Fewer than `min_evaluations` (10) say
nothing.

## When it is wrong

A rising cross entropy with a rising accuracy is common in long runs: the model becomes too sure of its few mistakes. It is
found by overfitting as well, which then asks for early stopping; calibration or label smoothing keeps the accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series


@rule(category="generalization", fixes=("monitor-metric", "label-smoothing", "imbalance-metric"))
def metric_loss_disagreement(
    val_loss: Series,
    val_accuracy: Series,
    *,
    latest_best: float = 0.6,
    min_loss: float = 0.05,
    min_gain: float = 0.1,
    min_noise_ratio: float = 3.0,
    min_evaluations: int = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis from the best of the one that got worse."""
    loss, accuracy = (finite_points(series, min_evaluations) for series in (val_loss, val_accuracy))
    if len(loss) != len(accuracy) or not np.array_equal(loss.steps, accuracy.steps):
        return
    losses, accuracies = loss.smoothed(share=0.2), accuracy.smoothed(share=0.2)
    if losses.min() <= 0:
        return
    worse_accuracy = _since_best(accuracies, accuracy, latest_best, max(min_loss, min_noise_ratio * accuracy.noise))
    worse_loss = _since_best(-losses, loss, latest_best, max(3 * min_loss * float(losses.min()), min_noise_ratio * loss.noise))
    if worse_accuracy is not None and losses[-1] <= (1 - min_gain) * losses[worse_accuracy]:
        best, template = (
            worse_accuracy,
            "Validation accuracy fell from {a} to {b} since step {onset} while the validation loss went on falling, {c} to {d}.",
        )
        numbers = (accuracies[best], accuracies[-1], losses[best], losses[-1])
    elif worse_loss is not None and accuracies[-1] >= accuracies[worse_loss] + 0.02:
        best, template = (
            worse_loss,
            "Validation loss rose from {a} to {b} since step {onset} while the validation accuracy still improved, {c} to {d}.",
        )
        numbers = (losses[best], losses[-1], accuracies[best], accuracies[-1])
    else:
        return
    onset, last = int(loss.steps[best]), int(loss.steps[-1])
    a, b, c, d = (float(number) for number in numbers)
    yield Diagnosis(
        Message(template, onset=onset, a=a, b=b, c=c, d=d),
        severity=Severity.INFO,
        confidence=Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        exhibits=(
            SeriesExhibit(((loss.run, loss.tag),), (Mark(onset, last, Message("disagrees with the accuracy")),)),
            SeriesExhibit(((accuracy.run, accuracy.tag),), (Mark(onset, last, Message("disagrees with the loss")),)),
        ),
    )


def _since_best(scores: Floats, series: Series, latest_best: float, needed: float) -> int | None:
    """Where the highest of the smoothed `scores` lies, if it is early and at least `needed` was lost since; else None."""
    best = int(scores.argmax())
    early = series.share_of_run(int(series.steps[best])) < latest_best
    return best if early and float(scores[best] - scores[-1]) >= needed else None
