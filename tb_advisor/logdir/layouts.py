"""Layouts: what the bytes of a kind of record look like, learned from one and recognised in thousands.

A training loop writes the same few records again and again: those of one tag differ in their wall time, step and value,
and in nothing else. The first record of a kind goes through protobuf. A small walk over its fields then says at which
bytes wall time, step and value stand; every other byte is constant. A later record of the same length whose constant
bytes are all equal is, byte by byte, the same message with other numbers, so that reading them from their places gives
what protobuf would. Whatever does not match exactly goes through protobuf itself.

Records of one length are recognised in one pass: the constant bytes of each are folded into a 64-bit number, which is
looked up among those of the known layouts; then all constant bytes are compared. Records that go round (`Rounds`) are
recognised at once: the layouts of the first round make a `Cycle`, and a round that has its constant bytes is the same
messages with other numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tb_advisor.logdir.records import HEADER, LONG, Bytes, Indices, Rounds, view
from tb_advisor.logdir.wire import BYTES, FIXED32, FIXED64, VARINT, fields, varint

# Records start this many bytes after the start of their row, so that the wall time fills the second eight bytes.
OFFSET = 7
# Types of TensorFlow (types.proto) that a value of fixed width may have: NumPy's name of the type.
_TENSOR_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}
# More layouts of one shape than this are no training loop's: the rest goes through protobuf.
MOST_LAYOUTS = 10_000


@dataclass(frozen=True)
class Shape:
    """Where the numbers of a record of `length` bytes stand. `step_bytes` is 0 where the step is not written, which
    means 0.
    """

    length: int
    step_bytes: int
    value_at: int
    value_type: np.dtype[Any]

    @property
    def width(self) -> int:
        """Bytes of a row that holds such a record: `OFFSET` and the record, in full words."""
        return -(-(OFFSET + self.length) // 8) * 8

    @cached_property
    def mask(self) -> NDArray[np.uint64]:
        """Ones where a record of this shape is constant. Of a step's bytes, the bits that say whether another byte
        follows are constant.
        """
        ones = np.zeros(self.width, np.uint8)
        ones[OFFSET : OFFSET + self.length] = 0xFF
        ones[OFFSET + 1 : OFFSET + 9] = 0
        ones[OFFSET + 10 : OFFSET + 10 + self.step_bytes] = 0x80
        ones[OFFSET + self.value_at : OFFSET + self.value_at + self.value_type.itemsize] = 0
        return ones.view("<u8")


class _Known:
    """The layouts of one shape: the column of each pattern of constant bytes."""

    def __init__(self, shape: Shape) -> None:
        mask = shape.mask
        # Of a histogram's words most are values: only the others are compared.
        self.words = np.flatnonzero(mask) if np.count_nonzero(mask) < len(mask) // 2 else None
        self.mask = mask if self.words is None else mask[self.words]
        self.columns_by_pattern: dict[bytes, int] = {}
        # Odd, and unlike each other: powers of the multiplier of Fibonacci hashing.
        self._factors = np.cumprod(np.full(len(self.mask), 0x9E3779B97F4A7C15, np.uint64))
        self._sorted = 0
        self.last_matched = 0

    def find(self, constant: NDArray[np.uint64]) -> NDArray[np.int64]:
        """For each row of constant bytes, the only layout that it can be; whether it is has yet to be compared."""
        if self._sorted != len(self.columns_by_pattern):
            self._sort()
        place = np.searchsorted(self._folded, self._fold(constant))
        place[place == len(self._folded)] = 0
        return place

    def _sort(self) -> None:
        patterns = np.frombuffer(b"".join(self.columns_by_pattern), "<u8").reshape(-1, len(self.mask))
        columns = np.array(list(self.columns_by_pattern.values()), np.int64)
        self._telling = np.flatnonzero((patterns != patterns[0]).any(axis=0)).tolist() or [0]
        folded = self._fold(patterns)
        order = np.argsort(folded)
        self.patterns, self.columns, self._folded = patterns[order], columns[order], folded[order]
        self._sorted = len(columns)

    def _fold(self, rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """One number for each row, made of the words in which the known patterns differ."""
        folded: NDArray[np.uint64] = rows[:, self._telling[0]] * self._factors[0]
        for index in self._telling[1:]:
            folded += rows[:, index] * self._factors[index]
        return folded


@dataclass(frozen=True)
class Points:
    """Points read from records: the index of each in its buffer, its column, step, wall time and value.

    All of shape ``(n,)``, but for the `values` of histograms, of shape ``(n, k, 3)``.
    """

    records: Indices
    columns: Indices
    steps: NDArray[np.int64]
    wall_times: NDArray[np.float64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Cycle:
    """The layouts of the records of one round, the constant bytes of which are those of `pattern` under `mask`, both of
    the round's size.
    """

    shapes: tuple[Shape, ...]
    columns: tuple[int, ...]
    pattern: Bytes
    mask: Bytes

    def fits(self, content: Bytes, rounds: Rounds) -> NDArray[np.bool_]:
        """Which of the rounds have these layouts, shape ``(count,)``."""
        different = []
        for table in rounds.tables(content):
            unlike = table ^ self.pattern
            unlike &= self.mask
            different.append(unlike.max(axis=1))
        return np.asarray(np.concatenate(different) == 0)

    def points(self, content: Bytes, rounds: Rounds) -> Iterator[RoundPoints]:
        """What each column's records say. Columns whose steps are the same share them."""
        offsets = rounds.start + rounds.offsets
        known: dict[bytes, NDArray[np.int64]] = {}
        for column in dict.fromkeys(self.columns):
            steps, wall_times, values = [], [], []
            for index in (k for k, other in enumerate(self.columns) if other == column):
                start, shape, stride = int(offsets[index]), self.shapes[index], (rounds.size,)
                written = np.ndarray((rounds.count, shape.step_bytes), np.uint8, content, start + 10, (rounds.size, 1)).tobytes()
                if written not in known:
                    known[written] = _steps(content, start + 10, shape.step_bytes, rounds.count, rounds.size)
                steps.append(known[written])
                wall_times.append(np.ndarray((rounds.count,), "<f8", content, start + 1, stride).copy())
                values.append(np.ndarray((rounds.count,), shape.value_type, content, start + shape.value_at, stride).copy())
            yield RoundPoints(column, _in_turn(steps), _in_turn(wall_times), _in_turn(values))


