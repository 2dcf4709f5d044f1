"""Some layers get almost no gradient while others do.

## Why it matters

A layer learns in proportion to its gradient. Where it shrinks from layer to layer on its way back to the input, the first
layers stay as they were initialised, and the last ones learn from random features. More training does not help.

## How it is found

By layer: in the logged gradient norms, and in the mean absolute value of gradient histograms. From `first_share` (25%) of
the run on, at the steps that all layers share, each layer is compared with the largest one of that step. A layer has no
gradient when it has less than `max_share` (0.1%) of the largest and less than `max_size` (0.0001) in at least
`min_steady` (90%) of those steps (AutoTrainer's conditions: the ratio shows that it shrinks on its way, the size that the
weights hardly move). The largest must not be zero, and a gradient that is exactly zero is left out: that is what a layer
writes that is not trained, and what units behind a dead ReLU get, which are other findings. Biases, normalisations and
embeddings follow other laws and are left out too.

Where the training loss fell to `max_loss` (half) of its start or less, the layers that do learn seem to suffice, and
confidence is lower.

## When it is wrong

In attention, queries and keys get small gradients as long as attention is uniform. A branch that is used rarely gets
little gradient on most steps. Adam makes up for small gradients of one size, down to its epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from tb_advisor.diagnosis import Confidence, Diagnosis, Exhibit, HistogramExhibit, SeriesExhibit, Severity, TableExhibit
from tb_advisor.evidence.gradients import Gradients, LayerGradient
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series, Steps


@rule(
    category="stability",
    fixes=("relu-family", "better-initialization", "normalize-layers", "residual-links"),
)
def vanishing_gradients(
    layer_gradients: tuple[LayerGradient, ...],
    gradients: Gradients,
    *,
    max_share: float = 1e-3,
    max_size: float = 1e-4,
    first_share: float = 0.25,
    min_steady: float = 0.9,
    max_loss: float = 0.5,
    min_points: int = 3,
) -> Iterator[Diagnosis]:
    """One diagnosis with all layers that get no gradient."""
    judged = False
    for of_histograms in (True, False):
        layers = [layer for layer in layer_gradients if layer.of_histograms is of_histograms]
        steps, sizes = _aligned([layer.size for layer in layers])
        late = _later_than(steps, first_share)
        if len(layers) < 2 or late.sum() < min_points:
            continue
        judged = True
        shares = sizes / sizes.max(axis=0)
        without = (shares < max_share) & (sizes < max_size) & (np.median(sizes[:, late], axis=1, keepdims=True) > 0)
        affected = np.flatnonzero(without[:, late].mean(axis=1) >= min_steady)
        if not len(affected):
            continue
        typical = np.median(sizes[:, late], axis=1)
        smallest, largest = int(affected[typical[affected].argmin()]), int(typical.argmax())
        share, size = float(np.median(shares[smallest, late])), float(typical[smallest])
        yield Diagnosis(
            Message(
                "{count} of {layers} layers get almost no gradient: {smallest} has {size}, {share:.1g} of what {largest} has.",
                count=len(affected),
                layers=len(layers),
                smallest=layers[smallest].layer,
                size=size,
                share=share,
                largest=layers[largest].layer,
            ),
            severity=Severity.WARNING,
            confidence=_confidence(
                far_beyond=share < 0.1 * max_share and size < 0.1 * max_size,
                learns=_fell_to(gradients.loss, max_loss),
            ),
            onset_step=int(steps[without[smallest].argmax()]),
            last_step=int(steps[-1]),
            exhibits=(_table(layers, typical), *(_chart(layers[index]) for index in (smallest, largest))),
            explains=("loss-not-decreasing", "underfitting", "unfinished-training", "class-collapse"),
        )
        return
    if not judged:
        raise Missing("the gradients of the layers share fewer than {needed} steps after the first quarter of the run", needed=min_points)


def _aligned(curves: Sequence[Series]) -> tuple[Steps, Floats]:
    """The steps at which every layer has a size and one of them has some, and the sizes there, of shape ``(layers, steps)``.
    Of several points of a step the last one counts.
    """
    steps = reduce(np.intersect1d, [curve.steps for curve in curves], curves[0].steps) if curves else np.empty(0, np.int64)
    if not len(steps):
        return np.empty(0, np.int64), np.empty((len(curves), 0))
    sizes = np.stack([curve.values[np.searchsorted(curve.steps, steps, side="right") - 1] for curve in curves])
    usable = np.isfinite(sizes).all(axis=0) & (sizes.max(axis=0) > 0)
    return steps[usable], sizes[:, usable]


def _later_than(steps: Steps, share: float) -> NDArray[np.bool_]:
    """Which steps lie in the run after `share` of it."""
    numbers = steps.astype(np.float64)
    return np.asarray(numbers >= numbers[0] + share * (numbers[-1] - numbers[0])) if len(steps) else np.zeros(0, dtype=np.bool_)


def _fell_to(loss: Series | None, share: float) -> bool:
    """Whether the training loss fell by as much as it would to reach this share of its start."""
    if loss is None or not len(loss.finite):
        return False
    start = loss.finite.start
    return start - loss.finite.end >= (1 - share) * abs(start)


def _confidence(*, far_beyond: bool, learns: bool) -> Confidence:
    if far_beyond:
        return Confidence.MEDIUM if learns else Confidence.HIGH
    return Confidence.LOW if learns else Confidence.MEDIUM


def _table(layers: Sequence[LayerGradient], typical: Floats) -> TableExhibit:
    order = sorted(range(len(layers)), key=lambda index: float(typical[index]))
    of_what = "mean absolute value" if layers[0].of_histograms else "norm"
    return TableExhibit(
        Message("Gradient by layer, smallest first"),
        ("layer", of_what, "share of the largest"),
        tuple((layers[i].layer, float(typical[i]), float(typical[i] / typical.max())) for i in order),
    )


def _chart(layer: LayerGradient) -> Exhibit:
    curve = layer.size
    return HistogramExhibit(curve.run, curve.tag) if layer.of_histograms else SeriesExhibit(((curve.run, curve.tag),))
