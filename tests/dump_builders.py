"""Dumps of TensorFlow's debugger for tests: what a few operations made, as its files hold it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_advisor.logdir.debug_events import DebuggerDump, debug_event_class, read_dump

FULL_HEALTH = 4
STACK = (("/home/me/train.py", 12, "<module>"), ("/venv/lib/python3.11/site-packages/keras/src/layers/layer.py", 40, "call"))


def health(size: int = 4, low: int = 0, high: int = 0, nan: int = 0) -> list[float]:
    """A tensor as FULL_HEALTH reduces it: id, device, type, rank, size, -Inf, +Inf, NaN, negative, zero, positive."""
    return [7, 0, 1, 2, size, low, high, nan, 0, 0, size - low - high - nan]


def tensor(values: Sequence[float], dtype: int = 2) -> bytes:
    content = np.array(values, {1: "<f4", 2: "<f8"}[dtype]).tobytes()
    proto = TensorProto(dtype=dtype, tensor_content=content)
    proto.tensor_shape.dim.add(size=len(values))
    return proto.SerializeToString()


def write(path: Path, events: Sequence[object]) -> Path:
    with path.open("wb") as stream:
        writer = RecordWriter(stream)
        for event in events:
            writer.write(event.SerializeToString())
    return path


def dump_files(directory: Path, operations: Sequence[tuple], *, eager: Sequence[tuple] = (), mode: int = FULL_HEALTH, stack=STACK):
    """Files of a dump. `operations` are (type, name, values) or (type, name, values, inputs) in a graph, `eager` are (type, values)."""
    event_class = debug_event_class()
    directory.mkdir(parents=True, exist_ok=True)
    events = {name: [] for name in ("metadata", "execution", "graph_execution_traces", "graphs", "stack_frames", "source_files")}
    frames = [b"frame%d" % i for i in range(len(stack))]
    for index, (file, line, function) in enumerate(stack):
        source = {"file_path": file.encode(), "lines": [b"line %d" % (n + 1) for n in range(line)]}
        events["source_files"].append(event_class(source_file=source))
        place = {"file_index": index, "line": line, "func": function.encode()}
        events["stack_frames"].append(event_class(stack_frame={"id": frames[index], "file_line_col": place}))
    for at, (kind, name, values, *inputs) in enumerate(operations):
        creation = {
            "op_type": kind.encode(),
            "op_name": name.encode(),
            "graph_id": b"g",
            "input_names": [each.encode() for each in inputs],
            "code_location": {"stack_frame_ids": frames},
        }
        events["graphs"].append(event_class(creation=creation))
        trace = {"context_id": b"g", "op_name": name.encode(), "tensor_debug_mode": mode, "tensor_proto": tensor(values)}
        events["graph_execution_traces"].append(event_class(wall_time=1e9 + at, trace=trace))
    for at, (kind, values) in enumerate(eager):
        execution = {
            "op_type": kind.encode(),
            "tensor_debug_mode": mode,
            "tensor_protos": [tensor(values)],
            "code_location": {"stack_frame_ids": frames},
        }
        events["execution"].append(event_class(wall_time=1e9 + at + 0.5, execution=execution))
    return tuple(write(directory / f"tfdbg_events.1.host.{name}", its) for name, its in events.items())


def dump_of(directory: Path, *operations: tuple, **more: object) -> DebuggerDump:
    return read_dump(dump_files(directory, operations, **more))
