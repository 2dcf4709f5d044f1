"""Event files as columns: every scalar point, read incrementally, many small files at once.

The way of the bytes: a buffer is filled from one or several files, cut into records whose checksums are verified
(`records.py`), and the records are recognised by their layouts (`layouts.py`). Whatever is not recognised goes through
the protobuf classes that TensorBoard ships. Both ways give the same points; what is learned from the one makes the
other.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tb_advisor.logdir.layouts import Layouts, Points
from tb_advisor.logdir.records import LONG, Buffer, Damage, Indices
from tb_advisor.message import Message
from tb_advisor.series import Floats, Series, Steps, Stored

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

# Small enough to stay in the cache of a core, large enough that the calls on a whole buffer cost little.
BUFFER_BYTES = 1 << 20
HEAD_BYTES = 1 << 12
_SAMPLE = 64


class Column:
    """The points of one tag in writing order. Stored compactly: regular steps as a range, values that are all float32
    as such.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[Steps, Floats, Stored]] = []
        self._steps: Steps | range = range(0)
        self._wall_times: Floats = np.empty(0)
        self._values: Stored = np.empty(0, np.float32)

    def add(self, steps: Steps, wall_times: Floats, values: Floats) -> None:
        """Append points."""
        narrow = values.astype(np.float32)
        is_narrow = np.array_equal(narrow, values, equal_nan=True)
        self._pieces.append((steps.copy(), wall_times.copy(), narrow if is_narrow else values.copy()))

    def series(self, run: str, tag: str) -> Series:
        """All points so far. The series shares this column's memory."""
        if self._pieces:
            steps, wall_times, values = zip((self._array_of_steps(), self._wall_times, self._values), *self._pieces, strict=True)
            self._pieces = []
            self._steps = _as_range(np.concatenate(steps))
            self._wall_times = np.concatenate(wall_times)
            self._values = np.concatenate(values)
        return Series(self._steps, self._wall_times, self._values, run, tag)

    def _array_of_steps(self) -> Steps:
        return np.array(self._steps, np.int64)


def _as_range(steps: Steps) -> Steps | range:
    if len(steps) < 3:
        return steps
    stride = int(steps[1]) - int(steps[0])
    regular = stride != 0 and bool((np.diff(steps) == stride).all())
    return range(int(steps[0]), int(steps[-1]) + (1 if stride > 0 else -1), stride) if regular else steps


@dataclass
class EventFile:
    """What was read of one event file so far.

    `position` is the offset of the next unread record, `size` that of the end of the file when it was last read;
    between them lies a record that is not whole yet. `tags` maps each tag that is not a scalar to the name of the
    TensorBoard plugin that shows it. `writer` is the writer that the file names in its first event, empty where it
    names none.
    """

    path: Path
    position: int = 0
    size: int = 0
    inode: int = 0
    events: int = 0
    undecodable: int = 0
    session_starts: int = 0
    first_wall_time: float = 0.0
    writer: str = ""
    scalars: dict[str, Column] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    error: Message | None = None

    @property
    def notes(self) -> list[Message]:
        """What could not be read, in words."""
        name = self.path.name
        if self.error is not None:
            return [self.error]
        if not self.size:
            return [Message("{file} is empty", file=name)]
        if not self.events and not self.undecodable:
            return [Message("{file} is not an event file ({size:bytes} without one record)", file=name, size=self.size)]
        notes = []
        if self.undecodable:
            notes.append(Message("{file} holds {count} records that are not events", file=name, count=self.undecodable))
        template = "{file} is damaged at byte {offset}: {length:bytes} skipped, reading went on after it"
        notes += [Message(template, file=name, offset=gap.offset, length=gap.length) for gap in self.damage]
        if self.position < self.size:
            template = "{file} ends in an unfinished record at byte {offset} ({length:bytes})"
            notes.append(Message(template, file=name, offset=self.position, length=self.size - self.position))
        return notes


