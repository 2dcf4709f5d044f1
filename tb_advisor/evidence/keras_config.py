"""Reads the model config that Keras's TensorBoard callback writes: JSON in a tensor, of Keras 2 and 3, Sequential and Functional."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from tb_advisor.evidence.layers import Layer, Shape
from tb_advisor.logdir.event_file import StoredEvent
from tb_advisor.logdir.jobs import Run

PLUGIN = "graph_keras_model"
# The config of ResNet-152 has 0.6 MB.
LARGEST_CONFIG = 16 << 20
_DEEPEST = 10
_MOST_LAYERS = 20_000
_LARGEST_SIZE = 1 << 40

Config: TypeAlias = Mapping[str, Any]

_ROLES = {
    **dict.fromkeys(("InputLayer",), "input"),
    **dict.fromkeys(("Dense",), "dense"),
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D"), "conv"),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"), "depthwise"),
    **dict.fromkeys(("LSTM", "GRU", "SimpleRNN", "CuDNNLSTM", "CuDNNGRU", "Bidirectional", "ConvLSTM2D", "RNN"), "recurrent"),
    **dict.fromkeys(("Embedding",), "embedding"),
    **dict.fromkeys(("Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax", "ThresholdedReLU"), "activation"),
    **dict.fromkeys(("BatchNormalization", "LayerNormalization", "GroupNormalization", "UnitNormalization"), "normalization"),
    **dict.fromkeys(("Dropout", "AlphaDropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianDropout"), "dropout"),
    **dict.fromkeys(("Flatten", "Reshape"), "flatten"),
}
_ACTIVATION_KINDS = {
    "ReLU": "relu",
    "Softmax": "softmax",
    "LeakyReLU": "other",
    "PReLU": "other",
    "ELU": "other",
    "ThresholdedReLU": "other",
}
_WITHOUT_WEIGHTS = frozenset(
    "InputLayer Activation ReLU LeakyReLU ELU Softmax Dropout AlphaDropout SpatialDropout1D SpatialDropout2D GaussianDropout GaussianNoise"
    " Flatten Reshape Permute RepeatVector Masking Cropping2D ZeroPadding1D ZeroPadding2D UpSampling1D UpSampling2D Add Subtract Multiply"
    " Average Maximum Minimum Concatenate Dot Rescaling Resizing RandomFlip RandomRotation RandomZoom RandomCrop CenterCrop Lambda"
    " ActivityRegularization TFOpLambda TensorFlowOpLayer SlicingOpLambda UnitNormalization".split()
)


def read_config(run: Run) -> tuple[Layer, ...]:
    """The layers that the last model config of a run lists; empty where there is none that can be read."""
    for tag, plugin in run.tags.items():
        if plugin == PLUGIN:
            for stored in run.stored.get(tag, ())[-1:]:
                return _read(stored, tag)
    return ()


def _read(stored: StoredEvent, tag: str) -> tuple[Layer, ...]:
    from google.protobuf.message import DecodeError

    if stored.length > LARGEST_CONFIG:
        return ()
    try:
        value = next(value for value in stored.read().summary.value if value.tag == tag)
        config = json.loads(value.tensor.string_val[0] if value.tensor.string_val else value.tensor.tensor_content)
        return layers_of(config)
    except (OSError, DecodeError, ValueError, RecursionError, StopIteration, ArithmeticError):
        return ()


def layers_of(config: object) -> tuple[Layer, ...]:
    """The layers of a model config, those of models within it among them. What is no config has none."""
    reader = _Reader()
    reader.model(_mapping(config), "", None, 0)
    return tuple(reader.layers)


class _Reader:
    """Collects layers; they are numbered across the models that contain each other."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []

    def model(self, config: Config, prefix: str, outer: int | None, depth: int) -> int | None:
        """Add the layers of one model that takes what layer `outer` puts out; the number of its last layer."""
        inner = config.get("config")
        listed = inner if isinstance(inner, list) else _mapping(inner).get("layers")
        if not isinstance(listed, list) or depth > _DEEPEST:
            return outer
        sequential = config.get("class_name") == "Sequential" or not any(_mapping(entry).get("inbound_nodes") for entry in listed)
        numbers: dict[str, int] = {}
        last = outer
        for entry in map(_mapping, listed):
            if len(self.layers) >= _MOST_LAYERS:
                break
            its_config = _mapping(entry.get("config"))
            name = str(entry.get("name") or its_config.get("name") or entry.get("class_name") or "")
            if sequential:
                inputs: tuple[int, ...] = () if last is None else (last,)
            else:
                sources = dict.fromkeys(_sources(entry.get("inbound_nodes")))
                inputs = tuple(dict.fromkeys(numbers[source] for source in sources if source in numbers))
                if not inputs and outer is not None:
                    inputs = (outer,)
            if isinstance(its_config.get("layers"), list) or isinstance(entry.get("config"), list):
                number = self.model(entry, f"{prefix}{name}/", inputs[0] if inputs else outer, depth + 1)
            else:
                self.layers.append(_layer(entry, its_config, f"{prefix}{name}", inputs, self.layers))
                number = len(self.layers) - 1
            if number is not None:
                numbers[name] = last = number
        return last


