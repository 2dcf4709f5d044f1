"""Reads XSpace files (``*.xplane.pb``), which TensorFlow's and JAX's profilers write.

XProf ships no message classes, so that they are made here. Field numbers: tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tb_advisor.logdir.captures import host_of
from tb_advisor.logdir.messages import Fields, message_class
from tb_advisor.logdir.trace import LineColumns, Names, Plane, Trace, UnreadableTrace
from tb_advisor.message import Message

# Measured: 101 MB with 6.0 million events take 500 MB of memory and 20 s; protobuf's pure Python implementation takes 50 bytes for one.
LARGEST_FILE = 256 << 20
LARGEST_FILE_IN_PURE_PYTHON = 16 << 20

PICOSECOND_MS = 1e-9

_FIELDS: Fields = {
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


def read_xplane(path: Path) -> Trace:
    """Read the trace of one host. Raises `UnreadableTrace` where the file is gone, empty, torn, too large or no XSpace."""
    from google.protobuf.internal import api_implementation
    from google.protobuf.message import DecodeError

    limit = LARGEST_FILE_IN_PURE_PYTHON if api_implementation.Type() == "python" else LARGEST_FILE
    try:
        size = path.stat().st_size
        if size > limit:
            reason = Message("{file} is larger ({size:bytes}) than what is read ({limit:bytes})", file=path.name, size=size, limit=limit)
            raise UnreadableTrace(reason, broken=False)
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableTrace(Message("{file}: {error}", file=path.name, error=error.strerror or str(error))) from error
    if not data:
        raise UnreadableTrace(Message("{file} is empty (0 bytes)", file=path.name))
    try:
        space = xspace_class().FromString(data)
    except (DecodeError, ValueError, RecursionError) as error:
        reason = Message("{file} is damaged or cut off: its {size:bytes} are no XSpace message", file=path.name, size=size)
        raise UnreadableTrace(reason) from error
    if not space.planes:
        raise UnreadableTrace(Message("{file} holds no plane: it is empty or no XSpace message", file=path.name))
    return _trace(path, space)


@cache
def xspace_class() -> Any:
    """The message class ``XSpace``."""
    return message_class(_FIELDS, "XSpace")


def _trace(path: Path, space: Any) -> Trace:
    origin = min((line.timestamp_ns for plane in space.planes for line in plane.lines if line.events), default=0)
    planes = tuple(_plane(plane, origin) for plane in space.planes)
    notes = tuple(Message("the profiler reported: {text}", text=_text(text)) for text in (*space.errors, *space.warnings))
    events = sum(len(line.events) for plane in space.planes for line in plane.lines)
    return Trace(path.name, host_of(path.name), "xplane", planes, events, notes)


def _plane(plane: Any, origin: int) -> Plane:
    reader = _PlaneReader(
        event_names={entry.key: _text(entry.value.name) for entry in plane.event_metadata},
        stat_names={entry.key: _text(entry.value.name) for entry in plane.stat_metadata},
    )
    columns = []
    for line in plane.lines:
        name = _text(line.display_name or line.name)
        if name not in _DERIVED_LINES:
            columns.append((name, reader.columns(line, origin)))
    table = tuple(reader.names.ids)
    lines = tuple(c.line(name, table, PICOSECOND_MS) for name, c in columns)
    return Plane(_text(plane.name), lines, dict(reader.stats(plane.stats)))


@dataclass
class _PlaneReader:
    """Reads the lines of one plane. Whether the stats of an event are read is decided once a name."""

    event_names: dict[int, str]
    stat_names: dict[int, str]
    names: Names = field(default_factory=Names)
    _wanted: dict[int, frozenset[str]] = field(default_factory=dict)
    _probes: dict[int, int] = field(default_factory=dict)
    _ids: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        has_markers = not _MARKER_STATS.isdisjoint(self.stat_names.values())
        for key, name in self.event_names.items():
            if name.startswith("$"):  # frames of the Python tracer, up to 60 in 61 events; nothing reads them
                continue
            if name in _MEMORY_EVENTS:
                self._wanted[key] = _MEMORY_STATS
            elif has_markers and not name.startswith("Iterator"):
                self._probes[key] = _PROBES
            self._ids[key] = self.names.id(name)

    def columns(self, line: Any, origin: int) -> LineColumns:
        """The columns of one line, starts and durations in picoseconds from `origin` (ns)."""
        columns = LineColumns(self.names)
        line_start = (line.timestamp_ns - origin) * 1000
        described = set()
        for event in line.events:
            key = event.metadata_id
            number = self._ids.get(key)
            if number is None:
                continue
            columns.ids.append(number)
            columns.starts.append(line_start + event.offset_ps)
            columns.durations.append(event.duration_ps)
            if key in self._probes:
                self._probe(key, event)
            if key in self._wanted:
                self._add_stats(columns, event, self._wanted[key])
            elif key not in described:
                described.add(key)
                if self.event_names[key].startswith("Iterator"):
                    self._add_stats(columns, event, _NODE_STATS)
        return columns

    def _probe(self, key: int, event: Any) -> None:
        if any(self.stat_names.get(stat.metadata_id) in _MARKER_STATS for stat in event.stats):
            self._wanted[key] = _MARKER_STATS
            del self._probes[key]
        elif self._probes[key] == 1:
            del self._probes[key]
        else:
            self._probes[key] -= 1

    def _add_stats(self, columns: LineColumns, event: Any, wanted: frozenset[str]) -> None:
        for name, value in self.stats(event.stats):
            if name in wanted:
                columns.add_stat(name, value)

    def stats(self, stats: Any) -> Iterator[tuple[str, float | str]]:
        """(name, value) pairs of numeric and textual stats."""
        for stat in stats:
            name = self.stat_names.get(stat.metadata_id)
            kind = stat.WhichOneof("value")
            if name is None or kind in (None, "bytes_value"):
                continue
            if kind == "str_value":
                yield name, _text(stat.str_value)
            elif kind == "ref_value":
                yield name, self.stat_names.get(stat.ref_value, "")
            else:
                yield name, getattr(stat, kind)


def _text(value: bytes) -> str:
    """A text field, read as bytes so that an invalid character does not cost the file."""
    return value.decode("utf-8", "replace")
