"""Models for tests: layers of a config or graph in a few words, and logs that hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.tensor_pb2 import TensorProto

from tb_advisor.evidence.keras_config import layers_of
from tb_advisor.evidence.layers import Layer, Model
from tb_advisor.logdir.jobs import Job, load
from tests.builders import FIRST_SECOND, tensor_event, write_events


def entry(kind: str, name: str, inbound: Sequence[str] = (), **config: object) -> dict:
    """A layer of a Keras 3 config."""
    tensors = [{"class_name": "__keras_tensor__", "config": {"shape": [None], "keras_history": [each, 0, 0]}} for each in inbound]
    nodes = [{"args": tensors, "kwargs": {}}] if inbound else []
    return {"class_name": kind, "name": name, "config": {"name": name, **config}, "inbound_nodes": nodes}


def dense(name: str, units: int, activation: str = "linear", inbound: Sequence[str] = (), **config: object) -> dict:
    return entry("Dense", name, inbound, units=units, activation=activation, use_bias=True, **config)


def conv(name: str, filters: int, kernel: Sequence[int] = (3, 3), activation: str = "linear", **config: object) -> dict:
    return entry("Conv2D", name, filters=filters, kernel_size=list(kernel), strides=[1, 1], padding="same", activation=activation, **config)


def sequential(shape: Sequence[int | None], *layers: dict) -> dict:
    return {"class_name": "Sequential", "config": {"name": "s", "layers": [entry("InputLayer", "in", batch_shape=[None, *shape]), *layers]}}


def functional(*layers: dict) -> dict:
    return {"class_name": "Functional", "config": {"name": "f", "layers": list(layers)}}


def model(config: dict) -> Model:
    return Model("run", layers_of(config))


def sized(**sizes: int) -> Model:
    """A model of which only the names and sizes of layers are known."""
    return Model("run", tuple(Layer(name, "", "other", "", parameters=size) for name, size in sizes.items()), has_links=False)


def config_file(directory: Path, text: str) -> Path:
    tensor = TensorProto(dtype=7, string_val=[text.encode()])
    return write_events(
        directory, [Event(wall_time=FIRST_SECOND, file_version="brain.Event:2"), tensor_event("keras", 0, tensor, "graph_keras_model")]
    )


def config_job(directory: Path, config: object) -> Job:
    config_file(directory, config if isinstance(config, str) else json.dumps(config))
    return load(directory).jobs[0]


def graph_def(*nodes: tuple, functions: Mapping[str, Sequence[tuple]] | None = None) -> GraphDef:
    """A graph of (type, name, inputs) and maybe a shape and a type of numbers."""
    graph = GraphDef()
    _add(graph.node, nodes)
    for name, its_nodes in (functions or {}).items():
        function = graph.library.function.add()
        function.signature.name = name
        _add(function.node_def, its_nodes)
    return graph


def graph_job(directory: Path, graph: GraphDef | bytes) -> Job:
    data = graph if isinstance(graph, bytes) else graph.SerializeToString()
    write_events(directory, [Event(wall_time=FIRST_SECOND, file_version="brain.Event:2"), Event(wall_time=FIRST_SECOND, graph_def=data)])
    return load(directory).jobs[0]


def _add(into: object, nodes: Sequence[tuple]) -> None:
    for kind, name, inputs, *more in nodes:
        node = into.add(op=kind, name=name, input=list(inputs))
        if more and more[0] is not None:
            shape = node.attr["_output_shapes"].list.shape.add()
            for size in more[0]:
                shape.dim.add(size=-1 if size is None else size)
        if len(more) > 1:
            node.attr["T"].type = more[1]
