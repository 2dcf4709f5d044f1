"""Event files as columns: every point of every scalar and histogram, read incrementally, many small files at once.

The way of the bytes: a buffer is filled from one or several files, cut into records whose checksums are verified
(`records.py`), and the records are recognised by their layouts (`layouts.py`). Whatever is not recognised goes through
the protobuf classes that TensorBoard ships. Both ways give the same values; what is learned from the one makes the
other. Text, graphs, images and other blobs stay where they lie and are read when somebody asks for them.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tb_advisor.logdir.columns import Column, HistogramColumn
from tb_advisor.logdir.layouts import Layouts, Points
from tb_advisor.logdir.records import FOOTER, HEADER, LONG, Buffer, Damage, Indices
from tb_advisor.message import Message
from tb_advisor.series import Buckets

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
# Size, modification time in nanoseconds and inode of a file.
Fingerprint: TypeAlias = tuple[int, int, int]

_DOUBLE, _HALF, _BFLOAT16 = 2, 19, 14
_OTHER_VALUES = {"histo": "histograms", "image": "images", "audio": "audio"}

# Small enough to stay in the cache of a core, large enough that the calls on a whole buffer cost little.
BUFFER_BYTES = 2 << 20
# Files of fewer records in so many bytes, which hold blobs, are read through a buffer that grows up to this; so is a record that is larger.
FEW_RECORDS, LARGEST_BUFFER = 4000, 16 << 20
HEAD_BYTES = 1 << 12
# What tells a file that was written anew from one that has grown: its first event holds the time at which it was made.
HEAD_SAMPLE = 32
# Records that go through protobuf before the others are tried against what was learned from them.
_SAMPLE = 64


@dataclass(frozen=True)
class StoredEvent:
    """An event that stays where it lies: text, a graph, an image. `offset` and `length` are those of its record's
    payload.
    """

    path: Path
    step: int
    wall_time: float
    offset: int
    length: int

    def read(self) -> Event:
        """The event itself. Raises `OSError` where the file is gone, `DecodeError` where it is another one by now."""
        from tensorboard.compat.proto.event_pb2 import Event

        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            return Event.FromString(stream.read(self.length))


@dataclass
class EventFile:
    """What was read of one event file so far.

    `position` is the offset of the next unread record, `size` that of the end of the file when it was last read;
    between them lies a record that is not whole yet. `tags` maps each tag that is not a scalar to the name of the
    TensorBoard plugin that shows it; `stored` says where the events lie that were not read (the graph's tag is empty).
    `writer` is the writer that the file names in its first event, empty where it names none.
    """

    path: Path
    position: int = 0
    size: int = 0
    inode: int = 0
    head: bytes = b""
    events: int = 0
    undecodable: int = 0
    first_wall_time: float = 0.0
    writer: str = ""
    scalars: dict[str, Column] = field(default_factory=dict)
    histograms: dict[str, HistogramColumn] = field(default_factory=dict)
    stored: dict[str, list[StoredEvent]] = field(default_factory=dict)
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


@dataclass(frozen=True)
class _Part:
    """The bytes of one file in the buffer: from `start` to `stop`, the first of them at the file's `position`."""

    file: EventFile
    start: int
    stop: int


@dataclass(frozen=True)
class _Records:
    """The intact records of a buffer: where their payloads lie, and the file of each and its offset there; all of shape
    ``(n,)``.
    """

    buffer: Buffer
    files: Sequence[EventFile]
    starts: Indices
    lengths: Indices
    owners: Indices
    offsets: Indices


class Reader:
    """Reads what is new in event files. What it learns of layouts serves all of them."""

    def __init__(self) -> None:
        self._layouts = Layouts()
        self._tags: list[str] = []
        self._tag_numbers: dict[str, int] = {}
        self._content = np.zeros(BUFFER_BYTES + LONG + 64, np.uint8)

    def read(self, files: Iterable[EventFile]) -> None:
        """Read from each file what was written since it was last read. A file that cannot be read gets an `error`."""
        parts: list[_Part] = []
        filled = 0
        for file in files:
            file.error = None
            try:
                with file.path.open("rb", buffering=0) as stream:
                    filled = self._fill(file, stream, parts, filled)
            except OSError as error:
                reason = error.strerror or str(error)
                file.error = Message("{file} could not be read: {reason}", file=file.path.name, reason=reason)
        self._decode(parts, filled)

    def _fill(self, file: EventFile, stream: io.FileIO, parts: list[_Part], filled: int) -> int:
        """Read the new bytes of `file` into the buffer behind `filled`, decoding it whenever it is full."""
        file.size, _, file.inode = fingerprint(file.path)
        file.head = file.head or stream.read(HEAD_SAMPLE)
        stream.seek(file.position)
        start = filled
        while True:
            capacity = len(self._content) - LONG - 64
            count = stream.readinto(self._content[filled:capacity].data) if filled < capacity else 0
            filled += count
            if filled < capacity and not count:
                break
            if filled == capacity:
                before = file.position
                self._decode([*parts, _Part(file, start, filled)], filled)
                parts.clear()
                rest = filled - start - (file.position - before)
                if (file.events < FEW_RECORDS * file.position / BUFFER_BYTES and capacity < LARGEST_BUFFER) or rest == capacity:
                    self._content = np.concatenate([self._content, np.zeros(capacity, np.uint8)])
                self._content[:rest] = self._content[filled - rest : filled]
                start, filled = 0, rest
        file.size = max(file.size, file.position + filled - start)
        if filled > start:
            parts.append(_Part(file, start, filled))
        return filled

    def _decode(self, parts: Sequence[_Part], filled: int) -> None:
        """Take the whole records out of the filled part of the buffer; each file's `position` moves behind them."""
        if not parts:
            return
        self._content[filled : filled + LONG + 64] = 0
        buffer = Buffer(self._content, filled)
        bases = np.array([part.file.position - part.start for part in parts])
        frames = [buffer.frame(part.start, part.stop) for part in parts]
        starts = np.concatenate([frame.starts for frame in frames])
        lengths = np.concatenate([frame.lengths for frame in frames])
        owners = np.repeat(np.arange(len(parts)), [len(frame.starts) for frame in frames])
        offsets = starts + bases[owners]
        ok = buffer.intact(starts, lengths)
        for index in np.flatnonzero(~ok).tolist():
            parts[owners[index]].file.damage.append(Damage(int(offsets[index]) - HEADER, int(lengths[index]) + HEADER + FOOTER))
        counts = np.bincount(owners[ok], minlength=len(parts)).tolist()
        for part, base, frame, count in zip(parts, bases.tolist(), frames, counts, strict=True):
            part.file.damage += [Damage(base + gap.offset, gap.length) for gap in frame.damage]
            part.file.damage.sort(key=lambda gap: gap.offset)
            part.file.position = base + frame.end
            part.file.events += count
        self._collect(_Records(buffer, [part.file for part in parts], starts[ok], lengths[ok], owners[ok], offsets[ok]))

    def _collect(self, records: _Records) -> None:
        """Read all records, the regular ones by their layouts, and append their values to the columns of their
        files.
        """
        points, rest = self._recognised(records, np.arange(len(records.starts)))
        others: list[_Value] = []
        while len(rest):
            sample, rest = rest[:_SAMPLE], rest[_SAMPLE:]
            learned = 0
            for index in sample.tolist():
                values = _values_of(records, index)
                others += values
                if len(values) == 1 and records.lengths[index] < LONG:
                    payload = records.buffer.payload(int(records.starts[index]), int(records.lengths[index]))
                    learned += self._layouts.learn(payload, self._number(values[0].tag))
            if learned:
                found, rest = self._recognised(records, rest)
                points += found
        self._add_scalars(records, [p for p in points if p.values.ndim == 1], [v for v in others if v.buckets is None])
        self._add_histograms(records, [p for p in points if p.values.ndim == 3], [v for v in others if v.buckets is not None])

    def _recognised(self, records: _Records, chosen: Indices) -> tuple[list[Points], Indices]:
        """The points of those of the `chosen` records whose layout is known, and the others."""
        found, matched = self._layouts.match(records.buffer.content, records.starts[chosen], records.lengths[chosen])
        return [Points(chosen[p.records], p.columns, p.steps, p.wall_times, p.values) for p in found], chosen[~matched]

    def _number(self, tag: str) -> int:
        number = self._tag_numbers.setdefault(tag, len(self._tags))
        if number == len(self._tags):
            self._tags.append(tag)
        return number

    def _add_scalars(self, records: _Records, points: Sequence[Points], others: Sequence[_Value]) -> None:
        if others:
            rows = [(v.record, self._number(v.tag), v.step, v.wall_time, v.number) for v in others]
            types = ("i8", "i8", "i8", "f8", "f8")
            points = [*points, Points(*(np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)))]
        if not points:
            return
        numbers, columns, steps, wall_times, values = (
            np.concatenate([getattr(p, name) for p in points]) for name in ("records", "columns", "steps", "wall_times", "values")
        )
        order, groups = self._in_order(records, numbers, columns, is_sorted=len(points) == 1)
        steps, wall_times, values = steps[order], wall_times[order], values[order]
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        wide = np.logical_or.reduceat((narrow != values) & ~np.isnan(values), [first for _, _, first, _ in groups]).tolist()
        for (file, tag, first, last), is_wide in zip(groups, wide, strict=True):
            column = file.scalars.get(tag) or file.scalars.setdefault(tag, Column())
            column.add(steps[first:last], wall_times[first:last], (values if is_wide else narrow)[first:last])
            earliest = float(wall_times[first])
            file.first_wall_time = min(file.first_wall_time, earliest) if file.first_wall_time else earliest

    def _add_histograms(self, records: _Records, points: Sequence[Points], others: Sequence[_Value]) -> None:
        if len(points) == 1 and not others:  # the usual case: all of one size, in order already
            steps, wall_times, values = points[0].steps, points[0].wall_times, points[0].values
            order, groups = self._in_order(records, points[0].records, points[0].columns, is_sorted=True)
            for file, tag, first, last in groups:
                chosen = order[first:last]
                sizes = np.full(len(chosen), values.shape[1])
                _histogram_column(file, tag).add(steps[chosen], wall_times[chosen], sizes, values[chosen].reshape(-1, 3))
            return
        rows = [(v.record, v.tag, v.step, v.wall_time, v.buckets) for v in others if v.buckets is not None]
        for p in points:
            tags = [self._tags[column] for column in p.columns.tolist()]
            rows += zip(p.records.tolist(), tags, p.steps.tolist(), p.wall_times.tolist(), list(p.values), strict=True)
        for record, tag, step, wall_time, buckets in sorted(rows, key=lambda row: row[0]):
            column = _histogram_column(records.files[records.owners[record]], tag)
            column.add(np.array([step]), np.array([wall_time]), np.array([len(buckets)]), buckets)

    def _in_order(
        self, records: _Records, numbers: Indices, columns: Indices, *, is_sorted: bool
    ) -> tuple[Indices, list[tuple[EventFile, str, int, int]]]:
        """Sorts points by file and tag, and within a tag by record: their order, and each group as (file, tag, first,
        last).
        """
        keys = records.owners[numbers] * len(self._tags) + columns
        by_record = None if is_sorted else np.argsort(numbers, kind="stable")
        keys = keys if by_record is None else keys[by_record]
        few = len(records.files) * len(self._tags) < 1 << 16
        order = np.argsort(keys.astype(np.uint16) if few else keys, kind="stable")
        keys = keys[order]
        edges = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
        groups = []
        for first, last in pairwise(edges):
            owner, column = divmod(int(keys[first]), len(self._tags))
            groups.append((records.files[owner], self._tags[column], first, last))
        return order if by_record is None else by_record[order], groups