class Reader:
    """Reads what is new in event files. What it learns of layouts serves all of them."""

    def __init__(self) -> None:
        self._layouts = Layouts()
        self._tags: list[str] = []
        self._tag_numbers: dict[str, int] = {}
        self._content = np.zeros(BUFFER_BYTES + LONG + 64, np.uint8)

    def read(self, files: Iterable[EventFile]) -> None:
        """Read from each file what was written since it was last read. A file that cannot be read gets an `error`."""
        parts: list[tuple[EventFile, int, int]] = []
        filled = 0
        for file in files:
            try:
                with file.path.open("rb", buffering=0) as stream:
                    filled = self._fill(file, stream.fileno(), parts, filled)
            except OSError as error:
                reason = error.strerror or str(error)
                file.error = Message("{file} could not be read: {reason}", file=file.path.name, reason=reason)
        self._decode(parts, filled)

    def _fill(self, file: EventFile, descriptor: int, parts: list[tuple[EventFile, int, int]], filled: int) -> int:
        """Read the new bytes of `file` into the buffer behind `filled`, decoding it whenever it is full."""
        status = os.fstat(descriptor)
        file.size, file.inode = status.st_size, status.st_ino
        os.lseek(descriptor, file.position, os.SEEK_SET)
        start = filled
        while True:
            capacity = len(self._content) - LONG - 64
            count = os.readv(descriptor, [self._content[filled:capacity].data]) if filled < capacity else 0
            filled += count
            if count == 0 and filled < capacity:
                break
            if filled == capacity:
                before = file.position
                self._decode([*parts, (file, start, filled)], filled)
                parts.clear()
                rest = filled - start - (file.position - before)
                if rest == capacity:  # one record is larger than the buffer
                    self._content = np.concatenate([self._content, np.zeros(capacity, np.uint8)])
                self._content[:rest] = self._content[filled - rest : filled]
                start, filled = 0, rest
        file.size = max(file.size, file.position + filled - start)
        if filled > start:
            parts.append((file, start, filled))
        return filled

    def _decode(self, parts: list[tuple[EventFile, int, int]], filled: int) -> None:
        """Take the whole records out of the filled part of the buffer; each file's `position` moves behind them."""
        if not parts:
            return
        self._content[filled : filled + LONG + 64] = 0
        buffer = Buffer(self._content, filled)
        frames = [buffer.frame(start, stop, start + file.size - file.position) for file, start, stop in parts]
        starts = np.concatenate([frame.starts for frame in frames])
        lengths = np.concatenate([frame.lengths for frame in frames])
        owners = np.repeat(np.arange(len(parts)), [len(frame.starts) for frame in frames])
        ok = buffer.intact(starts, lengths)
        for index in np.flatnonzero(~ok).tolist():
            file, start, _ = parts[owners[index]]
            offset = file.position + int(starts[index]) - 12 - start
            file.damage.append(Damage(offset, int(lengths[index]) + 16))
        for (file, start, _), frame in zip(parts, frames, strict=True):
            file.damage += [Damage(file.position + gap.offset - start, gap.length) for gap in frame.damage]
            file.damage.sort(key=lambda gap: gap.offset)
            file.position += frame.end - start
        files = [file for file, _, _ in parts]
        counts = np.bincount(owners[ok], minlength=len(files))
        for file, count in zip(files, counts.tolist(), strict=True):
            file.events += count
        self._collect(buffer, starts[ok], lengths[ok], owners[ok], files)

    def _collect(self, buffer: Buffer, starts: Indices, lengths: Indices, owners: Indices, files: list[EventFile]) -> None:
        points, rest = self._points(buffer, starts, lengths, np.arange(len(starts)))
        while len(rest):
            learned, slow = self._by_protobuf(buffer, starts, lengths, owners, files, rest[:_SAMPLE])
            points += slow
            rest = rest[_SAMPLE:]
            if learned:
                found, rest = self._points(buffer, starts, lengths, rest)
                points += found
        self._distribute(points, owners, files)

    def _points(self, buffer: Buffer, starts: Indices, lengths: Indices, records: Indices) -> tuple[list[Points], Indices]:
        found, matched = self._layouts.match(buffer.content, starts[records], lengths[records])
        return [Points(records[p.records], p.columns, p.steps, p.wall_times, p.values) for p in found], records[~matched]

    def _by_protobuf(
        self, buffer: Buffer, starts: Indices, lengths: Indices, owners: Indices, files: list[EventFile], records: Indices
    ) -> tuple[int, list[Points]]:
        """Read records one by one, and learn the layouts of those that are one scalar."""
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.event_pb2 import Event

        learned = 0
        rows: list[tuple[int, int, int, float, float]] = []
        for record in records.tolist():
            payload = buffer.payload(int(starts[record]), int(lengths[record]))
            file = files[owners[record]]
            try:
                event = Event.FromString(payload)
            except DecodeError:
                file.undecodable += 1
                file.events -= 1
                continue
            scalars = _add_event(file, event)
            rows += [(record, self._number(tag), event.step, event.wall_time, value) for tag, value in scalars]
            if len(scalars) == 1 and len(payload) < LONG:
                learned += self._layouts.learn(payload, self._number(scalars[0][0]))
        if not rows:
            return learned, []
        columns = [np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), ("i8", "i8", "i8", "f8", "f8"), strict=True)]
        return learned, [Points(*columns)]

    def _number(self, tag: str) -> int:
        number = self._tag_numbers.setdefault(tag, len(self._tags))
        if number == len(self._tags):
            self._tags.append(tag)
        return number

    def _distribute(self, points: list[Points], owners: Indices, files: list[EventFile]) -> None:
        """Append the points to the columns of their files, in the order of their records."""
        if not points:
            return
        records = np.concatenate([p.records for p in points])
        keys = owners[records] * len(self._tags) + np.concatenate([p.columns for p in points])
        if len(points) > 1:
            in_order = np.argsort(records, kind="stable")
            keys = keys[in_order]
        small = len(files) * len(self._tags) < 1 << 16
        order = np.argsort(keys.astype(np.uint16) if small else keys, kind="stable")
        keys = keys[order]
        if len(points) > 1:
            order = in_order[order]
        steps = np.concatenate([p.steps for p in points])[order]
        wall_times = np.concatenate([p.wall_times for p in points])[order]
        values = np.concatenate([p.values for p in points])[order]
        edges = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
        for first, last in pairwise(edges):
            if first == last:
                continue
            owner, tag = divmod(int(keys[first]), len(self._tags))
            file = files[owner]
            column = file.scalars.setdefault(self._tags[tag], Column())
            column.add(steps[first:last], wall_times[first:last], values[first:last])
            earliest = float(wall_times[first])
            file.first_wall_time = min(file.first_wall_time, earliest) if file.first_wall_time else earliest


