"""Weights keep growing to the end of the run.

## Why it matters

Weights that grow without bound make the same relative step smaller and smaller, outputs more and more certain, and low
precision formats overflow in the end. Often nothing holds them: no weight decay, no normalisation, a loss that rewards ever
larger logits.

## How it is found

The Euclidean norm of a weight tensor at the end is at least `min_growth` (10) times its norm in the first histogram, and has
grown by at least `min_late_growth` (10%) over the last quarter of the histograms: it has not settled. A tensor that begins
near zero has to grow; what its size asks for (a third of n^-1/4 for each weight) counts as its beginning then. Biases and
normalisation scales are left out. At least `min_points` (6) histograms are needed.

## When it is wrong

Small models with few weights grow this much while they learn, and stop later.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.histograms import LayerHistograms, shown, with_points
from tb_advisor.message import Message
from tb_advisor.rule import rule


@rule(category="stability", fixes=("weight-decay", "lower-learning-rate", "normalize-layers"))
def weight_growth(
    weight_histograms: tuple[LayerHistograms, ...],
    *,
    min_growth: float = 10.0,
    min_late_growth: float = 0.1,
    min_points: int = 6,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the tensors."""
    grown = []
    for weights in with_points(weight_histograms, min_points):
        norms = weights.norm
        start = max(float(norms[0]), float(weights.sizes[0]) ** 0.25 / 3)
        before, end = float(norms[-1 - max(1, len(norms) // 4)]), float(norms[-1])
        if not weights.is_bias and weights.finite.all() and end >= min_growth * start and end >= (1 + min_late_growth) * before:
            grown.append((weights, float(norms[0]), end, end / start))
    if not grown:
        return
    worst, start, end, factor = max(grown, key=lambda found: found[3])
    template = "The norm of the weights of {layer} grew from {start} to {end} and still grows."
    if len(grown) > 1:
        template = "The weights of {count} layers ({layers}) still grow; the norm of {layer} most, from {start} to {end}."
    yield Diagnosis(
        Message(
            template, layer=worst.layer, start=start, end=end, factor=factor, count=len(grown), layers=shown([found[0] for found in grown])
        ),
        severity=Severity.INFO,
        confidence=Confidence.MEDIUM,
        onset_step=int(worst.histograms.steps[0]),
        last_step=int(worst.histograms.steps[-1]),
        exhibits=(
            HistogramExhibit(worst.histograms.run, worst.histograms.tag),
            TableExhibit(
                Message("Norms that grow"),
                ("layer", "first norm", "last norm"),
                tuple((weights.layer, first, last) for weights, first, last, _ in grown),
            ),
        ),
    )
