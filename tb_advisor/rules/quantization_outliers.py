"""A few weights are far larger than all others, which int8 cannot hold at once.

## Why it matters

Quantization to int8 divides the range of a layer's weights into 255 steps. Where one weight is ten times larger than 99% of the others,
these share 25 of the steps, less than 5 bits, and the model loses accuracy after conversion. A scale for each channel helps, training with
quantization in mind helps more.

## How it is found

In the last histogram of each kernel with at least 1,000 weights: the largest weight against the size that 99% of the weights stay below
(without those that are zero). At `min_ratio` (10) the bulk of the weights has 12 steps on each side. Normal weights lie at 2, trained ones
at 3 to 5. Layers with outliers must hold at least `min_of_model` (1%) of all logged weights. Embeddings, biases and scales of
normalisations are left out, which are not quantized like kernels.

## When it is wrong

Where the model is never quantized. Quantization for each channel, the default of TFLite for convolutions, copes where the outliers share a
channel: histograms do not tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.weights import TrainedWeights
from tb_advisor.message import Message
from tb_advisor.rule import rule


@rule(category="model", fixes=("quantize-weights", "quantization-aware-training", "weight-decay"))
def quantization_outliers(
    trained_weights: tuple[TrainedWeights, ...], *, min_ratio: float = 10.0, min_of_model: float = 0.01
) -> Iterator[Diagnosis]:
    """One diagnosis for the model."""
    wide = [weights for weights in trained_weights if weights.outlier_ratio >= min_ratio]
    total = sum(weights.count for weights in trained_weights)
    if not wide or sum(weights.count for weights in wide) < min_of_model * total:
        return
    worst = max(wide, key=lambda weights: weights.outlier_ratio)
    template = "In {layer} the largest weight is {largest}, {ratio} times larger than 99% of the others"
    yield Diagnosis(
        Message(
            template + ("." if len(wide) == 1 else "; {count} of {layers} layers have such outliers."),
            layer=worst.layer,
            largest=worst.largest,
            ratio=worst.outlier_ratio,
            count=len(wide),
            layers=len(trained_weights),
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if worst.outlier_ratio >= 2 * min_ratio else Confidence.MEDIUM,
        last_step=worst.step,
        exhibits=(
            HistogramExhibit(worst.tensor.histograms.run, worst.tensor.histograms.tag),
            TableExhibit(
                Message("Layers with outliers"),
                ("layer", "weights", "largest", "99% below", "ratio"),
                tuple((each.layer, each.count, each.largest, each.bulk, round(each.outlier_ratio, 1)) for each in wide[:20]),
            ),
        ),
    )
