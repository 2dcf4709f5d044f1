"""One shape for every profiler capture: a trace has planes, a plane has lines, a line has events.

A line is columns, not objects: six million events take 120 MB. Times are milliseconds from the beginning of the trace; float64 holds an
hour to the nanosecond.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tb_advisor.message import Message

# Traces that were made of sums: what happened when within a step is not known.
SUMMARY = "summary"
HOST = "/host:CPU"
DEVICE = "/device:"

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
# Indices of the events of a line that have a stat, and its values.
StatColumn = tuple[list[int], list["float | str"]]


class UnreadableTrace(Exception):
    """A file that cannot be read as a trace, with the reason. `broken` tells a damaged file from one that is only too large."""

    def __init__(self, reason: Message, *, broken: bool = True) -> None:
        self.reason = reason
        self.broken = broken
        super().__init__(str(reason))


@dataclass(frozen=True, eq=False)
class Numbers:
    """One numeric stat of some events of a line: their indices and its values, both of shape ``(k,)``."""

    events: Indices
    values: Floats


@dataclass(frozen=True)
class Texts:
    """One textual stat of some events of a line: their indices and its values."""

    events: tuple[int, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class Event:
    """One event of a line, with the stats that were kept."""

    name: str
    start_ms: float
    duration_ms: float
    stats: Mapping[str, float | str]


@dataclass(frozen=True, eq=False)
class Line:
    """The events of one thread or stream, by start, the enclosing one before what it encloses.

    `names` are the distinct names of the plane's events and `ids` (int32) the name of each event; `start_ms` and `duration_ms` are
    float64; all of shape ``(n,)``. `numbers` and `texts` hold the stats that some evidence reads, by their names.
    """

    name: str
    names: tuple[str, ...]
    ids: NDArray[np.int32]
    start_ms: Floats
    duration_ms: Floats
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    texts: Mapping[str, Texts] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Event:
        """The event at `index`."""
        stats: dict[str, float | str] = {}
        for name, numbers in self.numbers.items():
            stats.update((name, float(v)) for i, v in zip(numbers.events, numbers.values, strict=True) if i == index)
        for name, texts in self.texts.items():
            stats.update((name, v) for i, v in zip(texts.events, texts.values, strict=True) if i == index)
        return Event(self.names[self.ids[index]], float(self.start_ms[index]), float(self.duration_ms[index]), stats)

    @cached_property
    def end_ms(self) -> Floats:
        """When each event ended, shape ``(n,)``."""
        return self.start_ms + self.duration_ms

    def where(self, wanted: Callable[[str], bool]) -> Mask:
        """Which events have a name that is `wanted`, shape ``(n,)``. `wanted` is called once a distinct name."""
        return np.array([wanted(name) for name in self.names] or [False])[self.ids]


@dataclass(frozen=True, eq=False)
class Plane:
    """A host or a device. `stats` are its properties: ``memory_size``, ``device_type_string``, …"""

    name: str
    lines: tuple[Line, ...]
    stats: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def is_device(self) -> bool:
        """Whether it is an accelerator."""
        return self.name.startswith(DEVICE)


def epoch_seconds(seconds: float) -> float | None:
    """The time if it is one of the years 2010 to 2100; a clock that begins when its machine does is far below."""
    return seconds if 1.26e9 < seconds < 4.1e9 else None


@dataclass(frozen=True, eq=False)
class Trace:
    """What one profiler recorded on one host.

    `file` is the name of its file, `format` one of ``xplane``, ``kineto``, ``chrome`` and `SUMMARY`, `events` the number of events in the
    file, those left out included. `notes` are the errors and warnings that the profiler itself recorded; `damage` says where the file
    broke off.
    `rank` is the number of the process in a distributed PyTorch job, None where it is not one; `began` is the time of its beginning in
    seconds since the epoch, None where it is told by another clock.
    """

    file: str
    host: str
    format: str
    planes: tuple[Plane, ...]
    events: int
    notes: tuple[Message, ...] = ()
    damage: Message | None = None
    rank: int | None = None
    began: float | None = None

    @property
    def host_lines(self) -> tuple[Line, ...]:
        """Every thread of the host."""
        return tuple(line for plane in self.planes if plane.name == HOST for line in plane.lines)

    @property
    def devices(self) -> tuple[Plane, ...]:
        """The accelerators, idle ones included."""
        return tuple(plane for plane in self.planes if plane.is_device)

    @property
    def bytes(self) -> int:
        """Size of the columns of all lines; stats are few."""
        return sum(line.ids.nbytes + line.start_ms.nbytes + line.duration_ms.nbytes for plane in self.planes for line in plane.lines)

    @cached_property
    def window_ms(self) -> float:
        """Time from the start of the first event to the end of the last one."""
        lines = [line for plane in self.planes for line in plane.lines if len(line)]
        if not lines:
            return 0.0
        return max(float(line.end_ms.max()) for line in lines) - min(float(line.start_ms[0]) for line in lines)


@dataclass
class Names:
    """The distinct names of a plane, numbered in the order in which they came."""

    ids: dict[str, int] = field(default_factory=dict)

    def id(self, name: str) -> int:
        """The number of `name`."""
        return self.ids.setdefault(name, len(self.ids))


@dataclass
class LineColumns:
    """A line while it is read: columns that grow, in the order of the file."""

    names: Names
    ids: array[int] = field(default_factory=lambda: array("i"))
    starts: array[float] = field(default_factory=lambda: array("d"))
    durations: array[float] = field(default_factory=lambda: array("d"))
    _stats: dict[str, StatColumn] = field(default_factory=dict)

    def add_stat(self, name: str, value: float | str) -> None:
        """Give the event that was added last a stat."""
        events, values = self._stats.setdefault(name, ([], []))
        events.append(len(self.ids) - 1)
        values.append(value)

    def line(self, name: str, table: tuple[str, ...], unit_ms: float, origin: float = 0.0) -> Line:
        """The finished line: `table` are the plane's names; starts, in units of `unit_ms`, count from `origin`."""
        start = (np.frombuffer(self.starts, np.float64) - origin) * unit_ms if self.starts else np.empty(0)
        duration = np.frombuffer(self.durations, np.float64) * unit_ms if self.durations else np.empty(0)
        ids = np.frombuffer(self.ids, np.int32) if self.ids else np.empty(0, np.int32)
        return line_of(name, table, ids, start, duration, self._stats)


