"""Updates are far too small or far too large for the weights they change.

## Why it matters

A step that changes weights by a millionth of their size needs a million steps to matter; one that changes them by a tenth
throws away what was learned. Around 1e-3 is usual, 1e-4 to 1e-2 is fine (Karpathy, "The spelled-out intro to neural
networks", part 3).

## How it is found

Where weights and gradients of a layer are logged as histograms, with the learning rate: a step of plain gradient descent is
the rate times the gradient, with momentum up to ten times that; a step of Adam is about the rate itself for each weight. The
optimizer is not in the log: the ratio to the mean size of the weights must be below `min_ratio` (1e-5) for all of them, or
above `max_ratio` (0.1) for all of them, as the median over the histograms, which are the bounds of DeepDiagnosis (Wardat et
al., 2022). Biases and normalisation scales are left out. At least `min_points` (4) histograms are needed.

## When it is wrong

Optimizers that scale steps by the weights (LARS, LAMB, Adafactor), parameter groups with rates of their own, gradients that
were logged before clipping or before they were divided by a loss scale.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.histograms import LayerHistograms, with_points
from tb_advisor.evidence.roles import Roles
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_MOMENTUM = 10.0


@rule(category="optimization", fixes=("tune-learning-rate", "lower-learning-rate", "warm-up"))
def update_ratio(
    weight_histograms: tuple[LayerHistograms, ...],
    gradient_histograms: tuple[LayerHistograms, ...],
    roles: Roles,
    *,
    min_ratio: float = 1e-5,
    max_ratio: float = 0.1,
    min_points: int = 4,
) -> Iterator[Diagnosis]:
    """One diagnosis for all layers that are off in the same direction."""
    rates = [a.series.finite for a in roles.of("learning_rate") if len(a.series.finite)]
    if not rates:
        raise Missing("no tag plays the role of learning_rate (looked for learning_rate, lr)")
    weights = {w.layer: w for w in with_points(weight_histograms, min_points) if not w.is_bias}
    pairs = [(weights[g.layer], g) for g in gradient_histograms if g.layer in weights and len(g.histograms) >= min_points]
    if not pairs:
        raise Missing("no layer has histograms of both its weights and its gradients")
    small, large = [], []
    for weight, gradient in pairs:
        size = float(np.median(weight.mean_abs))
        rate = float(np.median([rates[0].value_at(step) for step in weight.histograms.steps.tolist()]))
        slope = float(np.median(gradient.mean_abs))
        if not (np.isfinite(size + rate + slope) and size > 0 and rate > 0):
            continue
        plain, adaptive = rate * slope / size, rate / size
        if max(_MOMENTUM * plain, adaptive) < min_ratio:
            small.append((weight, plain, adaptive))
        elif min(plain, adaptive) > max_ratio:
            large.append((weight, plain, adaptive))
    found = max((small, large), key=len)
    if not found:
        return
    worst, plain, adaptive = max(found, key=lambda pair: abs(np.log(max(pair[1], 1e-300))))
    direction = "small" if found is small else "large"
    yield Diagnosis(
        Message(
            "A step changes the weights of {layer} by about {plain} of their size (plain gradient descent) or {adaptive} (Adam): "
            f"far too {direction}; about 0.001 is usual.",
            layer=worst.layer,
            plain=plain,
            adaptive=adaptive,
            count=len(found),
        ),
        severity=Severity.INFO,
        confidence=Confidence.MEDIUM,
        onset_step=int(worst.histograms.steps[0]),
        last_step=int(worst.histograms.steps[-1]),
        exhibits=(
            HistogramExhibit(worst.histograms.run, worst.histograms.tag),
            TableExhibit(
                Message("Updates against weights, a step"),
                ("layer", "plain gradient descent", "Adam"),
                tuple((weight.layer, low, high) for weight, low, high in found),
            ),
        ),
    )
