"""Event files as columns: every point of every scalar and histogram, read incrementally, many small files at once.

The way of the bytes: a buffer is filled from one or several files, cut into records whose checksums are verified
(`records.py`), and the records are recognised by their layouts (`layouts.py`). Whatever is not recognised goes through
the protobuf classes that TensorBoard ships. Both ways give the same values; what is learned from the one makes the
other. Text, graphs, images and other blobs stay where they lie and are read when somebody asks for them.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tb_advisor.logdir.columns import Column, HistogramColumn
from tb_advisor.logdir.layouts import Cycle, Layouts, Points
from tb_advisor.logdir.records import FEWEST_ROUNDS, FOOTER, HEADER, LONG, Buffer, Chain, Damage, Indices, Rounds
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
BUFFER_BYTES = 4 << 20
# Files of fewer records in so many bytes, which hold blobs, are read through a buffer that grows up to this; so is a record that is larger.
FEW_RECORDS, LARGEST_BUFFER = 4000, 8 << 20
HEAD_BYTES = 1 << 12
# What tells a file that was written anew from one that has grown: its first event holds the time at which it was made.
HEAD_SAMPLE = 32
# More records than this before they go round again are no training loop's.
LONGEST_CYCLE = 1024
# Records that go through protobuf before the others are tried against what was learned from them.
_SAMPLE = 64


@dataclass(frozen=True)
class StoredEvent:
    """An event that stays where it lies: text, a graph, an image. `offset` and `length` are those of its record's
    payload.
    """

    path: str
    step: int
    wall_time: float
    offset: int
    length: int

    def read(self) -> Event:
        """The event itself. Raises `OSError` where the file is gone, `DecodeError` where it is another one by now."""
        from tensorboard.compat.proto.event_pb2 import Event

        with open(self.path, "rb") as stream:
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

    path: str
    position: int = 0
    size: int = 0
    inode: int = 0
    head: bytes = b""
    events: int = 0
    undecodable: int = 0
    writer: str = ""
    scalars: dict[str, Column] = field(default_factory=dict)
    histograms: dict[str, HistogramColumn] = field(default_factory=dict)
    stored: dict[str, list[StoredEvent]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    error: Message | None = None

    @property
    def name(self) -> str:
        """The file's name in its directory."""
        return os.path.basename(self.path)

    @property
    def first_wall_time(self) -> float:
        """That of the first point of a scalar or histogram, seconds since the epoch; 0 where there is none."""
        pieces = [piece for columns in (self.scalars, self.histograms) for column in columns.values() for piece in column]
        return min((float(piece[2][0]) for piece in pieces), default=0.0)

    @property
    def notes(self) -> list[Message]:
        """What could not be read, in words."""
        name = self.name
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
    """The intact records of a buffer that are read one by one: where their payloads lie, the index in `files` of the file of
    each (named again for each stretch of it), and its offset there; all of shape ``(n,)``.
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
                with open(file.path, "rb", buffering=0) as stream:
                    filled = self._fill(file, stream, parts, filled)
            except OSError as error:
                reason = error.strerror or str(error)
                file.error = Message("{file} could not be read: {reason}", file=file.name, reason=reason)
        self._decode(parts, filled)

    def _fill(self, file: EventFile, stream: io.FileIO, parts: list[_Part], filled: int) -> int:
        """Read the new bytes of `file` into the buffer behind `filled`, decoding it whenever it is full."""
        status = os.fstat(stream.fileno())
        file.size, file.inode = status.st_size, status.st_ino
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
        buffer = Buffer(self._content)
        chains: list[Chain] = []
        stretches: list[int] = []  # the number of each chain's stretch: what lies between rounds
        files: list[EventFile] = []
        bases: list[int] = []
        for part in parts:
            base = part.file.position - part.start
            frames = buffer.frame(part.start, part.stop)
            for index, piece in enumerate(frames.pieces):
                chains.append(self._add_rounds(buffer, piece, part.file, base) if isinstance(piece, Rounds) else piece)
                if not index or isinstance(piece, Rounds):
                    files.append(part.file)
                    bases.append(base)
                stretches.append(len(files) - 1)
            part.file.damage += [Damage(base + gap.offset, gap.length) for gap in frames.damage]
            part.file.position = base + frames.end
        if not chains:
            return
        starts = np.concatenate([chain.starts for chain in chains])
        lengths = np.concatenate([chain.lengths for chain in chains])
        owners = np.repeat(stretches, [len(chain.starts) for chain in chains])
        offsets = starts + np.array(bases)[owners]
        ok = buffer.intact(starts, lengths)
        for index in np.flatnonzero(~ok).tolist():
            files[owners[index]].damage.append(Damage(int(offsets[index]) - HEADER, int(lengths[index]) + HEADER + FOOTER))
        for file, count in zip(files, np.bincount(owners[ok], minlength=len(files)).tolist(), strict=True):
            file.events += count
            file.damage.sort(key=lambda gap: gap.offset)
        self._collect(_Records(buffer, files, starts[ok], lengths[ok], owners[ok], offsets[ok]))

    def _add_rounds(self, buffer: Buffer, rounds: Rounds, file: EventFile, base: int) -> Chain:
        """Append what these rounds say, where they are intact and of known layouts. What is left has to be read one by
        one.
        """
        cycle, taken = self._cycle(buffer, rounds)
        if cycle is None or not buffer.all_intact(taken):
            return rounds.chain()
        for points in cycle.points(buffer.content, taken):
            tag, offset = self._tags[points.column], base + taken.start
            if points.values.ndim == 1:
                narrow, wide = _narrowed(points.values)
                values = points.values.astype(np.float64) if wide.any() else narrow
                file.scalars.setdefault(tag, Column()).append((offset, points.steps, points.wall_times, values))
            else:
                sizes = np.full(len(points.values), points.values.shape[1])
                _histogram_column(file, tag).append((offset, points.steps, points.wall_times, sizes, points.values.reshape(-1, 3)))
        file.events += taken.count * len(taken.lengths)
        return Rounds(taken.end, rounds.lengths, (rounds.end - taken.end) // rounds.size).chain()

    def _cycle(self, buffer: Buffer, rounds: Rounds) -> tuple[Cycle | None, Rounds]:
        """The layouts of these rounds, and the rounds that have them.

        Tags whose records are equally long go round in a longer cycle than their lengths tell.
        """
        cycle = self._layouts.cycle(buffer.content, rounds)
        if cycle is None and self._learn(buffer, rounds):
            cycle = self._layouts.cycle(buffer.content, rounds)
        if cycle is None:
            return None, rounds
        fits = cycle.fits(buffer.content, rounds)
        if fits.all():
            return cycle, rounds
        times = 1 + int(fits[1:].argmax())
        wide = Rounds(rounds.start, np.tile(rounds.lengths, times), rounds.count // times)
        if times == 1 or wide.count < FEWEST_ROUNDS or len(wide.lengths) > LONGEST_CYCLE:
            return None, rounds
        return self._cycle(buffer, wide)

    def _learn(self, buffer: Buffer, rounds: Rounds) -> int:
        """Learn the layouts of the first round; how many of them are new."""
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.event_pb2 import Event

        learned = 0
        for start, length in zip((rounds.start + rounds.offsets).tolist(), rounds.lengths.tolist(), strict=True):
            payload = buffer.payload(start, length)
            with contextlib.suppress(DecodeError):
                values = Event.FromString(payload).summary.value
                learned += len(values) == 1 and self._layouts.learn(payload, self._number(values[0].tag))
        return learned

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
        order, owners, tags, edges = self._in_order(records, numbers, columns, is_sorted=len(points) == 1)
        steps, wall_times, values = steps[order], wall_times[order], values[order]
        offsets = records.offsets[numbers[order[edges[:-1]]]].tolist()
        narrow, wide = _narrowed(values)
        is_wide = np.logical_or.reduceat(wide, edges[:-1]).tolist()
        for file, tag, offset, (first, last), keep in zip(owners, tags, offsets, pairwise(edges), is_wide, strict=True):
            column = file.scalars.get(tag)
            if column is None:
                column = file.scalars[tag] = Column()
            column.append((offset, steps[first:last], wall_times[first:last], (values if keep else narrow)[first:last]))

    def _add_histograms(self, records: _Records, points: Sequence[Points], others: Sequence[_Value]) -> None:
        if len(points) == 1 and not others:  # the usual case: all of one size, in order already
            steps, wall_times, values = points[0].steps, points[0].wall_times, points[0].values
            order, owners, names, edges = self._in_order(records, points[0].records, points[0].columns, is_sorted=True)
            for file, tag, (first, last) in zip(owners, names, pairwise(edges), strict=True):
                chosen = order[first:last]
                sizes = np.full(len(chosen), values.shape[1])
                offset = int(records.offsets[points[0].records[chosen[0]]])
                _histogram_column(file, tag).append((offset, steps[chosen], wall_times[chosen], sizes, values[chosen].reshape(-1, 3)))
            return
        rows = [(v.record, v.tag, v.step, v.wall_time, v.buckets) for v in others if v.buckets is not None]
        for p in points:
            tags = [self._tags[column] for column in p.columns.tolist()]
            rows += zip(p.records.tolist(), tags, p.steps.tolist(), p.wall_times.tolist(), list(p.values), strict=True)
        for record, tag, step, wall_time, buckets in sorted(rows, key=lambda row: row[0]):
            column = _histogram_column(records.files[records.owners[record]], tag)
            sizes = np.array([len(buckets)])
            column.append((int(records.offsets[record]), np.array([step]), np.array([wall_time]), sizes, buckets))

    def _in_order(
        self, records: _Records, numbers: Indices, columns: Indices, *, is_sorted: bool
    ) -> tuple[Indices, list[EventFile], list[str], list[int]]:
        """Sorts points by file and tag, and within a tag by record: their order, the file and tag of each group, and the
        edges between the groups.
        """
        keys = records.owners[numbers] * len(self._tags) + columns
        by_record = None if is_sorted else np.argsort(numbers, kind="stable")
        keys = keys if by_record is None else keys[by_record]
        few = len(records.files) * len(self._tags) < 1 << 16
        order = np.argsort(keys.astype(np.uint16) if few else keys, kind="stable")
        keys = keys[order]
        edges = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
        owners, tags = np.divmod(keys[edges[:-1]], len(self._tags))
        order = order if by_record is None else by_record[order]
        return order, [records.files[k] for k in owners.tolist()], [self._tags[k] for k in tags.tolist()], edges


def _narrowed(values: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The values as float32, and which of them are other numbers then."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, copy=False)
    return narrow, (narrow != values) & ~np.isnan(narrow)


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


def fingerprint(path: str | Path) -> Fingerprint:
    """Size, modification time in nanoseconds and inode of a file; zeros where it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


def scalar_tags_at_start(path: str) -> Iterator[str]:
    """The tags of the scalars within the first `HEAD_BYTES` of the file, in their order. Never raises."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return
    buffer = Buffer(np.frombuffer(head + bytes(LONG + 64), np.uint8))
    chain = buffer.frame(0, len(head)).chain()
    owners = np.zeros(len(chain.starts), np.int64)
    records = _Records(buffer, [EventFile(path)], chain.starts, chain.lengths, owners, chain.starts)
    for index in range(len(owners)):
        for value in _values_of(records, index):
            if value.buckets is None:
                yield value.tag
