"""Histograms for tests, made of values as PyTorch and TensorFlow make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tb_advisor.evidence.histograms import LayerHistograms, layer_histograms
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.series import Histograms
from tests.builders import FIRST_SECOND

RANDOM = np.random.default_rng(0)


def torch_buckets(values: Iterable[float]) -> list[list[float]]:
    """Exponential buckets between the smallest and largest value, as `make_histogram` of PyTorch has them and a reader cuts them."""
    sample = np.array(list(values), dtype=np.float64)
    if np.isnan(sample).any():
        return [[np.nan, np.nan, float(len(sample))]]
    positive = 1e-12 * 1.1 ** np.arange(774)
    counts, edges = np.histogram(sample, np.concatenate([-positive[::-1], [0.0], positive]))
    filled = np.flatnonzero(counts)
    limits = [sample.min(), *edges[filled[0] + 1 : filled[-1] + 1], sample.max()]
    return [[a, b, float(c)] for a, b, c in zip(limits[:-1], limits[1:], counts[filled[0] : filled[-1] + 1], strict=True)]


def tf_buckets(values: Iterable[float], count: int = 30) -> list[list[float]]:
    """Equal buckets between the smallest and largest value, as `tf.summary.histogram` has them."""
    sample = np.array(list(values), dtype=np.float64)
    if sample.min() == sample.max():
        return [*[[sample.min(), sample.min(), 0.0]] * (count - 1), [sample.min(), sample.min(), float(len(sample))]]
    counts, edges = np.histogram(sample, count)
    return [[a, b, float(c)] for a, b, c in zip(edges[:-1], edges[1:], counts, strict=True)]


def histograms(rows: Sequence[Sequence[Sequence[float]]], tag: str, *, step: int = 10, first: int = 0, run: str = "run") -> Histograms:
    """One histogram of these buckets every `step` steps."""
    steps = first + step * np.arange(len(rows), dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(buckets) for buckets in rows])]).astype(np.int64)
    buckets = np.array([bucket for buckets in rows for bucket in buckets], dtype=np.float64).reshape(-1, 3)
    return Histograms(steps, FIRST_SECOND + np.arange(len(rows)), offsets, buckets, run, tag)


def job_of(*tensors: Histograms) -> Job:
    """A job with these histograms in its one run."""
    return Job("run", {"run": Run("run", {}, {}, "", (), 0, (), {each.tag: each for each in tensors})})


def layers(tensors: Mapping[str, Sequence[Iterable[float]]], buckets=torch_buckets, **more: int) -> tuple[LayerHistograms, ...]:
    """The layers of tags with the values of each histogram."""
    return layer_histograms(job_of(*(histograms([buckets(v) for v in values], tag, **more) for tag, values in tensors.items())))
