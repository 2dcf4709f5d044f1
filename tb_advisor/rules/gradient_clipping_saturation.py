"""Most steps have their gradient clipped.

## Why it matters

Clipping is meant for the rare gradient that is far too large. Where it works on most steps, it sets the length of every
step: the gradient only gives the direction, a change of the learning rate hides behind the ceiling, and the large
gradients that it was made for are not told from the others.

## How it is found

The gradient norm, logged after clipping, lies within `tolerance` (0.5%, what the average of a few steps and rounding
make of it) below its own maximum in more than `max_share` (50%) of its points. The Deep Learning Tuning Playbook calls
more than half of the updates clipped a sign to lower the learning rate instead, and advises the 90th percentile of the
unclipped norm as the ceiling. A norm that is zero throughout was not measured. Fewer than `min_points` (20) say nothing.

## When it is wrong

A norm that is logged before clipping (Hugging Face, Lightning) has no ceiling, and shows nothing here. Clipping on
every step is meant where updates are normalised on purpose, as in some recipes for language models and in private training.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="stability", fixes=("lower-learning-rate", "clip-at-percentile"))
def gradient_clipping_saturation(
    gradient_norm: Series, *, max_share: float = 0.5, tolerance: float = 0.005, min_points: int = 20
) -> Iterator[Diagnosis]:
    """One diagnosis with the ceiling and the share of points at it."""
    norm = finite_points(gradient_norm, min_points)
    ceiling = float(norm.values.max())
    at_ceiling = norm.values >= (1 - tolerance) * ceiling
    share = float(at_ceiling.mean())
    if ceiling <= 0 or share <= max_share:
        return
    onset, last = (int(norm.steps[np.flatnonzero(at_ceiling)[end]]) for end in (0, -1))
    yield Diagnosis(
        Message("The gradient norm sits at its ceiling of {ceiling} in {share:%} of the logged steps.", ceiling=ceiling, share=share),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if share >= 0.8 else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        exhibits=(SeriesExhibit(((norm.run, norm.tag),), (Mark(onset, last, Message("clipped to {ceiling}", ceiling=ceiling)),)),),
    )
