"""How the trained weights of each layer are distributed: what pruning and quantization ask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.histograms import LayerHistograms
from tb_advisor.message import Missing
from tb_advisor.series import Buckets

# Fewer weights than this are not worth pruning, and too few for a 99th percentile.
FEWEST_WEIGHTS = 1000
# Of the size of a layer's large weights: what is smaller adds nothing to its output, and rounds to zero in int8 (1/127) many times over.
NEAR_ZERO = 1e-3
# The size of the large weights is their 99th percentile, so that a single outlier does not make all others small; where more than 99% are
# zero it is zero, and then so much of the largest.
_BULK, _LEAST_SCALE = 0.99, 1e-4
# Where buckets are wider, at least so many weights must lie apart from the one around zero: else it is all of them but for outliers.
_LEAST_APART = 0.02


@dataclass(frozen=True, eq=False)
class TrainedWeights:
    """The last histogram of one tensor of weights. `near_zero` is the share of weights below 1/1000 of the size of the large
    ones, `largest` the largest size, `bulk` the size that 99% of those that are not near zero stay below; `step` is the histogram's.
    """

    tensor: LayerHistograms
    count: int
    near_zero: float
    largest: float
    bulk: float
    step: int

    @property
    def layer(self) -> str:
        """The name of the layer."""
        return self.tensor.layer

    @property
    def outlier_ratio(self) -> float:
        """How many times larger than the bulk the largest weight is."""
        return self.largest / self.bulk


def trained_weights(weight_histograms: tuple[LayerHistograms, ...]) -> tuple[TrainedWeights, ...]:
    """The weights of each kernel with at least 1,000 of them, as they were last logged. Biases, scales and embeddings are left out, and so
    is what is constant or not finite. Raises `Missing` where nothing is left.
    """
    found = tuple(weights for tensor in weight_histograms if (weights := _trained(tensor)) is not None)
    if not found:
        raise Missing("no histogram of a kernel with {count} weights or more", count=FEWEST_WEIGHTS)
    return found


def _trained(tensor: LayerHistograms) -> TrainedWeights | None:
    if tensor.is_bias or tensor.is_embedding or not tensor.finite[-1] or tensor.sizes[-1] < FEWEST_WEIGHTS:
        return None
    buckets, largest = tensor.histograms[len(tensor.histograms) - 1], float(tensor.largest[-1])
    if not 0 < largest < 1e30 or tensor.lowest[-1] == tensor.highest[-1]:
        return None
    near_zero = _near_zero(buckets, NEAR_ZERO * max(_bulk(buckets, 0.0), _LEAST_SCALE * largest))
    bulk = _bulk(buckets, near_zero)
    return TrainedWeights(tensor, int(tensor.sizes[-1]), near_zero, largest, bulk, int(tensor.histograms.steps[-1])) if bulk > 0 else None


def _near_zero(buckets: Buckets, limit: float) -> float:
    """The share of weights that are smaller in size than `limit`, at least.

    A bucket that reaches beyond counts what stands out above its neighbours, which share a smooth distribution with it, and only where
    most of the other weights lie further away: else it is the peak of a narrow distribution.
    """
    left, right, counts = buckets.T
    total = float(counts.sum())
    inside = float(counts[(left >= -limit) & (right <= limit)].sum())
    at = np.flatnonzero((left <= 0) & (right >= 0) & ((left < -limit) | (right > limit)) & (counts > 0))
    if len(at) != 1:
        return inside / total
    index = int(at[0])
    beside = [float(counts[i]) for i in (index - 1, index + 1) if 0 <= i < len(counts)]
    rest = total - float(counts[index])
    if not beside or sum(beside) > rest / 2 or rest < _LEAST_APART * total:
        return inside / total
    return max(inside, float(counts[index]) - max(beside)) / total


def _bulk(buckets: Buckets, near_zero: float) -> float:
    """The size below which 99% of the weights lie that are not near zero, rounded up to the edge of a bucket."""
    left, right, counts = buckets.T
    sizes = np.maximum(np.abs(left), np.abs(right))
    order = np.argsort(sizes)
    filled = np.cumsum(counts[order]) / counts.sum()
    at = int(np.searchsorted(filled, near_zero + _BULK * (1 - near_zero) - 1e-12))
    return float(sizes[order][min(at, len(order) - 1)])