@dataclass(frozen=True)
class RoundPoints:
    """The points of one column in writing order: `steps` and `wall_times` of shape ``(n,)``, `values` of shape ``(n,)`` or
    ``(n, k, 3)``.
    """

    column: int
    steps: NDArray[np.int64]
    wall_times: NDArray[np.float64]
    values: NDArray[Any]


def _in_turn(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The first of each part, then the second of each, and so on: a tag that is written several times a round."""
    return parts[0] if len(parts) == 1 else np.stack(parts, axis=1).reshape(-1, *parts[0].shape[1:])


@dataclass
class Layouts:
    """All layouts learned so far, by length and shape."""

    _by_length: dict[int, dict[Shape, _Known]] = field(default_factory=lambda: defaultdict(dict))
    _cycles: dict[bytes, Cycle] = field(default_factory=dict)

    def learn(self, payload: bytes, column: int) -> bool:
        """Remember the layout of `payload`, a record that protobuf read as one value of `column`.

        False where it has none or is known already.
        """
        shape = shape_of(payload)
        if shape is None:
            return False
        shapes = self._by_length[shape.length]
        known = shapes[shape] = shapes.get(shape) or _Known(shape)
        pattern = _pattern(np.frombuffer(payload, np.uint8), shape, known)
        if pattern in known.columns_by_pattern or len(known.columns_by_pattern) >= MOST_LAYOUTS:
            return False
        known.columns_by_pattern[pattern] = column
        return True

    def cycle(self, content: Bytes, rounds: Rounds) -> Cycle | None:
        """The layouts of the first of these rounds, None where one is not known, or a tag has values of two sizes."""
        first = content[rounds.start : rounds.start + rounds.size]
        key = rounds.lengths.tobytes()
        last = self._cycles.get(key)
        if last is not None and not ((first ^ last.pattern) & last.mask).any():
            return last
        mask = np.zeros(rounds.size, np.uint8)
        shapes, columns = [], []
        for offset, length in zip(rounds.offsets.tolist(), rounds.lengths.tolist(), strict=True):
            found = self._find(first[offset : offset + length])
            if found is None:
                return None
            shape, column = found
            shapes.append(shape)
            columns.append(column)
            mask[offset - HEADER : offset] = 0xFF
            mask[offset : offset + length] = shape.mask.view(np.uint8)[OFFSET : OFFSET + length]
        if len({(column, shape.value_type.shape) for column, shape in zip(columns, shapes, strict=True)}) > len(set(columns)):
            return None
        self._cycles[key] = Cycle(tuple(shapes), tuple(columns), first.copy(), mask)
        return self._cycles[key]

    def _find(self, payload: Bytes) -> tuple[Shape, int] | None:
        """Shape and column of one record, None where its layout is not known."""
        for shape, known in self._by_length[len(payload)].items():
            column = known.columns_by_pattern.get(_pattern(payload, shape, known))
            if column is not None:
                return shape, column
        return None

    def match(self, content: Bytes, starts: Indices, lengths: Indices) -> tuple[list[Points], NDArray[np.bool_]]:
        """The points of all records that have a known layout, and which records those are, shape ``(n,)``."""
        matched = np.zeros(len(starts), np.bool_)
        points = []
        short = np.minimum(lengths, LONG).astype(np.uint16)
        order = np.argsort(short, kind="stable")
        ordered = short[order]
        for length, shapes in self._by_length.items():
            first, last = np.searchsorted(ordered, [length, length + 1])
            records = order[first:last]
            # What matched last comes first: as steps grow, records of one length change their shape for good.
            for shape, known in sorted(shapes.items(), key=lambda item: -item[1].last_matched) if len(records) else ():
                if not len(records):
                    break
                found = _match(content, starts, records, shape, known)
                known.last_matched = 0 if found is None else len(found.records)
                if found is not None:
                    matched[found.records] = True
                    points.append(found)
                    records = records[~matched[records]]
        return points, matched


def _match(content: Bytes, starts: Indices, records: Indices, shape: Shape, known: _Known) -> Points | None:
    rows = view(content, f"V{shape.width}")[starts[records] - OFFSET].view("<u8").reshape(len(records), shape.width // 8)
    constant = (rows if known.words is None else rows[:, known.words]) & known.mask
    place = known.find(constant)
    same = constant == known.patterns.take(place, axis=0)
    if not same.all():
        equal = same.all(axis=1)
        rows, records, place = rows[equal], records[equal], place[equal]
    if not len(records):
        return None
    values = np.ndarray((len(records),), shape.value_type, rows, OFFSET + shape.value_at, (shape.width,))
    steps = _steps(rows, OFFSET + 10, shape.step_bytes, len(rows), shape.width)
    return Points(records, known.columns[place], steps, rows[:, 1].view("<f8").copy(), values.astype(np.float64, copy=False))


def _steps(content: NDArray[Any], start: int, width: int, count: int, stride: int) -> NDArray[np.int64]:
    """`count` varints of `width` bytes, the first at `start`: seven bits a byte, lowest first; negative steps are two's
    complement of 64 bits.
    """
    steps = np.zeros(count, np.uint64)
    for index in range(width):
        byte = np.ndarray((count,), np.uint8, content, start + index, (stride,))
        steps |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * index)
    return steps.view(np.int64)


def _pattern(payload: Bytes, shape: Shape, known: _Known) -> bytes:
    """The constant bytes of one record, as `_Known` keeps them."""
    row = np.zeros(shape.width, np.uint8)
    row[OFFSET : OFFSET + len(payload)] = payload
    words = row.view("<u8") if known.words is None else row.view("<u8")[known.words]
    return (words & known.mask).tobytes()


def shape_of(payload: bytes) -> Shape | None:
    """The shape of an event with one scalar or one histogram of fixed size, None for any other record.

    Walks event.proto (wall_time 1, step 2, summary 5), summary.proto (value 1; tag 1, simple_value 2, tensor 8, metadata 9),
    tensor.proto (dtype 1, tensor_shape 2, tensor_content 4, and the fields of single values).
    """
    event = fields(payload, 0, len(payload))
    if event is None or [number for number, *_ in event] not in ([1, 2, 5], [1, 5]) or event[0][1] != FIXED64:
        return None
    step_bytes = event[1][3] - event[1][2] if len(event) == 3 else 0
    if step_bytes and event[1][1] != VARINT:
        return None
    summary = fields(payload, event[-1][2], event[-1][3])
    if event[-1][1] != BYTES or summary is None or [field[:2] for field in summary] != [(1, BYTES)]:
        return None
    value = fields(payload, summary[0][2], summary[0][3])
    numbers = sorted(field[0] for field in value or [])
    if value is None or numbers not in ([1, 2], [1, 2, 9], [1, 8], [1, 8, 9]):
        return None
    number, kind, start, end = next(field for field in value if field[0] in (2, 8))
    if (number, kind) == (2, FIXED32):
        return Shape(len(payload), step_bytes, start, np.dtype("<f4"))
    if (number, kind) != (8, BYTES):
        return None
    place = _place_in_tensor(payload, start, end)
    return None if place is None else Shape(len(payload), step_bytes, *place)


def _place_in_tensor(payload: bytes, start: int, end: int) -> tuple[int, np.dtype[Any]] | None:
    tensor = fields(payload, start, end)
    if tensor is None:
        return None
    places = {number: (kind, first, last) for number, kind, first, last in tensor}
    if len(places) != len(tensor) or not set(places) <= {1, 2, 4, 5, 6} or len(set(places) & {4, 5, 6}) != 1 or 1 not in places:
        return None
    shape = _dimensions(payload, *places[2][1:]) if 2 in places else []
    if shape is None:
        return None
    dtype = _TENSOR_TYPES.get(payload[places[1][1]], "") if places[1][2] - places[1][1] == 1 else ""
    source = next(iter(set(places) & {4, 5, 6}))
    wanted = {4: dtype, 5: "<f4" if dtype == "<f4" else "", 6: "<f8" if dtype == "<f8" else ""}[source]
    kind, first, last = places[source]
    if shape and dtype == "<f8" and len(shape) == 2 and shape[1] == 3 and source == 4:  # a histogram: left edge, right edge, count
        wanted = f"({shape[0]},3)<f8"
    elif shape:
        return None
    if not wanted or kind != BYTES or last - first != np.dtype(wanted).itemsize:
        return None
    return first, np.dtype(wanted)


def _dimensions(payload: bytes, start: int, end: int) -> list[int] | None:
    """The sizes of a tensor_shape.proto (dim 2: size 1), None for anything unusual."""
    sizes = []
    for number, kind, first, last in fields(payload, start, end) or []:
        dimension = fields(payload, first, last)
        if (number, kind) != (2, BYTES) or not dimension or [field[:2] for field in dimension] != [(1, VARINT)]:
            return None
        sizes.append(varint(payload, dimension[0][2], dimension[0][3])[0])
    return sizes
