"""Layers follow each other that one layer could replace.

## Why it matters

Two linear layers with nothing between them compute what one linear layer can: the second costs parameters and time and adds nothing that
the model could represent. Most often an activation was forgotten. A softmax behind a softmax makes the outputs almost equal, so that the
loss hardly falls; other layers that repeat do nothing the second time.

## How it is found

In the Keras model config or the graph of the log. Two dense layers, or two convolutions of one kernel size, are redundant where the first
has no activation, nothing but dropout lies between them, nothing else takes what the first puts out, and the first is at least as wide as
its input or as the output of the second: a narrower one is a bottleneck, which saves parameters (low-rank layers, adapters) and is left
out. What repeats must be the same activation, normalisation, dropout or flattening, one directly behind the other.

## When it is wrong

A layer that is split off on purpose: to take its output elsewhere after training, to load weights into it, or to train two factors instead
of their product.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.layers import COLUMNS, Layer, Model
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_REPEATED = frozenset({"normalization", "dropout", "flatten"})


@rule(category="model", fixes=("activation-between", "merge-layers"))
def redundant_layers(model: Model) -> Iterator[Diagnosis]:
    """One diagnosis for linear layers in a row, one for layers that repeat."""
    if not model.has_links:
        raise Missing("the log does not say how the layers follow each other (Keras: write_graph=True, PyTorch: add_graph)")
    pairs = [(before, at) for at in range(len(model.layers)) if (before := _linear_before(model, at)) is not None]
    if pairs:
        first, second = (model.layers[index] for index in pairs[0])
        yield _diagnosis(
            model,
            pairs,
            Message(
                "Nothing lies between the linear layers {first} and {second}: one could replace both.", first=first.name, second=second.name
            ),
            Message(
                "Nothing lies between {count} pairs of linear layers, {first} and {second} the first.",
                count=len(pairs),
                first=first.name,
                second=second.name,
            ),
        )
    repeats = [(before, at) for at in range(len(model.layers)) if (before := _repeated(model, at)) is not None]
    if repeats:
        first, second = (model.layers[index] for index in repeats[0])
        what = second.activation if second.role == "activation" else second.role
        yield _diagnosis(
            model,
            repeats,
            Message("{second} repeats the {what} of {first} before it.", first=first.name, second=second.name, what=what),
            Message(
                "{count} layers repeat the one before them; {second} repeats the {what} of {first}.",
                count=len(repeats),
                first=first.name,
                second=second.name,
                what=what,
            ),
        )


def _diagnosis(model: Model, pairs: list[tuple[int, int]], one: Message, several: Message) -> Diagnosis:
    shown = dict.fromkeys(index for pair in pairs[:20] for index in pair)
    return Diagnosis(
        one if len(pairs) == 1 else several,
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        exhibits=(TableExhibit(Message("Layers in a row"), COLUMNS, model.rows(shown), tab="graphs", run=model.run),),
        fixes=("activation-between", "merge-layers") if model.layers[pairs[0][1]].role in ("dense", "conv") else ("merge-layers",),
    )


def _linear_before(model: Model, at: int) -> int | None:
    """The linear layer before this one, where the two are one."""
    layer = model.layers[at]
    if layer.role not in ("dense", "conv"):
        return None
    before = model.before(at)
    while before is not None and model.layers[before].role == "dropout":
        before = model.before(before)
    if before is None or not _is_linear(model.layers[before], layer):
        return None
    ends = [size for size in (model.layers[before].in_size, layer.out_size) if size is not None]
    width = model.layers[before].out_size
    return before if width is not None and ends and width >= min(ends) else None


def _is_linear(first: Layer, second: Layer) -> bool:
    return first.role == second.role and first.activation == "linear" and first.kernel == second.kernel and len(set(first.kernel)) <= 1


def _repeated(model: Model, at: int) -> int | None:
    """The layer before this one, where this one does the same again."""
    layer, before = model.layers[at], model.before(at)
    if before is None:
        return None
    earlier = model.layers[before]
    if layer.role == "activation":
        same = layer.activation == earlier.activation and layer.activation not in ("linear", "", "other")
        return before if same and earlier.role in ("dense", "conv", "depthwise", "activation") else None
    return before if layer.role in _REPEATED and layer.kind == earlier.kind and layer.kind != "Reshape" else None
