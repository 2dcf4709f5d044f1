"""The generator's loss goes to zero while the discriminator's stays far above its balance.

## Why it matters

A generator that fools the discriminator with every sample has usually found one that always works (mode collapse) or
a discriminator that no longer learns. What is generated has no variety, and a low loss looks like success.

## How it is found

Over the last quarter of the run, the generator's median loss is at most `max_generator` (0.05, which is a fake that
is taken for real with 95%) and at most `max_share` (10%) of its level in the first tenth, and the discriminator's is
at least `min_rise` (1.5) times its own early level, and not falling. In a healthy training both stay within a factor
of two of where they begin. Losses below zero (Wasserstein, hinge) are not judged.

## When it is wrong

Losses that hold more than the adversarial term. Mode collapse often leaves no trace in the losses at all: a clear
result says nothing about variety, samples do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.adversarial import AdversarialLosses
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule


@rule(category="gan", fixes=("compare-within-batch", "two-time-scale-update", "gradient-penalty"))
def generator_collapse(
    adversarial_losses: AdversarialLosses,
    *,
    max_generator: float = 0.05,
    max_share: float = 0.1,
    min_rise: float = 1.5,
    min_points: int = 20,
) -> Iterator[Diagnosis]:
    """One diagnosis from the step on at which the generator's loss stays near zero."""
    fake, real = (finite_points(s, min_points) for s in (adversarial_losses.generator, adversarial_losses.discriminator))
    (g_start, *_, g_end), (d_start, *_, d_before, d_end) = fake.levels(10), real.levels(10)
    quarter_g, quarter_d = (float(np.median(s.values[-(len(s) // 4) :])) for s in (fake, real))
    limit = min(max_generator, max_share * float(g_start))
    if quarter_g > limit or g_end > limit or not quarter_d >= min_rise * float(d_start) > 0 or d_end < 0.8 * d_before:
        return
    above = np.flatnonzero(fake.smoothed() > limit)
    onset, last = int(fake.steps[min(int(above[-1]) + 1, len(fake) - 1)] if len(above) else fake.steps[0]), int(fake.steps[-1])
    yield Diagnosis(
        Message(
            "The generator's loss fell to {g} (near zero since step {onset}) while the discriminator's rose from {d_start} to {d}.",
            g=quarter_g,
            d_start=float(d_start),
            d=quarter_d,
            onset=onset,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM,
        onset_step=onset,
        last_step=last,
        exhibits=(SeriesExhibit(((fake.run, fake.tag), (real.run, real.tag)), (Mark(onset, last, Message("generator passes always")),)),),
    )
