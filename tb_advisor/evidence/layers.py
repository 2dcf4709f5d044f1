"""A model as rules see it: layers, their links, and what a table says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

Shape = tuple["int | None", ...]

SATURATING = frozenset({"sigmoid", "tanh", "hard_sigmoid", "softsign"})
# What has weights that are multiplied with its input, and what only passes values on.
WEIGHTED = frozenset({"dense", "conv", "depthwise"})
PASSING = frozenset({"dropout", "flatten", "pool"})

COLUMNS = ("layer", "kind", "activation", "output shape", "parameters")


@dataclass(frozen=True)
class Layer:
    """One layer. `kind` is the framework's word (``Conv2D``), `role` one that all share: dense, conv, depthwise, recurrent, embedding,
    activation, normalization, dropout, flatten, pool, input or other.

    `activation` is ``linear`` where there is none, and empty where it is not known. `inputs` are indices of layers before it. `in_size`
    and `out_size` are the last dimension (the channels). What is not known is None, `dtype` empty.
    """

    name: str
    kind: str
    role: str
    activation: str = "linear"
    inputs: tuple[int, ...] = ()
    in_size: int | None = None
    out_size: int | None = None
    kernel: tuple[int, ...] = ()
    shape: Shape | None = None
    parameters: int | None = 0
    dtype: str = ""


@dataclass(frozen=True)
class Model:
    """The layers of the model in the order of computation, and the run that says so. `has_links` tells whether their order is known."""

    run: str
    layers: tuple[Layer, ...]
    has_links: bool = True

    @cached_property
    def parameters(self) -> int:
        """The number of all parameters that are known."""
        return sum(layer.parameters or 0 for layer in self.layers)

    @cached_property
    def consumers(self) -> tuple[int, ...]:
        """How many layers take the output of each."""
        counts = [0] * len(self.layers)
        for layer in self.layers:
            for index in layer.inputs:
                counts[index] += 1
        return tuple(counts)

    def before(self, index: int) -> int | None:
        """The only layer that feeds this one and nothing else; None where there are several, or where others take its output too."""
        inputs = self.layers[index].inputs
        return inputs[0] if len(inputs) == 1 and self.consumers[inputs[0]] == 1 else None

    def activation_of(self, index: int) -> str:
        """The activation of a layer, or of the layer that does nothing but apply it to this one's output."""
        layer = self.layers[index]
        if layer.role not in WEIGHTED or layer.activation != "linear":
            return layer.activation
        return self._applied.get(index, layer.activation)

    def rows(self, indices: Iterable[int]) -> tuple[tuple[str | int | None, ...], ...]:
        """What a table says of these layers, under `COLUMNS`."""
        return tuple(
            (layer.name, layer.kind, self.activation_of(index), _shape_text(layer.shape), layer.parameters)
            for index, layer in ((index, self.layers[index]) for index in indices)
        )

    @cached_property
    def _applied(self) -> dict[int, str]:
        applied = ((self.before(index), layer.activation) for index, layer in enumerate(self.layers) if layer.role == "activation")
        return {index: activation for index, activation in applied if index is not None}


def _shape_text(shape: Shape | None) -> str:
    return "×".join("?" if size is None else f"{size:,}" for size in shape[1:]) if shape else ""
