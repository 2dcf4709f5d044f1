"""The graph that a writer left in the log, as flat operations: TensorFlow's (with its functions) or the trace of `add_graph` of PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tb_advisor.evidence.layers import Shape
from tb_advisor.logdir.event_file import StoredEvent
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

# A graph of 100,000 operations takes 20 to 40 MB and a second; what is larger is not read, nor more than a few events for one graph.
LARGEST_EVENT = 32 << 20
MOST_OPERATIONS = 200_000
_MOST_EVENTS = 4
_RUN_METADATA = ("graph_run_metadata", "graph_run_metadata_graph")


@dataclass(frozen=True)
class Operation:
    """One node of a graph. `inputs` are names of nodes; `dtype` is the number of TensorFlow's type (`types.proto`), 0 where it has none;
    `shape` is that of its first output, None where it is not known.
    """

    name: str
    type: str
    inputs: tuple[str, ...]
    dtype: int
    shape: Shape | None


@dataclass(frozen=True)
class Graph:
    """The operations of one run's graph. Each part has its own names: the graph itself, and each of its functions."""

    run: str
    parts: tuple[tuple[Operation, ...], ...]


def graph(job: Job) -> Graph:
    """The first graph of the job that can be read. Raises `Missing` where there is none."""
    for run in job.runs.values():
        for event in _candidates(run):
            parts = tuple(part for definition in _definitions(event) for part in _parts(definition))
            if sum(map(len, parts)) > MOST_OPERATIONS:
                raise Missing("the graph has more than {most} operations", most=MOST_OPERATIONS)
            if parts:
                return Graph(run.name, parts)
    raise Missing("no graph in the log (TensorFlow: tf.summary.graph, PyTorch: add_graph)")


def _candidates(run: Run) -> Iterator[StoredEvent]:
    events = list(run.stored.get("", ())[:_MOST_EVENTS])
    for tag, plugin in run.tags.items():
        if plugin in _RUN_METADATA:
            events += run.stored.get(tag, ())[:1]
        if len(events) >= 2 * _MOST_EVENTS:
            break
    return (event for event in events if event.length <= LARGEST_EVENT)


def _definitions(stored: StoredEvent) -> list[GraphDef]:
    """The graphs in an event; none where it cannot be read."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.config_pb2 import RunMetadata
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

    try:
        event = stored.read()
        kind = event.WhichOneof("what")
        if kind == "graph_def":
            return [GraphDef.FromString(event.graph_def)]
        if kind == "meta_graph_def":
            return [MetaGraphDef.FromString(event.meta_graph_def).graph_def]
        texts = [text for value in event.summary.value for text in value.tensor.string_val[:1]] if kind == "summary" else []
        return [f.pre_optimization_graph for text in texts for f in RunMetadata.FromString(text).function_graphs]
    except (OSError, DecodeError, RecursionError):
        return []


def _parts(definition: GraphDef) -> Iterator[tuple[Operation, ...]]:
    for nodes in (definition.node, *(function.node_def for function in definition.library.function)):
        if nodes:
            yield tuple(_operations(nodes))


def _operations(nodes: Iterable[Any]) -> Iterator[Operation]:
    for node in nodes:
        inputs = tuple(name.partition(":")[0] for name in node.input if not name.startswith("^"))
        yield Operation(node.name, node.op, inputs, _dtype(node), _shape(node))


def _dtype(node: Any) -> int:
    for key in ("T", "dtype"):
        if key in node.attr and node.attr[key].type:
            return int(node.attr[key].type)
    return 0


def _shape(node: Any) -> Shape | None:
    if "_output_shapes" in node.attr and node.attr["_output_shapes"].list.shape:
        shape = node.attr["_output_shapes"].list.shape[0]
    elif "shape" in node.attr and node.attr["shape"].HasField("shape"):
        shape = node.attr["shape"].shape
    else:
        return None
    return None if shape.unknown_rank else tuple(dim.size if dim.size >= 0 else None for dim in shape.dim)
