"""Reads XSpace files (``*.xplane.pb``), which TensorFlow's and JAX's profilers write.

A file of 100 MB has six million events of a few bytes each. Where they lie, their names, starts and durations are read for thousands at
once. Everything else (names, properties, the few stats that some evidence reads) goes through protobuf; XProf ships no message classes,
so that they are made here. Field numbers: tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tb_advisor.logdir.captures import host_of
from tb_advisor.logdir.messages import Fields, message_classes
from tb_advisor.logdir.records import view
from tb_advisor.logdir.trace import Indices, Line, Plane, StatColumn, Trace, UnreadableTrace, epoch_seconds, line_of
from tb_advisor.logdir.wire import BYTES, field, fields, varints
from tb_advisor.message import Message

PICOSECOND_MS = 1e-9
NANOSECOND_MS = 1e-6

_MESSAGES: Fields = {
    "XStat": (
        ("metadata_id", 1, "int64"),
        ("double_value", 2, "double|value"),
        ("uint64_value", 3, "uint64|value"),
        ("int64_value", 4, "int64|value"),
        ("str_value", 5, "bytes|value"),
        ("bytes_value", 6, "bytes|value"),
        ("ref_value", 7, "uint64|value"),
    ),
    "XEvent": (
        ("metadata_id", 1, "int64"),
        ("offset_ps", 2, "int64|data"),
        ("num_occurrences", 5, "int64|data"),
        ("duration_ps", 3, "int64"),
        ("stats", 4, "XStat*"),
    ),
    "XLine": (
        ("id", 1, "int64"),
        ("name", 2, "bytes"),
        ("timestamp_ns", 3, "int64"),
        ("events", 4, "XEvent*"),
        ("duration_ps", 9, "int64"),
        ("display_name", 11, "bytes"),
    ),
    "XMetadata": (("id", 1, "int64"), ("name", 2, "bytes")),
    "XMetadataEntry": (("key", 1, "int64"), ("value", 2, "XMetadata")),
    "XPlane": (
        ("id", 1, "int64"),
        ("name", 2, "bytes"),
        ("lines", 3, "XLine*"),
        ("event_metadata", 4, "XMetadataEntry*"),
        ("stat_metadata", 5, "XMetadataEntry*"),
        ("stats", 6, "XStat*"),
    ),
    "XSpace": (("planes", 1, "XPlane*"), ("errors", 2, "bytes*"), ("warnings", 3, "bytes*"), ("hostnames", 4, "bytes*")),
}

_MEMORY_EVENTS = frozenset({"MemoryAllocation", "MemoryDeallocation"})
_MEMORY_STATS = frozenset(
    {
        "allocator_name", "index_on_host", "device_ordinal", "bytes_reserved", "bytes_allocated", "bytes_available", "fragmentation",
        "peak_bytes_in_use", "requested_bytes", "allocation_bytes", "tf_op", "region_type", "data_type", "shape",
    }
)  # fmt: skip
_NODE_STATS = frozenset(
    {"name", "parallelism", "autotune", "buffer_limit", "buffered_elements", "batch_size", "cpu_budget", "threadpool_size", "deterministic"}
)
_MARKER_STATS = frozenset({"step_num", "tf_function_call", "tracing_count"})
# An event name that carries a stat carries it on every event; three are looked at before the name is taken to have none.
_PROBES = 3

# Lines that XProf derives from others: reading them counts the same work twice.
_DERIVED_LINES = frozenset({"TensorFlow Name Scope", "TensorFlow Ops", "Framework Ops", "Framework Name Scope", "Source code"})


# The first bytes of the fields of an event: metadata_id, offset_ps, duration_ps; then its stats and num_occurrences.
_COLUMNS = (0x08, 0x10, 0x18)
_STATS, _OCCURRENCES = 0x22, 0x28
_EVENT = 0x22  # of a line's fields
# Events that are decoded at once, so that what lies between two operations stays in the processor's cache.
_BLOCK = 8192
# Bytes in which events are looked for at once; and fields that are read one by one where that ends, more where it ends soon again.
_WINDOW, _FEWEST_STEPS, _MOST_STEPS = 1 << 16, 16, 1 << 14
# Names are numbered from 1 on, as a rule: a table of them is faster than a search.
_LARGEST_TABLE = 1 << 20
# Zero bytes behind the file: the last bytes are read eight at once too.
_PADDING = 32


def read_xplane(path: Path) -> Trace:
    """Read the trace of one host. Raises `UnreadableTrace` where the file is gone, empty, torn or no XSpace."""
    from google.protobuf.message import DecodeError

    try:
        with path.open("rb") as stream:
            data = bytearray(path.stat().st_size + _PADDING)
            size = stream.readinto(memoryview(data)[:-_PADDING])
    except OSError as error:
        raise UnreadableTrace(Message("{file}: {error}", file=path.name, error=error.strerror or str(error))) from error
    if not size:
        raise UnreadableTrace(Message("{file} is empty (0 bytes)", file=path.name))
    try:
        planes, rest = _split(data, 0, size, 1)
        if not planes:
            raise UnreadableTrace(Message("{file} holds no plane: it is empty or no XSpace message", file=path.name))
        space = _classes()["XSpace"].FromString(rest)
        reader = _SpaceReader(data, planes)
        read = reader.planes()
    except (DecodeError, ValueError, RecursionError) as error:
        reason = Message("{file} is damaged or cut off: its {size:bytes} are no XSpace message", file=path.name, size=size)
        raise UnreadableTrace(reason) from error
    notes = tuple(Message("the profiler reported: {text}", text=_text(text)) for text in (*space.errors, *space.warnings))
    return Trace(path.name, host_of(path.name), "xplane", read, reader.events, notes, began=_began(read, reader.origin_ns))


def xspace_class() -> Any:
    """The message class ``XSpace``."""
    return _classes()["XSpace"]


@cache
def _classes() -> Mapping[str, Any]:
    return message_classes(_MESSAGES)


def _split(data: bytearray, start: int, end: int, number: int) -> tuple[list[tuple[int, int]], bytes]:
    """Where the contents of the field `number` lie, and the bytes of all other fields. Raises `ValueError` where this is no message."""
    found = fields(data, start, end)
    if found is None:
        raise ValueError
    wanted, rest, last = [], [], start
    for its_number, kind, first, stop in found:
        if (its_number, kind) == (number, BYTES):
            wanted.append((first, stop))
        else:
            rest.append(data[last:stop])
        last = stop
    return wanted, b"".join(rest)


def _began(planes: Iterable[Plane], origin_ns: int) -> float | None:
    """Times count from the epoch, or from the beginning of the profile, which the plane ``Task Environment`` then gives."""
    starts = [start for plane in planes if isinstance(start := plane.stats.get("profile_start_time"), float)]
    return epoch_seconds(origin_ns / 1e9) or epoch_seconds((min(starts, default=0.0) + origin_ns) / 1e9)


@dataclass
class _SpaceReader:
    """Reads the planes that lie at `spans` of `data`. `events` counts all events, those left out included; the first line of events begins
    at `origin_ns`.
    """

    data: bytearray
    spans: Sequence[tuple[int, int]]
    events: int = 0
    origin_ns: int = 0

    def planes(self) -> tuple[Plane, ...]:
        """All planes. Raises `ValueError` or protobuf's `DecodeError` where one is none."""
        split = [_split(self.data, start, end, 3) for start, end in self.spans]
        lines = [[_find_line(self.data, *span) for span in spans] for spans, _ in split]
        origin = min((line.head.timestamp_ns for its_lines in lines for line in its_lines if line.events), default=0)
        self.origin_ns = origin
        self.events = sum(line.events for its_lines in lines for line in its_lines)
        return tuple(self._plane(rest, its_lines, origin) for (_, rest), its_lines in zip(split, lines, strict=True))

    def _plane(self, rest: bytes, lines: Iterable[_LineBytes], origin: int) -> Plane:
        plane = _classes()["XPlane"].FromString(rest)
        event_names = {entry.key: _text(entry.value.name) for entry in plane.event_metadata}
        reader = _PlaneReader(self.data, event_names, {entry.key: _text(entry.value.name) for entry in plane.stat_metadata})
        kept = tuple(reader.line(line, origin) for line in lines if line.name not in _DERIVED_LINES)
        return Plane(_text(plane.name), kept, dict(reader.stats(plane.stats)))


