"""How large the gradients are over the steps: of the whole model, and layer by layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tb_advisor.evidence.histograms import LayerHistograms, layer_histograms
from tb_advisor.evidence.losses import train_loss
from tb_advisor.evidence.roles import GRADIENT_WORDS, Assignment, Roles, words
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing
from tb_advisor.series import Floats, Series

_AFTER_CLIPPING = frozenset({"after", "clipped", "postclip"})
# Words that say what is shown, not of which layer.
_PLAIN_WORDS = GRADIENT_WORDS | frozenset("norm norms l2 2 0 inf magnitude weight weights param params train".split())
# Biases, scales of normalisations and embeddings (of which a batch touches a few rows only) follow other laws than kernels.
_NO_KERNEL = re.compile(r"(bias|beta|gamma|moving|bn|ln|norm|batchnorm|layernorm|groupnorm|emb|embed|embedding|embeddings|wte|wpe)\d*")


@dataclass(frozen=True, eq=False)
class LayerGradient:
    """How large the gradient of one layer's kernel is over the steps.

    `layer` is the writer's name of it. `size` is its logged norm or the mean absolute value of its histograms, `largest`
    that norm or the largest absolute value that the histograms reach.
    """

    layer: str
    size: Series
    largest: Series
    of_histograms: bool


@dataclass(frozen=True, eq=False)
class Gradients:
    """What a job logs of its gradients: the norm over the whole model (None where it is not logged) and the layers; with the
    training loss beside them (None where there is none whose level says anything).
    """

    norm: Series | None
    layers: tuple[LayerGradient, ...]
    loss: Series | None


def gradients(job: Job, roles: Roles) -> Gradients:
    """All that the job logs of its gradients. Raises `Missing` where that is nothing."""
    norm = _global_norm(roles)
    # Networks that are trained against each other, as in a GAN, are no layers of one model.
    layers = (*_layers_of_norms(roles), *_layers_of_histograms(job)) if roles.task == "supervised" else ()
    if norm is None and not layers:
        raise Missing("no gradient norm and no histograms of gradients (looked for grad_norm, gradients/global_norm, gradients/…)")
    return Gradients(norm, layers, _loss_beside(roles))


def gradient_norm(gradients: Gradients) -> Series:
    """The norm of the gradient over the whole model, before clipping where both are logged, without what a restart did
    again. Raises `Missing` where it is not logged.
    """
    if gradients.norm is None:
        raise Missing("no tag plays the role of the gradient norm of the whole model (looked for grad_norm, total_norm, global_norm)")
    return gradients.norm


def layer_gradients(gradients: Gradients) -> tuple[LayerGradient, ...]:
    """The gradients of the layers' kernels. Raises `Missing` where fewer than two layers are logged."""
    if len({layer.layer for layer in gradients.layers}) < 2:
        raise Missing("gradients of fewer than two layers are logged (looked for grad_norm/<layer>, and for histograms of gradients)")
    return gradients.layers


def _global_norm(roles: Roles) -> Series | None:
    named = [a for a in roles.of("gradient_norm") if not a.part]
    return min(named, key=_rank).series.surviving if named else None


def _rank(a: Assignment) -> tuple[object, ...]:
    """Smaller is better: before clipping, of training, a plain name, more points."""
    return bool(_AFTER_CLIPPING & set(a.words)), a.evaluation, len(a.words), -len(a.series), a.series.run, a.series.tag


def _layers_of_norms(roles: Roles) -> Iterator[LayerGradient]:
    for a in roles.of("gradient_norm"):
        layer = _layer_of(a.series.tag)
        if a.part and _is_kernel(layer):
            yield LayerGradient(layer, a.series.surviving, a.series.surviving, False)


def _layers_of_histograms(job: Job) -> Iterator[LayerGradient]:
    try:
        found: Iterable[LayerHistograms] = layer_histograms(job)
    except Missing:
        return
    for each in found:
        if each.kind == "gradient" and not each.is_bias and not each.is_embedding:
            yield LayerGradient(each.layer, _curve(each, each.mean_abs), _curve(each, each.largest), True)


def _curve(shown: LayerHistograms, values: Floats) -> Series:
    histograms = shown.histograms
    return Series(histograms.steps, histograms.wall_times, values, histograms.run, histograms.tag).surviving


def _layer_of(tag: str) -> str:
    """``grad_norm/dense_1/kernel`` → ``dense_1/kernel``, ``grad_2.0_norm/fc.1.weight`` → ``fc/1``."""
    parts = tag.replace(".", "/").split("/")
    while parts and set(words(parts[0])) <= _PLAIN_WORDS:
        del parts[0]
    while parts and not parts[-1].isdigit() and set(words(parts[-1])) <= _PLAIN_WORDS:
        del parts[-1]
    return "/".join(parts) or tag


def _is_kernel(layer: str) -> bool:
    return not any(_NO_KERNEL.fullmatch(word) for word in words(layer))


def _loss_beside(roles: Roles) -> Series | None:
    try:
        return train_loss(roles)
    except Missing:
        return None
