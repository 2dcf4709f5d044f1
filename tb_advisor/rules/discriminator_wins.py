"""The discriminator's loss goes to zero while the generator's rises without bound.

## Why it matters

A discriminator that tells every sample apart gives the generator no usable gradient. What is generated stays as it
is, or gets worse, however long the training goes on.

## How it is found

Over the last quarter of the run, the discriminator's median loss is at most `max_discriminator` (0.1) and at most
`max_share` (10%) of its level in the first tenth: 1.39 (2 ln 2) is a balance for the usual cross entropy and 0.5 for
least squares. The generator's is at least `min_generator` (3, which is a fake that is taken for real with 5%) and
`min_rise` (2) times its early level, and not falling. Losses below zero (Wasserstein, hinge) are not judged.

## When it is wrong

Losses that hold more than the adversarial term, or the first part of a training that recovers later.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.adversarial import AdversarialLosses
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule


@rule(category="gan", fixes=("two-time-scale-update", "soften-discriminator", "gradient-penalty"))
def discriminator_wins(
    adversarial_losses: AdversarialLosses,
    *,
    max_discriminator: float = 0.1,
    max_share: float = 0.1,
    min_generator: float = 3.0,
    min_rise: float = 2.0,
    min_points: int = 20,
) -> Iterator[Diagnosis]:
    """One diagnosis from the step on at which the discriminator's loss stays near zero."""
    fake, real = (finite_points(s, min_points) for s in (adversarial_losses.generator, adversarial_losses.discriminator))
    (g_start, *_, g_before, g_end), (d_start, *_, d_end) = fake.levels(10), real.levels(10)
    quarter_g, quarter_d = (float(np.median(s.values[-(len(s) // 4) :])) for s in (fake, real))
    limit = min(max_discriminator, max_share * float(d_start))
    if quarter_d > limit or d_end > limit or quarter_g < max(min_generator, min_rise * float(g_start)) or g_end < 0.8 * g_before:
        return
    above = np.flatnonzero(real.smoothed() > limit)
    onset, last = int(real.steps[min(int(above[-1]) + 1, len(real) - 1)] if len(above) else real.steps[0]), int(real.steps[-1])
    yield Diagnosis(
        Message(
            "The discriminator's loss fell to {d} (near zero since step {onset}) while the generator's rose from {g_start} to {g}.",
            d=quarter_d,
            g_start=float(g_start),
            g=quarter_g,
            onset=onset,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if quarter_d <= limit / 4 and quarter_g >= 2 * min_generator else Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        exhibits=(SeriesExhibit(((real.run, real.tag), (fake.run, fake.tag)), (Mark(onset, last, Message("discriminator wins")),)),),
    )
