"""Many weights are almost zero.

## Why it matters

A weight that is a thousand times smaller than the large ones of its layer adds nothing that the next layer could see. Pruning sets such
weights to zero and keeps the function: the model compresses to a fraction, and runtimes that know sparse weights skip them.

## How it is found

In the last histogram of each kernel with at least 1,000 weights. A layer is prunable where at least `min_share` (50%) of its weights lie
within 1/1000 of the size of its large weights (their 99th percentile): of fresh weights and most trained ones 0.1 to 1% do. Equal buckets,
as TensorFlow writes them, are wider than that; there the bucket around zero counts with what it has more than its neighbours, where most
of the other weights, and at least 2% of all, lie further away.

Layers that are prunable must hold at least `min_of_model` (10%) of all logged weights.

## When it is wrong

A model that was pruned already, whose zeros are kept on purpose: then the figure says how far. Layers that have not been trained yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.weights import TrainedWeights
from tb_advisor.message import Message
from tb_advisor.rule import rule


@rule(category="model", fixes=("prune-weights", "quantize-weights", "distill-model", "check-saved-model"))
def prunable_weights(
    trained_weights: tuple[TrainedWeights, ...], *, min_share: float = 0.5, min_of_model: float = 0.1
) -> Iterator[Diagnosis]:
    """One diagnosis for the model."""
    sparse = [weights for weights in trained_weights if weights.near_zero >= min_share]
    total = sum(weights.count for weights in trained_weights)
    if not sparse or sum(weights.count for weights in sparse) < min_of_model * total:
        return
    removed = sum(weights.near_zero * weights.count for weights in sparse)
    largest = max(sparse, key=lambda weights: weights.near_zero * weights.count)
    yield Diagnosis(
        Message(
            "{share:%} of the {total} weights are almost zero, in {count} of {layers} layers; {layer} has the most.",
            share=removed / total,
            total=total,
            count=len(sparse),
            layers=len(trained_weights),
            layer=largest.layer,
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if largest.near_zero >= 0.7 else Confidence.MEDIUM,
        last_step=largest.step,
        exhibits=(
            HistogramExhibit(largest.tensor.histograms.run, largest.tensor.histograms.tag),
            TableExhibit(
                Message("Prunable layers"),
                ("layer", "weights", "almost zero"),
                tuple((each.layer, each.count, f"{each.near_zero:.0%}") for each in sparse[:20]),
            ),
        ),
    )
