"""One event file as columns: every scalar point, and the names of everything else.

Correct and simple: each record goes through the protobuf classes that TensorBoard ships (`tensorboard.compat.proto`).
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tb_advisor.logdir.records import Damage, Records, read_records
from tb_advisor.message import Message

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

# tensorflow/core/framework/types.proto: enum value → NumPy type of `tensor_content`, and the field that holds single values.
_TENSOR_TYPES = {
    1: ("<f4", "float_val"),
    2: ("<f8", "double_val"),
    3: ("<i4", "int_val"),
    4: ("u1", "int_val"),
    5: ("<i2", "int_val"),
    6: ("i1", "int_val"),
    9: ("<i8", "int64_val"),
    10: ("?", "bool_val"),
    17: ("<u2", "int_val"),
    22: ("<u4", "uint32_val"),
    23: ("<u8", "uint64_val"),
}
_HALF, _BFLOAT16 = 19, 14
_OTHER_VALUES = {"histo": "histograms", "image": "images", "audio": "audio"}


@dataclass
class Column:
    """The points of one tag in writing order: steps int64, wall times and values float64."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    wall_times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))


@dataclass
class EventFile:
    """What one event file holds.

    `tags` maps each tag that is not a scalar to the name of the TensorBoard plugin that shows it. `writer` is the
    writer that the file names in its first event, empty where it names none. `notes` says what could not be read, in
    words.
    """

    path: Path
    size: int = 0
    events: int = 0
    writer: str = ""
    scalars: dict[str, Column] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    session_starts: int = 0
    notes: list[Message] = field(default_factory=list)


def read_event_file(path: Path, plugins: dict[str, str] | None = None) -> EventFile:
    """Read every event of the file at `path`.

    `plugins` maps tags to plugin names; it carries the summary metadata, which only the first event of a tag has, from
    one file of a run to the next and is updated. Raises `OSError` where the file cannot be opened; damaged, torn, empty
    and foreign files give notes.
    """
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    data = path.read_bytes()
    result = EventFile(path, size=len(data))
    plugins = {} if plugins is None else plugins
    records = Records()
    undecodable = 0
    for payload in read_records(data, records):
        try:
            event = Event.FromString(payload)
        except DecodeError:
            undecodable += 1
            continue
        result.events += 1
        _add_event(result, event, plugins)
    result.notes.extend(_notes(path.name, result, records.damage, undecodable))
    return result


def scalar_tags_at_start(path: Path, limit: int = 1 << 12) -> frozenset[str]:
    """The scalar tags within the first `limit` bytes of the file. Never raises."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    result = EventFile(path)
    try:
        with path.open("rb") as stream:
            head = stream.read(limit)
        for payload in read_records(head, Records()):
            _add_event(result, Event.FromString(payload), {})
    except (OSError, DecodeError):
        pass
    return frozenset(result.scalars)


def _add_event(result: EventFile, event: Event, plugins: dict[str, str]) -> None:
    kind = event.WhichOneof("what")
    if kind == "summary":
        for value in event.summary.value:
            _add_value(result, event, value, plugins)
    elif kind == "file_version":
        result.writer = result.writer or event.source_metadata.writer
    elif kind in ("graph_def", "meta_graph_def"):
        result.tags.setdefault("", "graphs")
    elif kind == "session_log" and event.session_log.status == 1:  # SessionLog.START
        result.session_starts += 1


def _add_value(result: EventFile, event: Event, value: Summary.Value, plugins: dict[str, str]) -> None:
    plugin = value.metadata.plugin_data.plugin_name
    if plugin:
        plugins[value.tag] = plugin
    else:
        plugin = plugins.get(value.tag, "")
    kind = value.WhichOneof("value")
    number: float | None = None
    if kind == "simple_value":
        number = value.simple_value
    elif kind == "tensor" and plugin in ("", "scalars"):
        number = scalar_of(value.tensor)
    if number is None:
        result.tags.setdefault(value.tag, _OTHER_VALUES.get(kind or "", plugin))
        return
    column = result.scalars.setdefault(value.tag, Column())
    column.steps.append(event.step)
    column.wall_times.append(event.wall_time)
    column.values.append(number)


def scalar_of(tensor: TensorProto) -> float | None:
    """The only value of a numeric tensor of rank 0 (or with one element) as a float, None for any other tensor.

    Reads half, bfloat16, float, double, the integer types and bool, from `tensor_content` or from the typed field. A
    tensor with neither holds zero, as in TensorFlow (`tensor.cc`: missing values repeat the last one, from zero on).
    """
    if any(dim.size != 1 for dim in tensor.tensor_shape.dim):
        return None
    content = tensor.tensor_content
    if tensor.dtype in (_HALF, _BFLOAT16):
        raw = content[:2] if content else struct.pack("<H", (tensor.half_val or [0])[0] & 0xFFFF)
        if tensor.dtype == _HALF:
            return float(np.frombuffer(raw, "<f2")[0])
        return float(np.frombuffer(b"\0\0" + raw, "<f4")[0])
    if tensor.dtype not in _TENSOR_TYPES:
        return None
    numpy_type, field_name = _TENSOR_TYPES[tensor.dtype]
    if content:
        if len(content) != np.dtype(numpy_type).itemsize:
            return None
        return float(np.frombuffer(content, numpy_type)[0])
    values = getattr(tensor, field_name)
    return float(values[0]) if values else 0.0


def _notes(name: str, result: EventFile, damage: Iterable[Damage], undecodable: int) -> list[Message]:
    if not result.size:
        return [Message("{file} is empty", file=name)]
    damage = list(damage)
    if not result.events and not undecodable:
        return [Message("{file} is not an event file ({size:bytes} without one record)", file=name, size=result.size)]
    notes = []
    if undecodable:
        notes.append(Message("{file} holds {count} records that are not events", file=name, count=undecodable))
    for gap in damage:
        if gap.torn:
            template = "{file} ends in an unfinished record at byte {offset} ({length:bytes})"
        else:
            template = "{file} is damaged at byte {offset}: {length:bytes} skipped, reading went on after it"
        notes.append(Message(template, file=name, offset=gap.offset, length=gap.length))
    return notes
