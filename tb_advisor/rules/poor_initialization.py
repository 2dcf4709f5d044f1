"""Initial weights have a spread far from what their size asks for.

## Why it matters

Each layer multiplies the spread of what comes in. Weights that are far too small let the signal and its gradient die out
after a few layers, far too large ones saturate activations or make the first steps explode. Weights that are all the same
make all units of a layer the same, and they stay so: the layer learns like a single unit.

## How it is found

In the first histogram of each weight tensor, where it lies within the first `latest_first` (20%) of the run. The Glorot and
He initializations give a square layer of n weights a standard deviation of about n^-1/4. Below `min_ratio` (0.06) times that
the spread is too small; above `max_ratio` (5) times that it is too large; the usual initializers lie between 0.2 and 1.5,
and within these bounds for any usual shape. Biases, normalisation scales and tensors of fewer than `min_size` (8) values are
left out, and embedding tables from the upper bound, for their spread does not depend on their size.

A tensor may have an unusual shape, which a histogram does not show: where no more than half of the tensors are beyond the
bounds, one of them must have a spread above 1.5, more than the He initialization of a layer of one input (√2), or below 80% of
(3n)^-1/2, what a layer of n inputs and one output gets in PyTorch. A few tensors of zeros among others, usually last layers, are
a common choice and have low confidence.

## When it is wrong

Layers that begin at zero on purpose (LoRA, Fixup, zero convolutions), where their names do not say so; depthwise
convolutions of thousands of channels; a fine-tuning that begins from weights of an unusual scale.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.histograms import LayerHistograms, shown
from tb_advisor.evidence.roles import words
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_ZERO_BY_NAME = frozenset("lora zero zeros adaln modulation ls layerscale fixup rezero".split())
# The initial values of normalisation scales and of PReLU slopes, whatever the tensor is called.
_PLAIN_CONSTANTS = (1.0, 0.25)


@rule(category="activations", fixes=("better-initialization", "normalize-layers", "residual-links", "warm-up"))
def poor_initialization(
    weight_histograms: tuple[LayerHistograms, ...],
    *,
    min_ratio: float = 0.06,
    max_ratio: float = 5.0,
    latest_first: float = 0.2,
    min_size: int = 8,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the tensors."""
    kernels = _kernels(weight_histograms, min_size)
    early = [w for w in kernels if _begins_early(w, latest_first)]
    if not early:
        if kernels:
            step = int(kernels[0].histograms.steps[0])
            raise Missing("the first histogram of weights is of step {step}: it does not show how they began", step=step)
        raise Missing("no histogram of a weight matrix (biases and normalisation scales follow other laws)")
    ratios = {w: float(w.std[0] * w.sizes[0] ** 0.25) for w in early}
    wide = [w for w in early if ratios[w] > max_ratio and not w.is_embedding]
    narrow = [w for w in early if ratios[w] < min_ratio]
    found = max((wide, narrow), key=len)
    few = 2 * len(found) <= len(early)
    if not found or (few and not any(_beyond_any_shape(w, ratios[w]) for w in found)):
        return
    worst = max(found, key=lambda w: abs(np.log(max(ratios[w], 1e-9))))
    yield Diagnosis(
        Message(
            _template(found, wide=found is wide),
            layer=worst.layer,
            layers=shown(found),
            count=len(found),
            logged=len(early),
            std=float(worst.std[0]),
            usual=float(worst.sizes[0] ** -0.25),
            value=float(worst.mean[0]),
            size=int(worst.sizes[0]),
            step=int(worst.histograms.steps[0]),
        ),
        severity=Severity.WARNING,
        confidence=_confidence(found, [ratios[w] for w in found], few, min_ratio, max_ratio),
        onset_step=int(worst.histograms.steps[0]),
        last_step=int(worst.histograms.steps[-1]),
        exhibits=(
            HistogramExhibit(worst.histograms.run, worst.histograms.tag),
            TableExhibit(
                Message("First weights"),
                ("layer", "weights", "standard deviation", "usual"),
                tuple((w.layer, int(w.sizes[0]), float(w.std[0]), float(w.sizes[0] ** -0.25)) for w in early),
            ),
        ),
        explains=(
            "class-collapse",
            "dead-units",
            "exploding-gradients",
            "frozen-weights",
            "loss-not-decreasing",
            "saturated-activations",
            "underfitting",
            "unfinished-training",
            "vanishing-gradients",
        ),
    )


def _template(found: list[LayerHistograms], *, wide: bool) -> str:
    one = len(found) == 1
    which = "The first weights of {layer}" if one else "The first weights of {count} of {logged} layers ({layers})"
    if all(_is_constant(w) for w in found):
        return which + (" are all {value}." if one else " are constant, {value} in {layer}.")
    size = "large" if wide else "small"
    where = "" if one else " in {layer}"
    spread = f"a standard deviation of {{std}}{where}, where {{size}} weights usually have about {{usual}}."
    return f"{which} have a far too {size} spread: {spread}"


def _confidence(found: list[LayerHistograms], ratios: list[float], few: bool, min_ratio: float, max_ratio: float) -> Confidence:
    if few and all(w.largest[0] == 0 for w in found):
        return Confidence.LOW
    far = any(ratio >= 2 * max_ratio or ratio <= min_ratio / 2 for ratio in ratios)
    return Confidence.HIGH if far and not few else Confidence.MEDIUM


def _beyond_any_shape(w: LayerHistograms, ratio: float) -> bool:
    std, size = float(w.std[0]), float(w.sizes[0])
    return std > 1.5 if ratio > 1 else std < 0.8 * (3 * size) ** -0.5


def _kernels(layers: tuple[LayerHistograms, ...], min_size: int) -> list[LayerHistograms]:
    named = [w for w in layers if not w.is_bias and not _ZERO_BY_NAME.intersection(words(w.histograms.tag))]
    kernels = [w for w in named if w.sizes[0] >= min_size and w.finite[0]]
    plain = [w for w in kernels if _is_constant(w) and w.mean[0] in _PLAIN_CONSTANTS]
    return kernels if all(_is_constant(w) for w in kernels) else [w for w in kernels if w not in plain]


def _is_constant(w: LayerHistograms) -> bool:
    return bool(w.std[0] <= 1e-6 * w.largest[0])


def _begins_early(w: LayerHistograms, latest_first: float) -> bool:
    first, last = float(w.histograms.steps[0]), float(w.histograms.steps[-1])
    return first <= max(1.0, latest_first * last)
