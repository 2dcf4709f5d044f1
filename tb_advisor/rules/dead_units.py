"""Almost all outputs of an activation are zero.

## Why it matters

A unit whose output is zero for every example passes no gradient back: its weights stay as they are, and it stays dead. The
layer works with what is left of it, or not at all. The usual causes are a step that was far too long (a learning rate that
is too high, one huge gradient), biases far below zero, and inputs that are not scaled.

## How it is found

In histograms of activations that have no negative values. Healthy ReLU layers have 30 to 75% zeros; `min_zeros` (90%, as in
the DeadRelu rule of SageMaker Debugger) of them or more must be zero from some step of the first `latest_start` (50%) of the
histograms' steps on to the end, single exceptions aside: units that die later have been seen dead for too short a time.
Equal buckets, as TensorFlow writes them, put small values and zeros together; small values are told from the density of the
next bucket. Attention weights, masks, dropout, one-hot inputs and outputs are zero by design, and left out by their names.
At least `min_points` (4) histograms are needed.

## When it is wrong

Large transformers with ReLU become very sparse by themselves while they train well, and so do sparse autoencoders and
mixtures of experts. Histograms of a single example show what is zero for this example, not which units are dead.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, Severity, TableExhibit
from tb_advisor.evidence.histograms import LayerHistograms, held_layers, shown, with_points
from tb_advisor.message import Message
from tb_advisor.rule import rule


@rule(
    category="activations", fixes=("lower-learning-rate", "better-initialization", "leaky-activation", "scale-inputs", "normalize-layers")
)
def dead_units(
    activation_histograms: tuple[LayerHistograms, ...],
    *,
    min_zeros: float = 0.9,
    latest_start: float = 0.5,
    min_points: int = 4,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the layers."""
    layers = [layer for layer in with_points(activation_histograms, min_points) if not layer.is_sparse_by_design]
    dead = held_layers(((layer, layer.zeros) for layer in layers if (layer.lowest >= 0).all()), min_zeros, latest_start)
    if not dead:
        return
    worst, step, share = max(dead, key=lambda found: found[2])
    first = min(start for _, start, _ in dead)
    least = min(share for _, _, share in dead)
    all_zero = least > 0.9995
    template = "From step {step} on " + ("all" if all_zero else "{share:%} of the") + " outputs of {layer} are zero."
    if len(dead) > 1:
        how_many = "all" if all_zero else "at least {least:%} of the"
        template = f"In {{count}} of {{logged}} activation layers {how_many} outputs are zero from step {{first}} on: {{layers}}."
    rows = tuple((layer.layer, share, start) for layer, start, share in dead)
    yield Diagnosis(
        Message(
            template,
            step=step,
            share=share,
            layer=worst.layer,
            count=len(dead),
            logged=len(layers),
            least=least,
            first=first,
            layers=shown([layer for layer, _, _ in dead]),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if share >= 0.99 else Confidence.MEDIUM,
        onset_step=first,
        last_step=int(worst.histograms.steps[-1]),
        exhibits=(
            HistogramExhibit(worst.histograms.run, worst.histograms.tag),
            TableExhibit(Message("Dead layers"), ("layer", "share of zeros", "since step"), rows),
        ),
        explains=("class-collapse", "frozen-weights", "loss-not-decreasing", "underfitting", "vanishing-gradients"),
    )
