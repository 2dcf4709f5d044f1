"""Reads dumps of TensorFlow's debugger (``tf.debugging.experimental.enable_dump_debug_info``): which operation was the first to break.

A dump is six TFRecord files of ``DebugEvent`` messages, of which TensorBoard ships no classes (tensorflow/core/protobuf/debug_event.proto).
What each operation made lies in two of them, in the order of execution; the others say what the operation is and which lines of code
made it. They are read only where something broke.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tb_advisor.logdir.messages import Fields, message_class
from tb_advisor.logdir.records import LONG, Buffer

# Of each file of a dump so much is read. A trace of one operation takes 240 bytes and 10 µs.
LARGEST_READ = 64 << 20
_CHUNK = 1 << 20
# What is infinite on purpose (a mask, the start of a maximum) is not an operation that broke; so many are looked at.
_MOST_INFINITE = 50
_INFINITE_ON_PURPOSE = frozenset(b"Const Fill Placeholder BroadcastTo Tile Select SelectV2".split())

# debug_event.proto: TensorDebugMode. What a tensor was reduced to: where the counts of -Inf, +Inf and NaN stand in it.
_CURT, _WHOLE = 2, 7
_COUNTS = {3: slice(2, 5), 4: slice(5, 8), 8: slice(0, 3)}
_NUMPY_TYPES = {1: "<f4", 2: "<f8", 19: "<f2"}
_BFLOAT16 = 14

_FIELDS: Fields = {
    "FileLineCol": (("file_index", 1, "int32"), ("line", 2, "int32"), ("func", 4, "bytes")),
    "CodeLocation": (("stack_frame_ids", 2, "bytes*"),),
    "SourceFile": (("file_path", 1, "bytes"), ("lines", 3, "bytes*")),
    "StackFrame": (("id", 1, "bytes"), ("file_line_col", 2, "FileLineCol")),
    "Creation": (
        ("op_type", 1, "bytes"),
        ("op_name", 2, "bytes"),
        ("graph_id", 4, "bytes"),
        ("input_names", 6, "bytes*"),
        ("code_location", 8, "CodeLocation"),
    ),
    "Execution": (
        ("op_type", 1, "bytes"),
        ("graph_id", 3, "bytes"),
        ("tensor_debug_mode", 6, "int32"),
        ("tensor_protos", 7, "bytes*"),
        ("code_location", 8, "CodeLocation"),
    ),
    "Trace": (("context_id", 1, "bytes"), ("op_name", 2, "bytes"), ("tensor_debug_mode", 4, "int32"), ("tensor_proto", 5, "bytes")),
    "DebugEvent": (
        ("wall_time", 1, "double"),
        ("source_file", 4, "SourceFile"),
        ("stack_frame", 6, "StackFrame"),
        ("creation", 7, "Creation"),
        ("execution", 9, "Execution"),
        ("trace", 10, "Trace"),
    ),
}


@dataclass(frozen=True)
class Frame:
    """One line of a stack: its source file, number and function, and the code that stands there (empty where it was not dumped)."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class BadOperation:
    """An operation that made a value that is not finite.

    `value` is ``NaN``, ``+Inf``, ``-Inf`` or, where the dump does not tell, ``NaN or Inf``. `name` is empty where it ran eagerly.
    `execution` counts how often it had run in the dump, from 1 on. `stack` is that of its making, the outermost frame first.
    """

    value: str
    type: str
    name: str
    inputs: tuple[str, ...]
    execution: int
    wall_time: float
    stack: tuple[Frame, ...]


@dataclass(frozen=True)
class DebuggerDump:
    """What a dump says: the first operation that made an infinite value, if it came before the first that made NaN, and that one.

    `values` is the number of tensors that were looked at; it is 0 where the dump was made without their values.
    """

    values: int
    bad: tuple[BadOperation, ...]


@dataclass
class _Found:
    """A bad value, before it is known which operation made it."""

    value: str
    wall_time: float
    execution: int
    context: bytes = b""
    name: bytes = b""
    type: bytes = b""
    inputs: tuple[bytes, ...] = ()
    frames: tuple[bytes, ...] = ()