def _add_event(file: EventFile, event: Event) -> list[tuple[str, float]]:
    """Note what the event says of its file; return its scalars as (tag, value) pairs."""
    kind = event.WhichOneof("what")
    if kind == "summary":
        scalars = []
        for value in event.summary.value:
            number = _number_of(value)
            if number is None:
                plugin = value.metadata.plugin_data.plugin_name or _OTHER_VALUES.get(value.WhichOneof("value") or "", "")
                if plugin or value.tag not in file.tags:
                    file.tags[value.tag] = plugin
            else:
                scalars.append((value.tag, number))
        return scalars
    if kind == "file_version":
        file.writer = file.writer or event.source_metadata.writer
    elif kind in ("graph_def", "meta_graph_def"):
        file.tags.setdefault("", "graphs")
    elif kind == "session_log" and event.session_log.status == 1:  # SessionLog.START
        file.session_starts += 1
    return []


def _number_of(value: Summary.Value) -> float | None:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    return scalar_of(value.tensor) if kind == "tensor" else None


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


def scalar_tags_at_start(path: Path, limit: int = HEAD_BYTES) -> frozenset[str]:
    """The scalar tags within the first `limit` bytes of the file. Never raises."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    file = EventFile(path)
    tags: set[str] = set()
    try:
        with path.open("rb") as stream:
            head = stream.read(limit)
        buffer = Buffer(np.frombuffer(head + bytes(LONG + 64), np.uint8), len(head))
        frames = buffer.frame(0, len(head))
        for start, length in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True):
            tags.update(tag for tag, _ in _add_event(file, Event.FromString(buffer.payload(start, length))))
    except (OSError, DecodeError):
        pass
    return frozenset(tags)
