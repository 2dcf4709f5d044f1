"""Weights become NaN or infinite.

## Why it matters

Every output that a NaN weight takes part in is NaN, and no later step can repair it. What comes after is lost, and so is
every checkpoint written from that step on.

## How it is found

The edges of a histogram come from the smallest and largest value of the tensor, so that NaN and infinite values show in
them. The first histogram with such an edge is reported, and the last one before it. Some writers refuse tensors with NaN:
then the histograms end early, and only the loss tells.

## When it is wrong

A tensor that is masked with -Inf on purpose and logged as a weight.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Impact, Severity, TableExhibit
from tb_advisor.evidence.histograms import LayerHistograms
from tb_advisor.message import Message
from tb_advisor.rule import rule


@rule(
    category="stability",
    fixes=(
        *("lower-learning-rate", "clip-gradients", "check-inputs", "clean-rows", "stable-loss", "loss-scaling", "scale-inputs"),
        *("better-initialization", "plot-schedule", "terminate-on-nan", "find-first-nan"),
    ),
)
def non_finite_weights(weight_histograms: tuple[LayerHistograms, ...]) -> Iterator[Diagnosis]:
    """One diagnosis from the first histogram that is not finite."""
    broken = [(layer, int(np.flatnonzero(~layer.finite)[0])) for layer in weight_histograms if not layer.finite.all()]
    if not broken:
        return
    first, at = min(broken, key=lambda found: int(found[0].histograms.steps[found[1]]))
    steps = first.histograms.steps
    last = int(steps[-1])
    finite_until = int(steps[at - 1]) if at else None
    share = 1 - first.share_of_run(at) if at else 1.0
    template = "The weights of {layer} are NaN or infinite at step {step}"
    template += "; they were finite at step {before}." if at else ", the first one logged."
    if len(broken) > 1:
        template = template[:-1] + "; {count} of {logged} weight tensors are by the end."
    yield Diagnosis(
        Message(template, layer=first.layer, step=int(steps[at]), before=finite_until, count=len(broken), logged=len(weight_histograms)),
        severity=Severity.ERROR,
        confidence=Confidence.HIGH,
        onset_step=int(steps[at]),
        last_step=last,
        impact=Impact("time", Message("{share:%} of the run came after it.", share=share), share),
        exhibits=(
            HistogramExhibit(first.histograms.run, first.histograms.tag),
            TableExhibit(
                Message("Weights that are not finite"),
                ("layer", "first step"),
                tuple((layer.layer, int(layer.histograms.steps[index])) for layer, index in broken),
            ),
        ),
    )
