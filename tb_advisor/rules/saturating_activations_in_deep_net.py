"""Many layers in a row end in sigmoid or tanh.

## Why it matters

The slope of a sigmoid is 0.25 at most, that of tanh 1, and both are almost zero away from the middle. Behind several of them little
gradient is left for the first layers, which then learn slowly or not at all.

## How it is found

In the Keras model config or the graph of the log: dense layers and convolutions that feed each other and end in sigmoid, tanh,
hard_sigmoid or softsign. At least `min_layers` (4) of them in a row: up to three train well in practice, and at four sigmoids at most
0.4% of the gradient is left (0.25 to the power of 4). A normalisation, a residual link or another activation between them ends the row,
recurrent layers and gates do not count, and the output layer does not either.

## When it is wrong

Small networks for physics and control use tanh because it is smooth, with careful initialization, and train well. A histogram of
gradients, or vanishing-gradients being clear, says that it does no harm here.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.layers import COLUMNS, PASSING, SATURATING, WEIGHTED, Model
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule


@rule(category="model", fixes=("relu-family", "normalize-layers", "residual-links", "better-initialization"))
def saturating_activations_in_deep_net(model: Model, *, min_layers: int = 4) -> Iterator[Diagnosis]:
    """One diagnosis for the longest row."""
    if not model.has_links:
        raise Missing("the log does not say how the layers follow each other (Keras: write_graph=True, PyTorch: add_graph)")
    row = _longest_row(model)
    if len(row) < min_layers:
        return
    used = sorted({model.layers[index].activation for index in row})
    yield Diagnosis(
        Message(
            "{count} layers in a row end in {activations}, from {first} to {last}.",
            count=len(row),
            activations=tuple(used),
            first=model.layers[row[0]].name,
            last=model.layers[row[-1]].name,
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if "sigmoid" in used else Confidence.MEDIUM,
        exhibits=(TableExhibit(Message("Layers in a row"), COLUMNS, model.rows(row), tab="graphs", run=model.run),),
    )


def _longest_row(model: Model) -> list[int]:
    """The layers that end in a saturating activation and feed each other, the longest such row; the output layer is left out."""
    rows: list[tuple[int, int | None]] = []  # at each layer: how many there are in its row, and the last of them
    parents: dict[int, int | None] = {}
    hidden = _feeds_another(model)
    best, length = None, 0
    for at, layer in enumerate(model.layers):
        depth, last = max((rows[index] for index in layer.inputs), default=(0, None), key=lambda row: row[0])
        if len(layer.inputs) > 1:
            depth, last = 0, None
        if layer.activation in SATURATING and hidden[at] and (layer.role in WEIGHTED or _ends_weighted(model, at)):
            parents[at], depth, last = last, depth + 1, at
        elif not (layer.role in PASSING or (layer.role in WEIGHTED and layer.activation == "linear")):
            depth, last = 0, None
        rows.append((depth, last))
        if depth > length:
            best, length = last, depth
    row = []
    while best is not None:
        row.append(best)
        best = parents[best]
    return row[::-1]


def _ends_weighted(model: Model, at: int) -> bool:
    """Whether this is the activation of the layer with weights before it."""
    inputs = model.layers[at].inputs
    return (
        model.layers[at].role == "activation"
        and len(inputs) == 1
        and model.layers[inputs[0]].role in WEIGHTED
        and model.layers[inputs[0]].activation == "linear"
    )


def _feeds_another(model: Model) -> list[bool]:
    """Whether there is a layer with weights behind each layer."""
    feeds = [False] * len(model.layers)
    for at in range(len(model.layers) - 1, -1, -1):
        if feeds[at] or model.layers[at].role in WEIGHTED:
            for index in model.layers[at].inputs:
                feeds[index] = True
    return feeds