@dataclass(frozen=True, eq=False)
class _LineBytes:
    """Where the events of one line lie. `fields` are the offsets at which its fields begin and the end of the last one, of shape
    ``(n + 1,)``; `is_event` (shape ``(n,)``) tells which of them are events, `events` how many. `head` is the line without them.
    """

    head: Any
    fields: Indices
    is_event: NDArray[np.bool_]

    @property
    def events(self) -> int:
        """How many events the line has."""
        return int(np.count_nonzero(self.is_event))

    @property
    def name(self) -> str:
        """The name that viewers show."""
        return _text(self.head.display_name or self.head.name)

    def blocks(self, data: NDArray[np.uint8]) -> Iterator[tuple[Indices, Indices]]:
        """Starts and ends of the contents of some thousand events at a time."""
        for first in range(0, len(self.is_event), _BLOCK):
            is_event = self.is_event[first : first + _BLOCK]
            begin, ends = (self.fields[first + k : first + k + len(is_event)][is_event] for k in (0, 1))
            starts = begin + 2  # the key and a length of one byte
            longer = np.flatnonzero(data[starts - 1] >= 0x80)
            while len(longer):
                starts[longer] += 1
                longer = longer[data[starts[longer] - 1] >= 0x80]
            yield starts, ends


def _find_line(data: bytearray, at: int, end: int) -> _LineBytes:
    """The fields of the line that lies from `at` to `end`. Raises `ValueError` where there is none."""
    bytes_ = np.frombuffer(data, np.uint8)
    parts = []
    steps = _FEWEST_STEPS
    while at < end:
        chain, at = _chain(bytes_, at, end)
        steps = _FEWEST_STEPS if len(chain) > steps else min(2 * steps, _MOST_STEPS)
        walked, at = _walk(data, at, end, steps)
        parts += [chain, walked]
    if at != end:
        raise ValueError("a field that ends behind its message")
    found = np.concatenate([*parts, np.array([end])])
    is_event = bytes_[found[:-1]] == _EVENT
    others = np.flatnonzero(~is_event)
    rest = b"".join(data[a:b] for a, b in zip(found[others].tolist(), found[others + 1].tolist(), strict=True))
    return _LineBytes(_classes()["XLine"].FromString(rest), found, is_event)


