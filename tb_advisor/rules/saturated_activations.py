"""Most outputs of a tanh or sigmoid layer lie at its bounds.

## Why it matters

At its bounds such a function is flat: almost no gradient passes, and the layers below it learn little or nothing. The usual
causes are inputs that are not scaled, initial weights that are far too large, and steps that were too long.

## How it is found

In histograms of activations that stay within -1 and 1 (tanh) or 0 and 1 (sigmoid) and come close to the bound. A value
counts as saturated beyond ±`tanh_bound` (0.99, where the slope has fallen to 2%), or below `sigmoid_low` (0.02) and above
`sigmoid_high` (0.99, slopes of 2% and 1%). Buckets are wider than that: how much of the outermost one lies before the bound
is taken from its neighbour. At least `min_share` (50%) must be saturated from some step of the first `latest_start` (50%) of
the histograms' steps on to the end, single exceptions aside; healthy layers lie below 10%. A ReLU with small outputs lies
between 0 and 1 too: at least `min_high` (2%) of a sigmoid's values must lie at the upper bound. Outputs, probabilities,
gates and attention weights belong at the bounds, and are left out by their names. At least `min_points` (4) histograms are
needed.

## When it is wrong

A gate or an output whose name does not say so. Binary codes (hashing, quantised autoencoders) saturate on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.histograms import LayerHistograms, held_layers, shown, with_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Floats

_NEAR = 1e-9


@rule(
    category="activations",
    fixes=("lower-learning-rate", "better-initialization", "scale-inputs", "normalize-layers", "relu-family", "residual-links"),
)
def saturated_activations(
    activation_histograms: tuple[LayerHistograms, ...],
    *,
    tanh_bound: float = 0.99,
    sigmoid_low: float = 0.02,
    sigmoid_high: float = 0.99,
    min_share: float = 0.5,
    min_high: float = 0.02,
    latest_start: float = 0.5,
    min_points: int = 4,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the layers."""
    measured = []
    layers = [layer for layer in with_points(activation_histograms, min_points) if not layer.is_sparse_by_design]
    for layer in layers:
        if not (layer.highest <= 1 + 1e-6).all() or not (layer.lowest >= -1 - 1e-6).all():
            continue
        if layer.lowest.min() < 0:
            share = layer.share_above(tanh_bound, _atanh) + layer.share_below(-tanh_bound, _atanh)
        else:
            high = layer.share_above(sigmoid_high, _logit)
            share = np.where(high >= min_high, high + layer.share_below(sigmoid_low, _logit), 0.0)
        measured.append((layer, share))
    saturated = held_layers(measured, min_share, latest_start)
    if not saturated:
        return
    worst, step, most = max(saturated, key=lambda found: found[2])
    first = min(start for _, start, _ in saturated)
    template = "From step {step} on {share:%} of the outputs of {layer} lie at the bounds of its activation."
    if len(saturated) > 1:
        template = (
            "In {count} of {logged} activation layers at least {least:%} of the outputs lie at the bounds from step {first} on: {layers}."
        )
    yield Diagnosis(
        Message(
            template,
            step=step,
            share=most,
            layer=worst.layer,
            count=len(saturated),
            logged=len(layers),
            least=min(share for _, _, share in saturated),
            first=first,
            layers=shown([layer for layer, _, _ in saturated]),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if most >= 0.75 else Confidence.MEDIUM,
        onset_step=first,
        last_step=int(worst.histograms.steps[-1]),
        exhibits=(
            HistogramExhibit(worst.histograms.run, worst.histograms.tag),
            TableExhibit(
                Message("Saturated layers"),
                ("layer", "share at the bounds", "since step"),
                tuple((layer.layer, share, start) for layer, start, share in saturated),
            ),
        ),
        explains=("loss-not-decreasing", "underfitting", "vanishing-gradients"),
    )


def _atanh(values: Floats) -> Floats:
    return np.arctanh(np.clip(values, _NEAR - 1, 1 - _NEAR))


def _logit(values: Floats) -> Floats:
    inside = np.clip(values, _NEAR, 1 - _NEAR)
    return np.log(inside / (1 - inside))