def line_of(
    name: str, table: tuple[str, ...], ids: NDArray[np.int32], start_ms: Floats, duration_ms: Floats, stats: Mapping[str, StatColumn]
) -> Line:
    """A line of events in any order: `stats` are the indices of those that have one, and its values. A negative duration becomes 0, in
    place.
    """
    np.maximum(duration_ms, 0.0, out=duration_ms)
    rank = None
    if not _in_order(start_ms, duration_ms):
        order = np.lexsort((-duration_ms, start_ms))
        ids, start_ms, duration_ms = ids[order], start_ms[order], duration_ms[order]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
    numbers, texts = {}, {}
    for stat, (events, values) in stats.items():
        at = np.array(events, np.int64) if rank is None else rank[np.array(events, np.int64)]
        if any(isinstance(value, str) for value in values):
            texts[stat] = Texts(tuple(at.tolist()), tuple(str(value) for value in values))
        else:
            numbers[stat] = Numbers(at, np.array(values, np.float64))
    return Line(name, table, ids, start_ms, duration_ms, numbers, texts)


def _in_order(start_ms: Floats, duration_ms: Floats) -> bool:
    """Whether events come by start, the longer one first of those that start together: profilers write most lines so."""
    later = start_ms[1:] > start_ms[:-1]
    later |= (start_ms[1:] == start_ms[:-1]) & (duration_ms[1:] <= duration_ms[:-1])
    return bool(later.all())
