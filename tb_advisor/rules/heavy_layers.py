"""One dense layer or convolution holds most of the parameters.

## Why it matters

Its weights decide how large the model is on disk and in memory, how long it takes to load, and in small models how fast it is; they are
also what overfits first. The usual case is a dense layer behind a flattened image, which pooling replaces at no loss.

## How it is found

From the Keras model config or the graph of the log, or from the sizes of histograms of weights. A layer is heavy where it holds at least
`min_share` (50%) of all parameters of the model and at least `min_parameters` (1,000,000): below, 4 MB in float32, there is nothing
to gain. The model must have at least `min_layers` (3) layers with parameters, and all their sizes must be known. Embeddings are left out:
their size is that of the vocabulary.

## When it is wrong

A model that was made around one wide layer on purpose, such as a linear model on many features.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.layers import COLUMNS, Layer, Model
from tb_advisor.evidence.roles import words
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_DENSE = ("global-pooling", "prune-weights", "distill-model", "quantize-weights")
_CONV = ("depthwise-separable", "prune-weights", "distill-model", "quantize-weights")
_EMBEDDING_WORDS = frozenset("embedding embeddings embed emb wte wpe token tokens vocab lookup".split())


@rule(category="model", fixes=("global-pooling", "depthwise-separable", "prune-weights", "distill-model", "quantize-weights"))
def heavy_layers(model: Model, *, min_share: float = 0.5, min_parameters: int = 1_000_000, min_layers: int = 3) -> Iterator[Diagnosis]:
    """One diagnosis for the heaviest layer."""
    unknown = [layer.name for layer in model.layers if layer.parameters is None]
    if unknown:
        raise Missing("the number of parameters of {name} is not in the log", name=unknown[0])
    filled = [index for index, layer in enumerate(model.layers) if layer.parameters]
    if len(filled) < min_layers:
        raise Missing("the model has {count} layers with parameters; {needed} are needed", count=len(filled), needed=min_layers)
    heaviest = max(filled, key=lambda index: model.layers[index].parameters or 0)
    layer = model.layers[heaviest]
    count, share = layer.parameters or 0, (layer.parameters or 0) / model.parameters
    if count < min_parameters or share < min_share or _is_embedding(layer):
        return
    flat = layer.role == "dense" and any(model.layers[index].role == "flatten" for index in layer.inputs)
    template = "{layer} holds {share:%} of the model's {total} parameters ({count})" + (
        ", behind a flattened input of {width} values." if flat and layer.in_size else "."
    )
    largest = sorted(filled, key=lambda index: -(model.layers[index].parameters or 0))[:10]
    yield Diagnosis(
        Message(template, layer=layer.name, share=share, total=model.parameters, count=count, width=layer.in_size),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if model.has_links else Confidence.MEDIUM,
        exhibits=(
            TableExhibit(
                Message("The largest layers"),
                (*COLUMNS, "share"),
                tuple((*row, f"{(row[-1] or 0) / model.parameters:.1%}") for row in model.rows(largest) if isinstance(row[-1], int)),
                tab="graphs" if model.has_links else "",
                run=model.run,
            ),
        ),
        fixes=_CONV if layer.role in ("conv", "depthwise") else _DENSE if flat or not model.has_links else _DENSE[1:],
    )


def _is_embedding(layer: Layer) -> bool:
    return layer.role == "embedding" or bool(_EMBEDDING_WORDS.intersection(words(layer.name)))