def _sources(nodes: object) -> Iterator[str]:
    """The names of the layers that inbound nodes name: ``[["input_1", 0, 0, {}]]`` in Keras 2, tensors with a history in Keras 3."""
    waiting = [nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            history = _mapping(node.get("config")).get("keras_history")
            if isinstance(history, list) and history and isinstance(history[0], str):
                yield history[0]
            else:
                waiting += reversed(list(node.values()))
        elif isinstance(node, list):
            if len(node) >= 3 and isinstance(node[0], str) and isinstance(node[1], int):
                yield node[0]
                waiting += node[3:4]
            else:
                waiting += reversed(node)


def _layer(entry: Config, config: Config, name: str, inputs: tuple[int, ...], before: list[Layer]) -> Layer:
    kind = str(entry.get("class_name") or "")
    role = _ROLES.get(kind, "pool" if "Pooling" in kind else "other")
    built = _mapping(entry.get("build_config")).get("input_shape")
    given = _shape(built) or _shape(config.get("batch_shape")) or _shape(config.get("batch_input_shape"))
    in_shape = given or (before[inputs[0]].shape if inputs else None)
    wrapped = _mapping(config.get("layer"))
    shape = _shape_after(kind, config, in_shape, [before[index].shape for index in inputs])
    parameters = 0 if kind in _WITHOUT_WEIGHTS or "Pooling" in kind else _parameters(kind, config, in_shape)
    if kind == "Bidirectional":
        parameters = _twice(_parameters(str(wrapped.get("class_name")), _mapping(wrapped.get("config")), in_shape))
    return Layer(
        name=name,
        kind=kind,
        role=role,
        activation=_activation(kind, config),
        inputs=inputs,
        in_size=in_shape[-1] if in_shape else None,
        out_size=_count(config.get("units")) or _count(config.get("filters")) or (shape[-1] if shape else None),
        kernel=_counts(config.get("kernel_size")) or (),
        shape=shape,
        parameters=parameters,
        dtype=_dtype(config.get("dtype")),
    )


def _activation(kind: str, config: Config) -> str:
    if kind in _ACTIVATION_KINDS:
        return _ACTIVATION_KINDS[kind]
    if "activation" not in config:
        return "linear"
    activation = config["activation"]
    if activation is None:
        return "linear"
    return activation if isinstance(activation, str) else "other"


def _dtype(policy: object) -> str:
    named = _mapping(_mapping(policy).get("config")).get("name")
    return policy if isinstance(policy, str) else named if isinstance(named, str) else ""


def _parameters(kind: str, config: Config, in_shape: Shape | None) -> int | None:
    """The number of weights of a layer, those that are not trained among them; None where it cannot be told."""
    size = in_shape[-1] if in_shape else None
    units, filters = _count(config.get("units")), _count(config.get("filters"))
    bias = config.get("use_bias") is not False
    kernel = _counts(config.get("kernel_size"))
    if kind == "Embedding":
        rows, width = _count(config.get("input_dim")), _count(config.get("output_dim"))
        return rows * width if rows and width else None
    if size is None:
        return None
    if kind == "Dense" and units:
        return size * units + bias * units
    if kind in ("Conv1D", "Conv2D", "Conv3D") and filters and kernel:
        return math.prod(kernel) * (size // (_count(config.get("groups")) or 1)) * filters + bias * filters
    if kind.startswith(("DepthwiseConv", "SeparableConv")) and kernel:
        wide = size * (_count(config.get("depth_multiplier")) or 1)
        depthwise = math.prod(kernel) * wide
        if kind.startswith("DepthwiseConv"):
            return depthwise + bias * wide
        return depthwise + wide * filters + bias * filters if filters else None
    gates = {"LSTM": 4, "CuDNNLSTM": 4, "GRU": 3, "CuDNNGRU": 3, "SimpleRNN": 1}.get(kind)
    if gates and units:
        biases = 2 if gates == 3 and config.get("reset_after", True) else 1
        return gates * units * (size + units + bias * biases)
    if kind == "BatchNormalization":
        return size * (2 + (config.get("center") is not False) + (config.get("scale") is not False))
    if kind in ("LayerNormalization", "GroupNormalization"):
        return size * ((config.get("center") is not False) + (config.get("scale") is not False))
    return None


def _shape_after(kind: str, config: Config, shape: Shape | None, inputs: list[Shape | None]) -> Shape | None:
    """The shape that a layer of a known kind puts out; None for the others."""
    units = _count(config.get("units"))
    if kind == "InputLayer":
        return _shape(config.get("batch_shape")) or _shape(config.get("batch_input_shape"))
    if shape is None:
        return None
    rule = _SHAPES.get(kind)
    if rule is not None:
        return rule(config, shape)
    if kind in ("LSTM", "GRU", "SimpleRNN", "CuDNNLSTM", "CuDNNGRU") and units:
        return (*shape[:-1], units) if config.get("return_sequences") else (shape[0], units)
    if kind == "Concatenate" and inputs and config.get("axis", -1) in (-1, len(shape) - 1):
        widths = [each[-1] if each else None for each in inputs]
        return (*shape[:-1], None if None in widths else sum(width or 0 for width in widths))
    if _ROLES.get(kind) in ("activation", "normalization", "dropout") or kind in ("Add", "Multiply", "Average", "Maximum", "GaussianNoise"):
        return shape
    return None


def _dense_shape(config: Config, shape: Shape) -> Shape | None:
    units = _count(config.get("units"))
    return (*shape[:-1], units) if units else None


def _conv_shape(config: Config, shape: Shape) -> Shape | None:
    filters = _count(config.get("filters")) or (shape[-1] or 0) * (_count(config.get("depth_multiplier")) or 1)
    sides = _sides(config, shape, _counts(config.get("kernel_size")))
    return (shape[0], *sides, filters or None) if sides is not None else None


def _pool_shape(config: Config, shape: Shape) -> Shape | None:
    sides = _sides(config, shape, _counts(config.get("pool_size")))
    return (shape[0], *sides, shape[-1]) if sides is not None else None


def _sides(config: Config, shape: Shape, kernel: tuple[int, ...] | None) -> tuple[int | None, ...] | None:
    """Height and width after a window was moved over them."""
    if config.get("data_format") == "channels_first" or kernel is None or len(kernel) != len(shape) - 2:
        return None
    strides = _counts(config.get("strides")) or (kernel if "pool_size" in config else (1,) * len(kernel))
    dilation = _counts(config.get("dilation_rate")) or (1,) * len(kernel)
    if len(strides) != len(kernel) or len(dilation) != len(kernel):
        return None
    same = config.get("padding") in ("same", "causal")
    return tuple(
        None if side is None else max(0, -(-side // step) if same else (side - (width - 1) * spread - 1) // step + 1)
        for side, width, step, spread in zip(shape[1:-1], kernel, strides, dilation, strict=True)
    )


def _flat_shape(config: Config, shape: Shape) -> Shape | None:
    sides = [side or 0 for side in shape[1:]]
    return (shape[0], math.prod(sides) if all(sides) else None)


def _reshaped(config: Config, shape: Shape) -> Shape | None:
    target = config.get("target_shape")
    sizes = tuple(_count(size) for size in target) if isinstance(target, list) else ()
    return (shape[0], *sizes) if sizes and None not in sizes else None


def _embedded(config: Config, shape: Shape) -> Shape | None:
    return (*shape, _count(config.get("output_dim")))


def _global_shape(config: Config, shape: Shape) -> Shape | None:
    return (shape[0], shape[-1]) if config.get("data_format") != "channels_first" and not config.get("keepdims") else None


_SHAPES: dict[str, Callable[[Config, Shape], Shape | None]] = {
    "Dense": _dense_shape,
    "Flatten": _flat_shape,
    "Reshape": _reshaped,
    "Embedding": _embedded,
    **dict.fromkeys(
        ("Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"), _conv_shape
    ),
    **{f"{how}Pooling{n}D": _pool_shape for how in ("Max", "Average") for n in (1, 2, 3)},
    **{f"Global{how}Pooling{n}D": _global_shape for how in ("Max", "Average") for n in (1, 2, 3)},
}


def _mapping(value: object) -> Config:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST_SIZE else None


def _counts(value: object) -> tuple[int, ...] | None:
    """A list of sizes, or one; None where one of them is none."""
    items = value if isinstance(value, (list, tuple)) else [value]
    counts = [_count(item) for item in items[:4]]
    return None if not counts or None in counts else tuple(count or 0 for count in counts)


def _shape(value: object) -> Shape | None:
    """A shape as JSON has it: a list of sizes and nulls, or a tuple of Keras 3 (``{"class_name": "__tuple__", "items": [...]}``)."""
    items = _mapping(value).get("items", value)
    if not isinstance(items, list) or not 0 < len(items) < 12:
        return None
    return tuple(_count(item) for item in items)


def _twice(count: int | None) -> int | None:
    return None if count is None else 2 * count
