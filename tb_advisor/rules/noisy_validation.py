"""Validation loss jitters so much that checkpoints cannot be ranked by it.

## Why it matters

The best of many noisy evaluations is a lucky one. Early stopping, the choice of a checkpoint and the comparison of two runs then
follow chance.

## How it is found

The jitter from one evaluation to the next (the standard deviation, robust against trends and outliers) is at least
`min_noise` (15%) of all improvement, from the first evaluations to the lowest level of a fifth of them (the bound of
trainspotter's eval_noise). The validation loss must have improved by `min_improvement` (20%) and kept half of that to the
end: else it diverged or overfits, which are other diagnoses. Fewer than `min_evaluations` (10) say nothing.

## When it is wrong

A learning rate that is too high makes the model itself jump; the training loss then jumps with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="data", fixes=("larger-validation-set", "check-split", "decay-learning-rate"))
def noisy_validation(
    val_loss: Series, *, min_noise: float = 0.15, min_improvement: float = 0.2, min_evaluations: int = 10
) -> Iterator[Diagnosis]:
    """One diagnosis over all evaluations."""
    val = finite_points(val_loss, min_evaluations)
    improvement = val.start - float(val.smoothed(share=0.2).min())
    if (
        improvement <= 0
        or improvement < min_improvement * abs(val.start)
        or val.noise < min_noise * improvement
        or val.level(0.8, 1) > val.start - improvement / 2
    ):
        return
    first, last = int(val.steps[0]), int(val.steps[-1])
    yield Diagnosis(
        Message(
            "Validation loss jitters by {noise} from one evaluation to the next, {share:%} of all that it improved.",
            noise=val.noise,
            share=val.noise / improvement,
        ),
        severity=Severity.INFO,
        confidence=Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        exhibits=(SeriesExhibit(((val.run, val.tag),), (Mark(first, last, Message("jitter")),)),),
    )