def _chain(bytes_: NDArray[np.uint8], at: int, end: int) -> tuple[Indices, int]:
    """Where events lie that follow each other from `at` on, up to a few thousand, and the offset after them.

    Wherever an event could begin (its key, and after a length of one byte the key of its first field) is a candidate. As long as each
    candidate ends at the next one, they are the events: every one is reached from `at`.
    """
    window = bytes_[at : min(end, at + _WINDOW)]
    candidates = np.flatnonzero((window[:-2] == _EVENT) & (window[2:] == _COLUMNS[0]) & (window[1:-1] < 0x80))
    if not len(candidates) or candidates[0] != 0:
        return np.empty(0, np.int64), at
    ends = candidates + window[candidates + 1] + 2
    breaks = np.flatnonzero(ends[:-1] != candidates[1:])
    count = int(breaks[0]) + 1 if len(breaks) else len(candidates)
    return candidates[:count] + at, at + int(ends[count - 1])


def _walk(data: bytearray, at: int, end: int, steps: int) -> tuple[Indices, int]:
    """Where the next few fields begin, whatever they are, and the offset after them."""
    offsets = array("q")
    for _ in range(steps):
        if at >= end:
            break
        offsets.append(at)
        low, high = data[at + 1], data[at + 2]
        if data[at] == _EVENT and high < 0x80 <= low:
            at += 3 + (low & 0x7F | high << 7)
        elif data[at] == _EVENT and low < 0x80:
            at += 2 + low
        else:
            one = field(data, at, end)
            if one is None:
                raise ValueError("no field")
            at = one[3]
    return np.frombuffer(offsets, np.int64) if offsets else np.empty(0, np.int64), at