def _histogram_column(file: EventFile, tag: str) -> HistogramColumn:
    file.tags.setdefault(tag, "histograms")
    return file.histograms.setdefault(tag, HistogramColumn())


@dataclass(frozen=True)
class _Value:
    """One scalar, or one histogram where there are `buckets`, of one record."""

    record: int
    tag: str
    step: int
    wall_time: float
    number: float
    buckets: Buckets | None


def _values_of(records: _Records, index: int) -> list[_Value]:
    """The scalars and histograms of one record, by protobuf. Whatever else the event says is noted in its file."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    file = records.files[records.owners[index]]
    length = int(records.lengths[index])
    try:
        event = Event.FromString(records.buffer.payload(int(records.starts[index]), length))
    except DecodeError:
        file.undecodable += 1
        file.events -= 1
        return []
    values = []
    for value in _summary_values(file, event):
        number, buckets = number_of(value), _buckets_of(value)
        if number is not None or buckets is not None:
            values.append(_Value(index, value.tag, event.step, event.wall_time, 0.0 if number is None else number, buckets))
        else:
            plugin = value.metadata.plugin_data.plugin_name or _OTHER_VALUES.get(value.WhichOneof("value") or "", "")
            if plugin or value.tag not in file.tags:
                file.tags[value.tag] = plugin
            stored = StoredEvent(file.path, event.step, event.wall_time, int(records.offsets[index]), length)
            file.stored.setdefault(value.tag, []).append(stored)
    if event.WhichOneof("what") in ("graph_def", "meta_graph_def", "tagged_run_metadata"):
        file.tags.setdefault("", "graphs")
        stored = StoredEvent(file.path, event.step, event.wall_time, int(records.offsets[index]), length)
        file.stored.setdefault("", []).append(stored)
    return values


def _summary_values(file: EventFile, event: Event) -> Iterator[Summary.Value]:
    kind = event.WhichOneof("what")
    if kind == "summary":
        yield from event.summary.value
    elif kind == "file_version":
        file.writer = file.writer or event.source_metadata.writer


def number_of(value: Summary.Value) -> float | None:
    """The value as a scalar, None where it is none.

    Every number counts, whichever plugin its tag names: that name stands in the first event of a tag only, and a layout must
    mean the same in each record.
    """
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    return scalar_of(value.tensor) if kind == "tensor" else None


def _buckets_of(value: Summary.Value) -> Buckets | None:
    """The value as the buckets of a histogram, shape ``(k, 3)``: left edge, right edge, count. None where it is none.

    The old format has right edges only, and empty buckets out to the largest double: without these, its outer edges
    are the smallest and largest value, as TensorBoard has it (`data_compat.py`).
    """
    kind = value.WhichOneof("value")
    if kind == "histo":
        counts = np.array(value.histo.bucket)
        filled = np.flatnonzero(counts > 0)
        if not len(filled):
            return np.empty((0, 3))
        first, last = int(filled[0]), int(filled[-1])
        inner = value.histo.bucket_limit[first:last]
        edges = [value.histo.min, *inner, value.histo.max]
        return np.column_stack([edges[:-1], edges[1:], counts[first : first + len(edges) - 1]])
    if kind == "tensor" and value.tensor.dtype == _DOUBLE:
        sizes = [dim.size for dim in value.tensor.tensor_shape.dim]
        if len(sizes) == 2 and sizes[1] == 3 and len(value.tensor.tensor_content) == 8 * 3 * sizes[0] > 0:
            return np.asarray(np.frombuffer(value.tensor.tensor_content, "<f8").reshape(sizes), np.float64)
    return None


def scalar_of(tensor: TensorProto) -> float | None:
    """The only value of a numeric tensor of rank 0 (or with one element) as a float, None for any other tensor.

    Reads half, bfloat16, float, double, the integer types and bool, from `tensor_content` or from the typed field. A
    tensor with neither holds zero, as in TensorFlow (`tensor.cc`: missing values repeat the last one, from zero on).
    """
    if any(dim.size != 1 for dim in tensor.tensor_shape.dim):
        return None
    content = tensor.tensor_content
    if tensor.dtype in (_HALF, _BFLOAT16):
        raw = content or struct.pack("<H", (tensor.half_val or [0])[0] & 0xFFFF)
        if len(raw) != 2:
            return None
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


def fingerprint(path: Path) -> Fingerprint:
    """Size, modification time in nanoseconds and inode of a file; zeros where it is gone."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


def scalar_tags_at_start(path: Path) -> Iterator[str]:
    """The tags of the scalars within the first `HEAD_BYTES` of the file, in their order. Never raises."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return
    buffer = Buffer(np.frombuffer(head + bytes(LONG + 64), np.uint8), len(head))
    frames = buffer.frame(0, len(head))
    owners = np.zeros(len(frames.starts), np.int64)
    records = _Records(buffer, [EventFile(path)], frames.starts, frames.lengths, owners, frames.starts)
    for index in range(len(owners)):
        for value in _values_of(records, index):
            if value.buckets is None:
                yield value.tag