def read_dump(files: tuple[Path, ...]) -> DebuggerDump:
    """Read the files of one dump. Those that are gone or damaged count as far as they can be read; never raises because of what is in
    them.
    """
    by_ending = {path.suffix: path for path in files}
    seen_traces, traces = _in_graphs(by_ending)
    seen_eager, eager = _eager(by_ending)
    found = sorted((*traces, *eager), key=lambda each: each.wall_time)
    _describe([each for each in found if each.name], by_ending)
    nan = next((each for each in found if "NaN" in each.value), None)
    infinite = next(_not_on_purpose(found), None)
    chosen = [each for each in (infinite, nan) if each is not None]
    if len(chosen) == 2 and chosen[0].wall_time >= chosen[1].wall_time:
        chosen = chosen[1:]
    stacks = _stacks(chosen, by_ending)
    bad = tuple(_operation(each, stack) for each, stack in zip(chosen, stacks, strict=True))
    return DebuggerDump(seen_traces + seen_eager, bad)


def _not_on_purpose(found: list[_Found]) -> Iterator[_Found]:
    """Those that are no mask, and were not made from one."""
    masks: set[tuple[bytes, bytes]] = set()
    for each in found:
        if each.type in _INFINITE_ON_PURPOSE or any((each.context, name.partition(b":")[0]) in masks for name in each.inputs):
            masks.add((each.context, each.name))
        else:
            yield each


def payloads(path: Path, most: int = LARGEST_READ) -> Iterator[bytes]:
    """The intact records at the start of a TFRecord file, up to the first that is damaged or unfinished, of its first `most` bytes. A file
    that cannot be read has none.
    """
    try:
        with path.open("rb") as stream:
            rest, size, done = b"", _CHUNK, 0
            while done < most and (chunk := stream.read(size)):
                done += len(chunk)
                data = rest + chunk
                buffer = Buffer(np.frombuffer(data + bytes(LONG + 64), np.uint8))
                frames = buffer.frame(0, len(data))
                chain = frames.chain()
                intact = buffer.intact(chain.starts, chain.lengths)
                until = frames.damage[0].offset if frames.damage else len(data)
                for start, length, ok in zip(chain.starts.tolist(), chain.lengths.tolist(), intact.tolist(), strict=True):
                    if not ok or start > until:
                        return
                    yield data[start : start + length]
                if frames.damage:
                    return
                rest = data[frames.end :]
                size = max(_CHUNK, len(rest))  # a long record is read in few pieces
    except OSError:
        return


@cache
def debug_event_class() -> Any:
    """The message class ``DebugEvent``, with the fields that are read here."""
    return message_class(_FIELDS, "DebugEvent")


def _events(files: dict[str, Path], ending: str) -> Iterator[Any]:
    from google.protobuf.message import DecodeError

    if ending not in files:
        return
    event_class = debug_event_class()
    for payload in payloads(files[ending]):
        try:
            yield event_class.FromString(payload)
        except DecodeError:
            return


def _in_graphs(files: dict[str, Path]) -> tuple[int, list[_Found]]:
    """How many values graphs made, and the bad ones among them up to the first NaN."""
    found: list[_Found] = []
    names: set[tuple[bytes, bytes]] = set()
    executions: Counter[tuple[bytes, bytes]] = Counter()
    seen = 0
    for event in _events(files, ".graph_execution_traces"):
        trace = event.trace
        key = trace.context_id, trace.op_name
        executions[key] += 1
        value = _bad_value(trace.tensor_debug_mode, trace.tensor_proto)
        seen += value is not None
        if not value or (value != "NaN" and (key in names or len(names) >= _MOST_INFINITE)):
            continue
        names.add(key)
        found.append(_Found(value, event.wall_time, executions[key], trace.context_id, trace.op_name))
        if "NaN" in value:
            break
    return seen, found


