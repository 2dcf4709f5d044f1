"""The histograms of a job: which tensor each tag shows, and their statistics over the steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tb_advisor.evidence.roles import GRADIENT_WORDS, words
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing
from tb_advisor.series import Floats, Histograms, Series, Steps, rolling_median

_ACTIVATION_WORDS = frozenset("activation activations act acts".split())
_FUNCTIONS = frozenset(
    "relu leakyrelu rrelu elu selu celu gelu silu swish hardswish mish softplus tanh hardtanh sigmoid hardsigmoid".split()
)
# Words that name an activation, but also a layer whose weights are shown: `output/kernel`, `hidden.weight`.
_WEAK_ACTIVATION_WORDS = _FUNCTIONS | frozenset("output outputs hidden".split())
# Gradients as a hook of the backward pass gets them. A recurrent layer of two directions has weights by this name.
_BACKWARD = re.compile(r"backward[/.]", re.IGNORECASE)
_RECURRENT_WORDS = frozenset("lstm gru rnn cell".split())
_BIAS_WORDS = frozenset("bias biases beta gamma moving running scale prelu".split())
_NORMALIZATION = re.compile(r"(batch|layer|group|instance|rms)?norm(alization)?\d*|bn\d*|ln\d*")
_WEIGHT_WORDS = frozenset(
    "weight weights kernel kernels embeddings embedding w param params parameter parameters bias biases beta gamma".split()
)
# What is none of the three, though its name says so: sums before the activation, the state of an optimizer, the updates.
_OTHER_WORDS = frozenset("pre preactivation preactivations adam optimizer momentum velocity update updates delta".split())
# Words that say what is shown, not of which layer.
_PLAIN_WORDS = GRADIENT_WORDS | frozenset(
    "weight weights param params parameters activation activations act acts histogram histograms".split()
)
_LOOKED_FOR = {
    "weight": "no histograms of weights (Keras: histogram_freq=1, PyTorch: add_histogram(name, parameter, step))",
    "gradient": "no histograms of gradients (looked for the words grad, gradient)",
    "activation": "no histograms of activations (looked for the words activation, act, relu, tanh, sigmoid)",
}
_SPARSE_WORDS = frozenset(
    "output outputs logits softmax prob probs probability probabilities pred preds prediction predictions attention attn gate gates mask"
    " dropout onehot input inputs image images fake generated router routing label labels target targets".split()
)
_OUTPUTS = frozenset({"output", "outputs"})
_OUTPUTS_OF_FUNCTIONS = frozenset(f"{function} {output}" for function in _FUNCTIONS for output in _OUTPUTS)
# One of the layers inside a network. Dense ones are left out: the last layer is one of them.
_NUMBERED_LAYER = re.compile(rf"\b({'|'.join(sorted(_FUNCTIONS | {'layer', 'block', 'conv', 'hidden'}))}) ?\d+\b")
# A bucket at zero that is this much narrower than the range holds zeros, not small values.
_EXACT = 1e-6
_LEAST_POSITIVE = 10


@dataclass(frozen=True, eq=False)
class LayerHistograms:
    """The histograms of one tensor. `kind` is ``weight``, ``gradient`` or ``activation``, `layer` the writer's name of the
    tensor without what only says the kind. Its statistics are NaN where the histogram holds NaN or infinite values.
    """

    histograms: Histograms
    kind: str
    layer: str

    @property
    def is_bias(self) -> bool:
        """Whether it shows a bias or a scale of a normalisation, which follow other laws than kernels."""
        named = _numberless(self.histograms.tag)
        return bool(_BIAS_WORDS.intersection(named)) or named[-1:] == ("b",) or any(map(_NORMALIZATION.fullmatch, named))

    @property
    def is_embedding(self) -> bool:
        """Whether its name is that of a table of vectors, whose spread does not depend on its size."""
        named = _numberless(self.histograms.tag)
        return any(word.startswith("embed") or word in ("emb", "wte", "wpe", "codebook", "lookup") for word in named)

    @property
    def is_sparse_by_design(self) -> bool:
        """Whether its name is that of an output, a gate, a mask or an input, which lie at zero or at a bound where all is well.

        The output of a layer is none of the network: `encoder/0/output`, `fc0/tanh_output`, `outputs/layer0`.
        """
        parts = [" ".join(words(part)) for part in self.layer.split("/")]
        first, *others = parts
        if others and others[-1] in _OUTPUTS:
            parts = parts[:-1]
        elif others and first == "outputs" and _NUMBERED_LAYER.search(" ".join(others)):
            parts = others
        elif others and re.search(r"\d", parts[-2]) and others[-1] in _OUTPUTS_OF_FUNCTIONS:
            parts = parts[:-1]
        return bool(_SPARSE_WORDS.intersection(_numberless(" ".join(parts))))

    def share_of_run(self, index: int) -> float:
        """How much of the steps of its histograms had passed at one of them, 0 to 1."""
        first, at, last = (float(self.histograms.steps[i]) for i in (0, index, -1))
        return (at - first) / (last - first) if last > first else 0.0

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
        return np.sqrt(self._moment(2))

    @cached_property
    def kurtosis(self) -> Floats:
        """The fourth moment over the squared variance, shape ``(n,)``: 1.8 for a uniform distribution, 3 for a normal one, more for
        heavy tails; NaN for a constant.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._moment(4) / self._moment(2) ** 2

    @cached_property
    def norm(self) -> Floats:
        """The Euclidean norm of the values, shape ``(n,)``."""
        return np.sqrt(self._sum(self._middles**2))

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute edge of a bucket that is not empty, shape ``(n,)``."""
        return np.maximum(np.abs(self.lowest), np.abs(self.highest))

    @cached_property
    def lowest(self) -> Floats:
        """The left edge of the first bucket that is not empty, shape ``(n,)``."""
        left = np.where(self._counts > 0, self.histograms.buckets[:, 0], np.inf)
        return np.asarray(np.minimum.reduceat(left, self.histograms.offsets[:-1]))

    @cached_property
    def highest(self) -> Floats:
        """The right edge of the last bucket that is not empty, shape ``(n,)``."""
        right = np.where(self._counts > 0, self.histograms.buckets[:, 1], -np.inf)
        return np.asarray(np.maximum.reduceat(right, self.histograms.offsets[:-1]))

    @cached_property
    def finite(self) -> NDArray[np.bool_]:
        """Whether each histogram is free of NaN and infinite values, shape ``(n,)``.

        Writers take the edges from the smallest and largest value, so that one such value shows in them.
        """
        return np.isfinite(self.lowest) & np.isfinite(self.highest)

    @cached_property
    def zeros(self) -> Floats:
        """The share of zeros among values that are not negative, shape ``(n,)``; 0 where there are negative ones.

        A writer with exponential buckets has a bucket for zeros alone. Equal buckets put small values into the first one too: how many
        is taken from the next bucket, as if the values above zero were distributed exponentially. Where more than half of them lie in
        that next bucket, or there are fewer than ten, the buckets are too wide to tell.
        """
        left, right = self.histograms.buckets[:, 0], self.histograms.buckets[:, 1]
        lowest, highest = self.lowest, self.highest
        first = (left <= lowest[self._owner]) & (self._counts > 0)
        at_zero = self._sum(first.astype(np.float64))
        edge = np.maximum.reduceat(np.where(first, right, -np.inf), self.histograms.offsets[:-1])
        exact = edge <= _EXACT * highest
        following = self._sum((left == edge[self._owner]).astype(np.float64))
        rest = self.sizes - at_zero
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = following / rest
            small = np.where((rest >= _LEAST_POSITIVE) & (ratio <= 0.5), rest * ratio / (1 - ratio), at_zero)
        shares = (at_zero - np.where(exact, 0.0, np.minimum(small, at_zero))) / self.sizes
        return np.where((lowest >= 0) & (lowest <= _EXACT * highest) & self.finite, shares, 0.0)

    @cached_property
    def same_since(self) -> int:
        """The index of the first histogram that all later ones are equal to, in every edge and count."""
        index = len(self.histograms) - 1
        while index and np.array_equal(self.histograms[index - 1], self.histograms[index]):
            index -= 1
        return index

    def share_above(self, bound: float, inverse: Callable[[Floats], Floats]) -> Floats:
        """The share of the values of a bounded activation above `bound`, shape ``(n,)``.

        `inverse` maps values to what went into the activation, increasing. There the bucket that holds the bound is assumed to be as
        dense below the bound as the bucket before it.
        """
        return np.array([_share_above(self.histograms[i], bound, inverse) for i in range(len(self.histograms))])

    def share_below(self, bound: float, inverse: Callable[[Floats], Floats]) -> Floats:
        """The same below `bound`, shape ``(n,)``."""
        mirrored = [self.histograms[i][::-1, [1, 0, 2]] * (-1, -1, 1) for i in range(len(self.histograms))]
        return np.array([_share_above(buckets, -bound, lambda values: -inverse(-values)) for buckets in mirrored])

    @cached_property
    def _counts(self) -> Floats:
        return self.histograms.buckets[:, 2]

    @cached_property
    def _middles(self) -> Floats:
        return np.asarray(self.histograms.buckets[:, :2].mean(axis=1))

    @cached_property
    def _owner(self) -> Steps:
        """The histogram of each bucket."""
        return np.repeat(np.arange(len(self.histograms)), np.diff(self.histograms.offsets))

    def _moment(self, order: int) -> Floats:
        """The central moment of an even order, shape ``(n,)``."""
        with np.errstate(invalid="ignore", over="ignore"):
            return self._sum((self._middles - self.mean[self._owner]) ** order) / self.sizes

    def _sum(self, values: Floats) -> Floats:
        """The sum of a value a bucket over the values of each histogram, shape ``(n,)``. Empty buckets count nothing, whatever their
        edges are.
        """
        weighted = np.multiply(values, self._counts, out=np.zeros(len(values)), where=self._counts > 0)
        return np.asarray(np.add.reduceat(weighted, self.histograms.offsets[:-1]))


def layer_histograms(job: Job) -> tuple[LayerHistograms, ...]:
    """Every histogram tag that shows weights, gradients or activations, in the order of their names (`fc2` before `fc10`), without empty
    histograms and without what a restart did again.

    Raises `Missing` where there is none.
    """
    found = []
    for run in job.runs.values():
        for tag in sorted(run.histograms, key=_natural):
            kind = _kind_of(tag)
            histograms = _surviving(run.histograms[tag]) if kind else None
            if histograms is not None:
                found.append(LayerHistograms(histograms, kind, _layer_of(tag)))
    if not found:
        raise Missing("no histograms of weights, gradients or activations (Keras: histogram_freq=1, PyTorch: add_histogram)")
    return tuple(found)


def weight_histograms(layer_histograms: tuple[LayerHistograms, ...]) -> tuple[LayerHistograms, ...]:
    """The histograms of weights. Raises `Missing` where there is none."""
    return _of_kind(layer_histograms, "weight")


def gradient_histograms(layer_histograms: tuple[LayerHistograms, ...]) -> tuple[LayerHistograms, ...]:
    """The histograms of gradients. Raises `Missing` where there is none."""
    return _of_kind(layer_histograms, "gradient")


def activation_histograms(layer_histograms: tuple[LayerHistograms, ...]) -> tuple[LayerHistograms, ...]:
    """The histograms of activations. Raises `Missing` where there is none."""
    return _of_kind(layer_histograms, "activation")


def with_points(layers: tuple[LayerHistograms, ...], needed: int) -> list[LayerHistograms]:
    """The tensors with histograms at `needed` different steps. Raises `Missing` where there is none."""
    enough = [layer for layer in layers if len(np.unique(layer.histograms.steps)) >= needed]
    if not enough:
        most = max(layers, key=lambda layer: len(layer.histograms)).histograms
        raise Missing("{tag} has {count} histograms; {needed} at different steps are needed", tag=most.tag, count=len(most), needed=needed)
    return enough


def shown(layers: Sequence[LayerHistograms], most: int = 5) -> tuple[str, ...]:
    """The names of the first layers, as many as a sentence can bear."""
    names = tuple(layer.layer for layer in layers)
    return names if len(names) <= most else (*names[: most - 1], "…")


def held_from(shares: Floats, least: float) -> int | None:
    """The index from which `shares` stay at `least` or above to the end, single exceptions aside; None where they do not end so."""
    below = np.flatnonzero(rolling_median(np.nan_to_num(shares), 3) < least)
    start = int(below[-1]) + 1 if len(below) else 0
    return start if start < len(shares) else None


def held_layers(
    measured: Iterable[tuple[LayerHistograms, Floats]], least: float, latest_start: float
) -> list[tuple[LayerHistograms, int, float]]:
    """The layers whose share, shape ``(n,)``, stays at `least` or above from a point within `latest_start` of the run to the end, with
    the step of that point and the median share from there on.
    """
    found = []
    for layer, share in measured:
        start = held_from(share, least)
        if start is not None and layer.share_of_run(start) <= latest_start:
            found.append((layer, int(layer.histograms.steps[start]), float(np.median(share[start:]))))
    return found


def _of_kind(layer_histograms: tuple[LayerHistograms, ...], kind: str) -> tuple[LayerHistograms, ...]:
    found = tuple(layer for layer in layer_histograms if layer.kind == kind)
    if not found:
        raise Missing(_LOOKED_FOR[kind])
    return found


def _surviving(histograms: Histograms) -> Histograms | None:
    """The histograms that hold values, without those that a restart replaced; None where there are none.

    Of a constant tensor older versions of `tf.summary.histogram` make one bucket [v - 0.5, v + 0.5]: it becomes the value itself.
    """
    totals = np.concatenate([[0.0], np.cumsum(np.maximum(histograms.buckets[:, 2], 0.0))])[histograms.offsets]
    filled = np.flatnonzero(np.diff(totals) > 0)
    order = Series(histograms.steps[filled], histograms.wall_times[filled], filled.astype(np.float64)).surviving
    kept = order.values.astype(np.int64)
    if not len(kept):
        return None
    if len(kept) == len(histograms):
        offsets, buckets = histograms.offsets, histograms.buckets
    else:
        parts = [histograms[int(i)] for i in kept]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        buckets = np.concatenate(parts)
    constant = offsets[:-1][(np.diff(offsets) == 1) & (np.diff(buckets[:, :2])[offsets[:-1], 0] == 1.0)]
    if len(constant):
        buckets = buckets.copy()
        buckets[constant, :2] = buckets[constant, :2].mean(axis=1, keepdims=True)
    return Histograms(histograms.steps[kept], histograms.wall_times[kept], offsets, buckets, histograms.run, histograms.tag)


def _share_above(buckets: NDArray[np.float64], bound: float, inverse: Callable[[Floats], Floats]) -> float:
    left, right, counts = buckets.T
    above = float(counts[left >= bound].sum())
    for at in np.flatnonzero((left < bound) & (right > bound)).tolist():
        below = 0.0
        if at:
            start, end, limit = inverse(np.array([left[at - 1], left[at], bound]))
            below = float(counts[at - 1] * (limit - end) / (end - start)) if end > start else 0.0
        above += max(0.0, float(counts[at]) - below)
    return above / float(counts.sum())


def _kind_of(tag: str) -> str:
    named = _numberless(tag)
    if _OTHER_WORDS.intersection(named):
        return ""
    if GRADIENT_WORDS.intersection(named) or (_BACKWARD.match(tag) and not _RECURRENT_WORDS.intersection(named)):
        return "gradient"
    if _ACTIVATION_WORDS.intersection(named):
        return "activation"
    if _WEIGHT_WORDS.intersection(named) or named[-1:] == ("b",):
        return "weight"
    return "activation" if _WEAK_ACTIVATION_WORDS.intersection(named) else ""


def _numberless(tag: str) -> tuple[str, ...]:
    """The words of a tag, without the number that one ends with: ``relu0_out`` → relu, out."""
    return tuple(word.rstrip("0123456789") or word for word in words(tag))


def _layer_of(tag: str) -> str:
    """``gradients/dense_1/kernel`` → ``dense_1/kernel``, ``fc1.weight.grad`` → ``fc1``, ``act.act0`` → ``act0``."""
    parts = tag.replace(".", "/").split("/")
    kept = [part for part in parts if not set(words(part)) <= _PLAIN_WORDS]
    return "/".join(kept) or tag


def _natural(tag: str) -> list[tuple[str, int]]:
    """A key that sorts numbers in names by their value."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", tag)]
