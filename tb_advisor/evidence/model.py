"""The layers of the model, with their kinds, activations, sizes and numbers of parameters.

They come from the model config that Keras's TensorBoard callback writes, else from the graph; where neither is in the log, names and
sizes alone come from histograms of weights.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tb_advisor.evidence.graph import Graph, Operation
from tb_advisor.evidence.graph import graph as graph_of
from tb_advisor.evidence.keras_config import read_config
from tb_advisor.evidence.layers import WEIGHTED, Layer, Model, Shape
from tb_advisor.evidence.roles import words
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing

_KERNEL_WORDS = frozenset("kernel weight weights embeddings embedding".split())
_OTHER_WORDS = frozenset("grad grads gradient gradients activation activations output outputs optimizer adam momentum".split())

_PLAIN = frozenset(
    "Identity Cast Squeeze ExpandDims StopGradient PreventGradient Enter Exit EnsureShape CheckNumerics".split()
) | frozenset("aten::to aten::contiguous aten::detach aten::type_as aten::unsqueeze aten::squeeze aten::alias aten::clone".split())
_ACTIVATIONS = {
    **dict.fromkeys(("Relu", "Relu6", "aten::relu", "aten::relu_", "aten::hardtanh_", "aten::hardtanh"), "relu"),
    **dict.fromkeys(("Tanh", "aten::tanh", "aten::tanh_"), "tanh"),
    **dict.fromkeys(("Sigmoid", "aten::sigmoid", "aten::sigmoid_"), "sigmoid"),
    **dict.fromkeys(("Softmax", "aten::softmax"), "softmax"),
    **dict.fromkeys(("LogSoftmax", "aten::log_softmax"), "log_softmax"),
    **dict.fromkeys(("Softsign",), "softsign"),
    **dict.fromkeys(("Elu", "Selu", "LeakyRelu", "Softplus", "Erf", "aten::elu", "aten::selu", "aten::leaky_relu"), "other"),
    **dict.fromkeys(("aten::gelu", "aten::silu", "aten::silu_", "aten::elu_", "aten::leaky_relu_", "aten::prelu", "aten::mish"), "other"),
}
_ROLES = {
    **dict.fromkeys(
        ("Conv2D", "Conv3D", "aten::_convolution", "aten::convolution", "aten::conv1d", "aten::conv2d", "aten::conv3d"), "conv"
    ),
    **dict.fromkeys(("MatMul", "aten::linear", "aten::addmm"), "dense"),
    **dict.fromkeys(("DepthwiseConv2dNative",), "depthwise"),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "aten::batch_norm", "aten::group_norm"), "normalization"),
    **dict.fromkeys(("aten::layer_norm", "aten::native_layer_norm", "aten::instance_norm"), "normalization"),
    **dict.fromkeys(("aten::dropout", "aten::dropout_", "aten::feature_dropout"), "dropout"),
    **dict.fromkeys(("Reshape", "aten::flatten"), "flatten"),
    **dict.fromkeys(
        ("MaxPool", "AvgPool", "aten::max_pool2d", "aten::avg_pool2d", "aten::max_pool1d", "aten::adaptive_avg_pool2d"), "pool"
    ),
}
_UNSIZED = {
    **dict.fromkeys(("ResourceGather", "GatherV2", "Gather", "aten::embedding"), "embedding"),
    **dict.fromkeys(("aten::lstm", "aten::gru", "aten::rnn_tanh", "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"), "recurrent"),
}
_WEIGHT_SOURCES = frozenset("ReadVariableOp VariableV2 Variable VarHandleOp Const prim::GetAttr Parameter".split())
# What looks at values without being a part of the model.
_NO_LAYERS = frozenset(
    "NoOp Shape ShapeN Size Rank Assert SaveV2 RestoreV2 HistogramSummary ScalarSummary MergeSummary Pack StridedSlice Prod Range"
    " aten::size prim::Constant prim::ListConstruct prim::NumToTensor aten::Int aten::t".split()
)
_BACKWARD = re.compile(r"(^|/)(gradients?|gradient_tape|optimizer\w*|Adam|SGD|RMSprop|Momentum)(_\d+)?(/|$)")
_TORCH_SCOPE = re.compile(r"^(\w+)\[(.+)\]$")


def model(job: Job) -> Model:
    """The model of the job. Raises `Missing` where neither config nor graph nor histograms of weights say what it is."""
    sizes = _weight_sizes(job)
    found: Model | None = None
    for run in job.runs.values():
        layers = read_config(run)
        if layers:
            found = Model(run.name, layers)
            break
    if found is None:
        with suppress(Missing):
            found = model_of_graph(graph_of(job))
    if found is not None and any(layer.role in WEIGHTED for layer in found.layers):
        return replace(found, layers=_with_sizes(found.layers, sizes))
    if sizes:
        run_name = next(run.name for run in job.runs.values() if run.histograms)
        names = {name: size for name, size in sizes.items() if size}
        return Model(run_name, tuple(Layer(name, "", "other", "", parameters=size) for name, size in names.items()), has_links=False)
    raise Missing("no model in the log (Keras: TensorBoard(write_graph=True), PyTorch: add_graph, TensorFlow: tf.summary.graph)")


def model_of_graph(found: Graph) -> Model:
    """The layers of the part of a graph that has the most. Raises `Missing` where no part has any."""
    models = [Model(found.run, tuple(_layers(part))) for part in found.parts]
    best = max(models, key=lambda each: sum(layer.role in WEIGHTED for layer in each.layers))
    if not any(layer.role in WEIGHTED for layer in best.layers):
        raise Missing("no layers in the graph of the log (looked for matrix products and convolutions)")
    return best


def is_forward(operation: Operation) -> bool:
    """Whether an operation belongs to the model, not to its gradients or the optimizer."""
    return not _BACKWARD.search(operation.name.rpartition("/")[0] + "/")


def _layers(part: Sequence[Operation]) -> list[Layer]:
    """The layers among the operations of a part, in their order; links back (of loops) are left out."""
    by_name = {operation.name: operation for operation in part}
    standing: dict[str, str] = {}  # what a name stands for behind operations that only pass a value on

    def resolve(name: str) -> str:
        path = []
        while name not in standing:
            operation = by_name.get(name)
            standing[name] = name
            if operation is None or not operation.inputs or not _passes(operation, by_name):
                break
            path.append(name)
            name = operation.inputs[0]
        end = standing[name]
        for passed in path:
            standing[passed] = end
        return end

    biased = {resolve(op.inputs[0]) for op in part if op.inputs and op.type not in _PLAIN and _passes(op, by_name)}
    layers: list[Layer] = []
    numbers: dict[str, int] = {}
    for operation in part:
        if not is_forward(operation) or _passes(operation, by_name) or operation.type in _WEIGHT_SOURCES | _NO_LAYERS:
            continue
        at = 1 if operation.type == "aten::addmm" else 0
        linked = operation.inputs if _is_merge(operation) else operation.inputs[at : at + 1]
        inputs = tuple(dict.fromkeys(numbers[name] for name in map(resolve, linked) if name in numbers))
        numbers[operation.name] = len(layers)
        layers.append(replace(_layer(operation, by_name, has_bias=operation.name in biased), inputs=inputs))
    return layers


def _is_merge(operation: Operation) -> bool:
    return operation.type not in _ROLES and operation.type not in _ACTIVATIONS


def _passes(operation: Operation, by_name: Mapping[str, Operation]) -> bool:
    if operation.type in _PLAIN or operation.type == "BiasAdd":
        return True
    if operation.type in ("Add", "AddV2") and len(operation.inputs) == 2:
        return _weight(operation.inputs[1], by_name) is not None
    return False


def _weight(name: str, by_name: Mapping[str, Operation]) -> Operation | None:
    """The weight behind a name; None where it is something that was computed."""
    for _ in range(4):
        operation = by_name.get(name)
        if operation is None:
            return None
        if operation.type in _WEIGHT_SOURCES:
            return operation
        if operation.type not in ("Identity", "Cast", "Enter", "Reshape", "aten::t") or not operation.inputs:
            return None
        name = operation.inputs[0]
    return None


def _layer(operation: Operation, by_name: Mapping[str, Operation], *, has_bias: bool) -> Layer:
    name, kind = _scope(operation)
    activation = _ACTIVATIONS.get(operation.type)
    if activation:
        return Layer(name, kind, "activation", activation, shape=operation.shape)
    if operation.type in _UNSIZED:
        return _unsized(operation, by_name, name, kind)
    role = _ROLES.get(operation.type, "other")
    if role not in WEIGHTED:
        return Layer(name, kind, role, shape=operation.shape)
    torch = operation.type.startswith("aten::")
    at = 2 if operation.type == "aten::addmm" else 1
    weight = _weight(operation.inputs[at], by_name) if len(operation.inputs) > at else None
    if weight is None and not (torch and operation.type != "aten::addmm"):
        return Layer(name, kind, "other", shape=operation.shape)
    dtype = {1: "float32", 2: "float64", 19: "float16", 14: "bfloat16"}.get(operation.dtype, "")
    data = by_name.get(operation.inputs[1 if operation.type == "aten::addmm" else 0]) if operation.inputs else None
    channels = 1 if torch and role == "conv" else -1
    out_size, in_size = _at(operation.shape, channels), _at(data.shape if data else None, channels)
    kernel: tuple[int, ...] = ()
    parameters = in_size * out_size + out_size if torch and role == "dense" and in_size and out_size else None
    sides = [side or 0 for side in (weight.shape or ())] if weight and not torch else []
    if len(sides) >= 2 and all(sides):
        parameters = math.prod(sides) + has_bias * sides[-1]
        in_size, out_size, kernel = sides[-2], sides[-1], tuple(sides[:-2])
    return Layer(name, kind, role, "linear", (), in_size, out_size, kernel, operation.shape, parameters, dtype)


def _unsized(operation: Operation, by_name: Mapping[str, Operation], name: str, kind: str) -> Layer:
    """An embedding or a recurrent layer, whose weights are known only where their variable says its shape."""
    role = _UNSIZED[operation.type]
    table = _weight(operation.inputs[0], by_name) if operation.inputs and role == "embedding" else None
    if "Gather" in operation.type and table is None and operation.type != "ResourceGather":
        return Layer(name, kind, "other", shape=operation.shape)
    sides = [side or 0 for side in (table.shape or ())] if table else []
    return Layer(name, kind, role, shape=operation.shape, parameters=math.prod(sides) if sides and all(sides) else None)


def _scope(operation: Operation) -> tuple[str, str]:
    """Name and kind of the layer that an operation belongs to: ``Net/Linear[fc1]/12`` → (``fc1``, ``Linear``)."""
    *scopes, last = operation.name.split("/")
    named = [match for match in map(_TORCH_SCOPE.match, scopes) if match]
    if named:
        return ".".join(match[2] for match in named), named[-1][1]
    return "/".join(scopes) or last, operation.type.removeprefix("aten::")


def _at(shape: Shape | None, index: int) -> int | None:
    return shape[index] if shape and len(shape) > 1 else None


def _weight_sizes(job: Job) -> dict[str, int]:
    """How many values the last histogram of each kernel holds, by the name of its layer."""
    sizes: dict[str, int] = {}
    for run in job.runs.values():
        for tag, histograms in run.histograms.items():
            named = set(words(tag))
            if not named & _KERNEL_WORDS or named & _OTHER_WORDS or not len(histograms):
                continue
            total = float(histograms[len(histograms) - 1][:, 2].sum())
            parts = [part for part in re.split(r"[/.]", tag) if not set(words(part)) <= _KERNEL_WORDS | {"histogram", "0"}]
            if 0 < total < 1e15:
                sizes["/".join(parts) or tag] = int(total)
    return sizes


def _with_sizes(layers: tuple[Layer, ...], sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    """The layers with the number of their weights from histograms, where nothing else says it."""
    by_last: dict[str, int | None] = {}
    for name, size in sizes.items():
        last = name.rpartition("/")[2]
        by_last[last] = None if last in by_last else size
    return tuple(
        layer
        if layer.parameters is not None
        else replace(layer, parameters=sizes.get(layer.name.replace(".", "/"), by_last.get(re.split(r"[/.]", layer.name)[-1])))
        for layer in layers
    )