def _eager(files: dict[str, Path]) -> tuple[int, list[_Found]]:
    """How many values operations made that ran eagerly, and the first bad ones of each kind among them."""
    found: list[_Found] = []
    kinds: set[tuple[str, bytes]] = set()
    executions: Counter[bytes] = Counter()
    seen = 0
    for event in _events(files, ".execution"):
        execution = event.execution
        executions[execution.op_type] += 1
        for tensor in execution.tensor_protos:
            value = _bad_value(execution.tensor_debug_mode, tensor)
            seen += value is not None
            if value and (value, execution.op_type) not in kinds and len(kinds) < _MOST_INFINITE:
                kinds.add((value, execution.op_type))
                frames = tuple(execution.code_location.stack_frame_ids)
                count = executions[execution.op_type]
                found.append(_Found(value, event.wall_time, count, type=execution.op_type, frames=frames))
        if found and "NaN" in found[-1].value:
            break
    return seen, found


def _bad_value(mode: int, tensor: bytes) -> str | None:
    """What is not finite in a tensor as it was dumped, empty where all is; None where the dump does not tell."""
    if mode not in _COUNTS and mode not in (_CURT, _WHOLE):
        return None
    values = _numbers(tensor)
    if values is None or not len(values):
        return None
    if mode == _WHOLE:
        nan, high, low = np.isnan(values).any(), np.isposinf(values).any(), np.isneginf(values).any()
    elif mode == _CURT:
        return "NaN or Inf" if len(values) == 2 and values[1] else ""
    else:
        counts = values[_COUNTS[mode]]
        if len(counts) != 3:
            return None
        low, high, nan = counts != 0
    return "NaN" if nan else "+Inf" if high else "-Inf" if low else ""


def _numbers(tensor: bytes) -> NDArray[Any] | None:
    """The floating-point numbers of a ``TensorProto``, as many as are stored."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    try:
        proto = TensorProto.FromString(tensor)
    except DecodeError:
        return None
    content = proto.tensor_content
    if proto.dtype == _BFLOAT16 and len(content) % 2 == 0:
        return (np.frombuffer(content, "<u2").astype(np.uint32) << 16).view(np.float32)
    numpy_type = _NUMPY_TYPES.get(proto.dtype)
    if numpy_type is None or len(content) % np.dtype(numpy_type).itemsize:
        return None
    return np.frombuffer(content, numpy_type) if content else np.array([*proto.float_val, *proto.double_val], np.float64)


def _describe(found: list[_Found], files: dict[str, Path]) -> None:
    """Fill in what the graphs say of the operations."""
    wanted: dict[tuple[bytes, bytes], list[_Found]] = {}
    for each in found:
        wanted.setdefault((each.context, each.name), []).append(each)
    for event in _events(files, ".graphs") if wanted else ():
        creation = event.creation
        for each in wanted.pop((creation.graph_id, creation.op_name), ()):
            each.type, each.inputs = creation.op_type, tuple(creation.input_names)
            each.frames = tuple(creation.code_location.stack_frame_ids)
        if not wanted:
            return


def _stacks(found: list[_Found], files: dict[str, Path]) -> list[tuple[Frame, ...]]:
    """The stack of each."""
    wanted = {frame for each in found for frame in each.frames}
    places: dict[bytes, tuple[int, int, str]] = {}
    for event in _events(files, ".stack_frames") if wanted else ():
        frame = event.stack_frame
        if frame.id in wanted:
            places[frame.id] = frame.file_line_col.file_index, frame.file_line_col.line, _text(frame.file_line_col.func)
            if len(places) == len(wanted):
                break
    lines: dict[int, set[int]] = {}
    for index, line, _ in places.values():
        lines.setdefault(index, set()).add(line)
    paths: dict[int, str] = {}
    code: dict[tuple[int, int], str] = {}
    for index, event in enumerate(_events(files, ".source_files") if lines else ()):
        if index in lines:
            source = event.source_file
            paths[index] = _text(source.file_path)
            code.update({(index, n): _text(source.lines[n - 1]).strip() for n in lines[index] if 0 < n <= len(source.lines)})
    return [
        tuple(
            Frame(paths[index], line, function, code.get((index, line), ""))
            for index, line, function in (places[frame] for frame in each.frames if frame in places)
            if index in paths
        )
        for each in found
    ]


def _operation(found: _Found, stack: tuple[Frame, ...]) -> BadOperation:
    inputs = tuple(map(_text, found.inputs))
    return BadOperation(found.value, _text(found.type), _text(found.name), inputs, found.execution, found.wall_time, stack)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
