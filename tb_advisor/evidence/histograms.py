"""The histograms of a job: which tensor each tag shows, and their statistics over the steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_advisor.evidence.roles import GRADIENT_WORDS, words
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing
from tb_advisor.series import Floats, Histograms

_ACTIVATION_WORDS = frozenset("activation activations act acts relu tanh sigmoid gelu output outputs hidden".split())
_BIAS_WORDS = frozenset("bias beta gamma moving".split())
_WEIGHT_WORDS = frozenset("weight weights kernel embeddings embedding w bias beta gamma".split())
# Words that say what is shown, not of which layer.
_PLAIN_WORDS = GRADIENT_WORDS | frozenset(
    "weight weights param params parameters activation activations act acts histogram histograms".split()
)


@dataclass(frozen=True, eq=False)
class LayerHistograms:
    """The histograms of one tensor. `kind` is ``weight``, ``gradient`` or ``activation``, `layer` the writer's name of the
    tensor without what only says the kind.
    """

    histograms: Histograms
    kind: str
    layer: str

    @property
    def is_bias(self) -> bool:
        """Whether it shows a bias or a scale of a normalisation, which follow other laws than kernels."""
        return bool(_BIAS_WORDS.intersection(words(self.histograms.tag)))

    @cached_property
    def sizes(self) -> Floats:
        """The number of values in each histogram, shape ``(n,)``."""
        return self._sum(np.ones(len(self.histograms.buckets)))

    @cached_property
    def mean(self) -> Floats:
        """The mean of the values, each taken at the middle of its bucket, shape ``(n,)``."""
        return self._sum(self._middles) / self.sizes

    @cached_property
    def mean_abs(self) -> Floats:
        """The mean size of the values, shape ``(n,)``."""
        return self._sum(np.abs(self._middles)) / self.sizes

    @cached_property
    def std(self) -> Floats:
        """The standard deviation of the values, shape ``(n,)``."""
        return np.sqrt(np.maximum(0.0, self._sum(self._middles**2) / self.sizes - self.mean**2))

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute edge of a bucket that is not empty, shape ``(n,)``."""
        buckets = self.histograms.buckets
        edges = np.where(buckets[:, 2] > 0, np.abs(buckets[:, :2]).max(axis=1), 0.0)
        return np.asarray(np.maximum.reduceat(edges, self.histograms.offsets[:-1]))

    def share_between(self, low: float, high: float) -> Floats:
        """The share of the values whose bucket lies within ``[low, high]`` (its middle does), shape ``(n,)``."""
        return self._sum(((self._middles >= low) & (self._middles <= high)).astype(np.float64)) / self.sizes

    @cached_property
    def _middles(self) -> Floats:
        return np.asarray(self.histograms.buckets[:, :2].mean(axis=1))

    def _sum(self, values: Floats) -> Floats:
        """The sum of a value a bucket over the values of each histogram, shape ``(n,)``."""
        return np.add.reduceat(values * self.histograms.buckets[:, 2], self.histograms.offsets[:-1])


def layer_histograms(job: Job) -> tuple[LayerHistograms, ...]:
    """Every histogram tag that shows weights, gradients or activations, without empty histograms.

    Raises `Missing` where there is none.
    """
    found = []
    for run in job.runs.values():
        for tag, histograms in run.histograms.items():
            kind = _kind_of(words(tag))
            whole = np.diff(histograms.offsets) > 0
            if kind and len(histograms) and whole.all():
                found.append(LayerHistograms(histograms, kind, _layer_of(tag)))
    if not found:
        raise Missing("no histograms of weights, gradients or activations (Keras: histogram_freq=1, PyTorch: add_histogram)")
    return tuple(found)


def _kind_of(tag_words: tuple[str, ...]) -> str:
    if GRADIENT_WORDS.intersection(tag_words):
        return "gradient"
    if _ACTIVATION_WORDS.intersection(tag_words):
        return "activation"
    return "weight" if _WEIGHT_WORDS.intersection(tag_words) else ""


def _layer_of(tag: str) -> str:
    """``gradients/dense_1/kernel`` → ``dense_1/kernel``, ``fc1.weight.grad`` → ``fc1``, ``act.act0`` → ``act0``."""
    parts = tag.replace(".", "/").split("/")
    kept = [part for part in parts if not set(words(part)) <= _PLAIN_WORDS]
    return "/".join(kept) or tag