class _Reads(IntEnum):
    """Which stats of an event are read. Decided once a name."""

    NOTHING = 0
    MEMORY = 1  # those of the allocator
    STAGE = 2  # those of a stage of tf.data, once a line
    MARKER = 3  # those of a step or a function call
    UNKNOWN = 4  # may be a marker: its first events are looked at


_WANTED = {_Reads.MEMORY: _MEMORY_STATS, _Reads.STAGE: _NODE_STATS, _Reads.MARKER: _MARKER_STATS}


class _PlaneReader:
    """Reads the lines of one plane."""

    def __init__(self, data: bytearray, event_names: Mapping[int, str], stat_names: Mapping[int, str]) -> None:
        self._data, self._bytes = data, np.frombuffer(data, np.uint8)
        self._words = view(self._bytes, "<u8")
        self._stat_names = stat_names
        # Frames of the Python tracer are up to 60 in 61 events; nothing reads them.
        known = {key: name for key, name in event_names.items() if not name.startswith("$")}
        self._names = tuple(dict.fromkeys(known.values()))
        numbers = {name: number for number, name in enumerate(self._names)}
        self._keys = np.array(sorted(known) or [0], np.int64)
        self._ids = np.array([numbers[known[key]] for key in sorted(known)] or [-1], np.int32)
        self._table = None
        if self._keys[0] >= 0 and self._keys[-1] < _LARGEST_TABLE:
            self._table = np.full(self._keys[-1] + 2, -1, np.int32)
            self._table[self._keys] = self._ids
        has_markers = not _MARKER_STATS.isdisjoint(stat_names.values())
        self._reads = np.array([_reads(name, has_markers) for name in self._names], np.int8)
        self._probes = [_PROBES] * len(self._names)

    def line(self, line: _LineBytes, origin: int) -> Line:
        """One line. Its starts count from `origin` (ns)."""
        ids, start, duration = np.empty(line.events, np.int32), np.empty(line.events), np.empty(line.events)
        stats: dict[str, StatColumn] = {}
        described = np.zeros(len(self._names), np.bool_)
        line_start = (line.head.timestamp_ns - origin) * NANOSECOND_MS
        count = 0
        for starts, ends in line.blocks(self._bytes):
            keys, offsets, durations, has_stats = self._columns(starts, ends)
            block = self._ids_of(keys)
            kept = np.flatnonzero(block >= 0)
            if len(kept) < len(block):
                starts, ends, offsets, durations = starts[kept], ends[kept], offsets[kept], durations[kept]
                has_stats, block = has_stats[kept], block[kept]
            stop = count + len(block)
            ids[count:stop] = block
            start[count:stop] = offsets * PICOSECOND_MS + line_start
            duration[count:stop] = durations * PICOSECOND_MS
            for index in self._to_read(block, starts, ends, has_stats, described):
                wanted = _WANTED[_Reads(self._reads[block[index]])]
                for name, value in self.stats(self._event(starts[index], ends[index]).stats):
                    if name in wanted:
                        events, values = stats.setdefault(name, ([], []))
                        events.append(count + index)
                        values.append(value)
            count = stop
        if count < line.events:
            ids, start, duration = ids[:count].copy(), start[:count].copy(), duration[:count].copy()
        return line_of(line.name, self._names, ids, start, duration, stats)

    def _columns(self, starts: Indices, ends: Indices) -> tuple[Indices, Indices, Indices, NDArray[np.bool_]]:
        """metadata_id, offset_ps and duration_ps of events, and whether more follows. Their fields come in the order of their numbers, as
        every writer has them; an event of another shape goes through protobuf.
        """
        at = starts.copy()
        odd = np.zeros(len(at), np.bool_)
        columns = []
        for key in _COLUMNS:
            present = self._bytes[at] == key
            present &= at < ends
            values, widths = varints(self._words[at + 1])
            odd |= present & (widths == 0)
            columns.append((values * present).view(np.int64))
            at += (widths + 1) * present
        has_more = at < ends
        following = self._bytes[at]
        odd |= (at > ends) | (has_more & (following != _STATS) & (following != _OCCURRENCES))
        for index in np.flatnonzero(odd).tolist():
            event = self._event(starts[index], ends[index])
            for column, value in zip(columns, (event.metadata_id, event.offset_ps, event.duration_ps), strict=True):
                column[index] = value
            has_more[index] = True
        return columns[0], columns[1], columns[2], has_more

    def _ids_of(self, keys: Indices) -> NDArray[np.int32]:
        """The number of each name, -1 for those that are left out."""
        if self._table is not None:
            return self._table[np.minimum(keys.view(np.uint64), len(self._table) - 1).view(np.int64)]
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[place] == keys, self._ids[place], -1)

    def _to_read(
        self, ids: NDArray[np.int32], starts: Indices, ends: Indices, has_stats: NDArray[np.bool_], described: NDArray[np.bool_]
    ) -> list[int]:
        """Which events have stats that are read, in their order. `described` remembers the stages of this line."""
        at = np.flatnonzero((self._reads[ids] > _Reads.NOTHING) & has_stats)
        if not len(at):
            return []
        probed = at
        for _ in range(_PROBES):
            unknown = probed[self._reads[ids[probed]] == _Reads.UNKNOWN]
            firsts = unknown[np.unique(ids[unknown], return_index=True)[1]]
            for index in firsts.tolist():
                self._probe(int(ids[index]), self._event(starts[index], ends[index]))
            probed = np.setdiff1d(unknown, firsts, assume_unique=True)
            if not len(probed):
                break
        reads = self._reads[ids[at]]
        stages = at[(reads == _Reads.STAGE) & ~described[ids[at]]]
        stages = stages[np.unique(ids[stages], return_index=True)[1]]
        described[ids[stages]] = True
        return sorted([*at[(reads == _Reads.MEMORY) | (reads == _Reads.MARKER)].tolist(), *stages.tolist()])

    def _probe(self, number: int, event: Any) -> None:
        if any(self._stat_names.get(stat.metadata_id) in _MARKER_STATS for stat in event.stats):
            self._reads[number] = _Reads.MARKER
        else:
            self._probes[number] -= 1
            if not self._probes[number]:
                self._reads[number] = _Reads.NOTHING

    def _event(self, start: int, end: int) -> Any:
        return _classes()["XEvent"].FromString(bytes(self._data[start:end]))

    def stats(self, stats: Any) -> Iterator[tuple[str, float | str]]:
        """(name, value) pairs of numeric and textual stats."""
        for stat in stats:
            name = self._stat_names.get(stat.metadata_id)
            kind = stat.WhichOneof("value")
            if name is None or kind in (None, "bytes_value"):
                continue
            if kind == "str_value":
                yield name, _text(stat.str_value)
            elif kind == "ref_value":
                yield name, self._stat_names.get(stat.ref_value, "")
            else:
                yield name, getattr(stat, kind)


def _reads(name: str, has_markers: bool) -> _Reads:
    """Which stats are read of events called `name`. `has_markers` says that some event of the plane is a marker."""
    if name in _MEMORY_EVENTS:
        return _Reads.MEMORY
    if name.startswith("Iterator"):
        return _Reads.STAGE
    return _Reads.UNKNOWN if has_markers else _Reads.NOTHING


def _text(value: bytes) -> str:
    """A text field, read as bytes so that an invalid character does not cost the file."""
    return value.decode("utf-8", "replace")
