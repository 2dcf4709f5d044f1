"""Weights stay exactly the same to the end of the run.

## Why it matters

A layer that was meant to learn and does not keeps its random initial values: the others must make up for it, and the model
stays worse than it could be. It is left out of the optimizer, still has `trainable=False` or `requires_grad=False`, gets no
gradient, or the optimizer's step is not called at all.

## How it is found

All edges and counts of the histograms of a weight tensor are equal from some step on to the end, and that step lies within
the first `latest_start` (40%) of the histograms' steps: a learning rate that has decayed to zero late in the run is not
meant. The outer edges are the smallest and largest weight in full precision, so that small updates show. Biases and the
scales of normalisation layers are left out, and tensors of fewer than `min_size` (4) values. At least `min_points` (4) equal
histograms at different steps are needed.

Layers that are frozen on purpose are information: all frozen from the first step on while others learn, and either a name
says so (LoRA, a backbone), or they are at least `min_backbone` (4) tensors, more than half of all, and most of them have the
tails of trained weights. Fresh weights lie between two bounds (kurtosis below `max_fresh_kurtosis`, 2.5; it is 1.8 for the
uniform distribution of the usual initializers, 2.4 for a truncated normal one). The same holds for one embedding table that
is not fresh. Tables are often drawn from a normal distribution, which has a kurtosis of 3, a mean of 0 and a standard deviation
of 1 (PyTorch), 0.05 (Keras) or 0.02 (Transformers): a table that has all three, within 4 standard errors of a sample of its size
and what buckets blur, is fresh; training moves rows by how often they are used, and leaves heavier tails and a mean.

## When it is wrong

A small part frozen on purpose whose name does not tell. Histograms that were written from a copy of the model. PyTorch's
buckets are 10% wide: of a tensor with a few dozen weights some may change while the extremes stay and none crosses an edge;
the confidence is medium then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.histograms import LayerHistograms, shown, with_points
from tb_advisor.evidence.roles import words
from tb_advisor.message import Message
from tb_advisor.rule import rule

# Of so many weights some cross from one bucket to the next when they change.
_MANY = 100
# The standard deviations of normal distributions that embedding tables are drawn from: nn.Embedding and T5, Keras, BERT and GPT.
_USUAL_SPREADS = (1.0, 0.05, 0.02)
_FROZEN_BY_NAME = frozenset("lora backbone pretrained frozen teacher target vgg lpips".split())

# What frozen weights lead to: any of them, and all of them.
_OF_ANY = ("underfitting", "unfinished-training")


@rule(category="training", fixes=("trainable-parameters", "check-training-loop"))
def frozen_weights(
    weight_histograms: tuple[LayerHistograms, ...],
    *,
    latest_start: float = 0.4,
    min_size: int = 4,
    min_backbone: int = 4,
    max_fresh_kurtosis: float = 2.5,
    min_points: int = 4,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the tensors."""
    kernels = [w for w in with_points(weight_histograms, min_points) if not w.is_bias and w.sizes[0] >= min_size and not _is_scale(w)]
    frozen = [
        kernel
        for kernel in kernels
        if kernel.share_of_run(kernel.same_since) <= latest_start
        and len(np.unique(kernel.histograms.steps[kernel.same_since :])) >= min_points
    ]
    if not frozen:
        return
    since = [int(kernel.histograms.steps[kernel.same_since]) for kernel in frozen]
    intended = _on_purpose(frozen, kernels, min_backbone, max_fresh_kurtosis)
    largest = max(float(kernel.sizes[0]) for kernel in frozen)
    equal = min(len(kernel.histograms) - kernel.same_since for kernel in frozen)
    yield Diagnosis(
        Message(
            _template(len(frozen), len(kernels), intended=intended),
            layer=frozen[0].layer,
            layers=shown(frozen),
            step=min(since),
            last=int(frozen[0].histograms.steps[-1]),
            count=len(frozen),
            logged=len(kernels),
        ),
        severity=Severity.INFO if intended else Severity.WARNING,
        confidence=Confidence.HIGH if equal >= 6 and largest >= _MANY and not intended else Confidence.MEDIUM,
        onset_step=min(since),
        last_step=int(frozen[0].histograms.steps[-1]),
        exhibits=(
            HistogramExhibit(frozen[0].histograms.run, frozen[0].histograms.tag),
            TableExhibit(
                Message("Weights that stay the same"),
                ("layer", "since step"),
                tuple((kernel.layer, step) for kernel, step in zip(frozen, since, strict=True)),
            ),
        ),
        explains=_OF_ANY if len(frozen) < len(kernels) else (*_OF_ANY, "class-collapse", "loss-not-decreasing", "overtraining"),
    )


def _template(frozen: int, logged: int, *, intended: bool) -> str:
    if intended:
        return "{count} of {logged} weight tensors are frozen from step {step} on, as in fine-tuning; the others learn."
    if frozen == logged:
        which = "The weights of {layer}" if logged == 1 else "All {count} logged weight tensors"
    else:
        which = "The weights of {layer}" if frozen == 1 else "The weights of {count} of {logged} layers ({layers})"
    rest = "." if frozen == logged else ", while others change."
    return which + " stay exactly the same from step {step} to the end at step {last}" + rest


def _on_purpose(
    frozen: Sequence[LayerHistograms], kernels: Sequence[LayerHistograms], min_backbone: int, max_fresh_kurtosis: float
) -> bool:
    if len(frozen) == len(kernels) or any(kernel.same_since for kernel in frozen):
        return False
    named = [_FROZEN_BY_NAME.intersection(words(kernel.histograms.tag)) for kernel in kernels]
    if any("lora" in names for names in named) or all(_FROZEN_BY_NAME.intersection(words(kernel.histograms.tag)) for kernel in frozen):
        return True
    fresh = [kernel for kernel in frozen if not kernel.kurtosis[0] >= max_fresh_kurtosis]
    if len(frozen) == 1 and frozen[0].is_embedding:
        return not fresh and not _is_fresh_normal(frozen[0])
    return len(frozen) >= min_backbone and 2 * len(frozen) > len(kernels) and 2 * len(fresh) < len(frozen)


def _is_fresh_normal(table: LayerHistograms) -> bool:
    """Whether its values are as the normal initializers of embedding tables draw them.

    The standard errors of n values: σ/√n of the mean, σ/√(2n) of the standard deviation, √(24/n) of the kurtosis. What the buckets of
    the writers add is below 0.005 σ, 0.01 σ and 0.05.
    """
    size, mean, std, kurtosis = (float(values[0]) for values in (table.sizes, table.mean, table.std, table.kurtosis))
    is_usual = any(abs(std / usual - 1) <= 0.01 + 4 / np.sqrt(2 * size) for usual in _USUAL_SPREADS)
    return is_usual and abs(mean) <= (0.005 + 4 / np.sqrt(size)) * std and abs(kurtosis - 3) <= 0.05 + 4 * np.sqrt(24 / size)


def _is_scale(kernel: LayerHistograms) -> bool:
    """Whether all values are exactly one: the untouched scale of a normalisation, whatever its name is."""
    return bool((kernel.lowest == 1).all() and (kernel.highest == 1).all())
