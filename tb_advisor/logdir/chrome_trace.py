"""Reads Chrome traces (``*.json``, ``*.json.gz``): those of PyTorch's profiler (Kineto), and the ones that TensorFlow wrote in 2020.

The list of events is decoded one event at a time, so that only the text and the columns are in memory, and a file that was cut off gives
the events before the cut.

What differs between writers: categories were capitalised until 2021 (``Kernel``, ``Operator``), paths of Windows were written with bare
backslashes, and some kernels have ``ts: 0`` (pytorch/kineto#109). `ts` and `dur` are microseconds.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from tb_advisor.logdir.captures import host_of
from tb_advisor.logdir.trace import DEVICE, HOST, LineColumns, Names, Plane, Trace, UnreadableTrace, epoch_seconds
from tb_advisor.message import Message

# The text is in memory as a whole: a trace of 35 MB (76,000 events) takes 80 MB.
LARGEST_TEXT = 2 << 30
_BLOCK = 1 << 20
MICROSECOND_MS = 1e-3

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"})
# Twins of host events, frames of the Python tracer, and arrows.
_SKIPPED_CATEGORIES = frozenset("gpu_user_annotation python_function python trace fwdbwd ac2g async async_gpu overhead".split())
MEMORY = "[memory]"
_MEMORY_STATS = ("Bytes", "Total Allocated", "Total Reserved", "Device Type", "Device Id")
_MARKER_STATS = ("step_num", "tracing_count")

_SPACE = re.compile(r"[\s,]*")
# A backslash that begins no JSON escape.
_BAD_BACKSLASH = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')


def read_chrome_trace(path: Path, largest: int = LARGEST_TEXT) -> Trace:
    """Read one trace. Raises `UnreadableTrace` where the file is gone, empty, larger than `largest` bytes or holds no event list."""
    text = unpacked_text(path, largest)
    if not text.strip():
        raise UnreadableTrace(Message("{file} is empty", file=path.name))
    reader = _Reader(path.name)
    try:
        reader.read(text)
    except (ValueError, RecursionError):  # JSONDecodeError, and integers of thousands of digits
        if not reader.count:
            raise UnreadableTrace(Message("{file} is not a trace: it is no valid JSON", file=path.name)) from None
        reader.damage = Message("{file} is cut off or damaged after {count} events", file=path.name, count=reader.count)
    if not reader.has_list:
        raise UnreadableTrace(Message("{file} is not a trace: it holds no traceEvents", file=path.name))
    return reader.trace()


def unpacked_text(path: Path, largest: int) -> str:
    """The text of a file that may be packed. Raises `UnreadableTrace` where it cannot be read or has more than `largest` bytes."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        data = bytearray()
        with gzip.open(path) if packed else path.open("rb") as stream:
            while len(data) <= largest and (block := stream.read(_BLOCK)):
                data += block
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableTrace(Message("{file} cannot be unpacked or read: {reason}", file=path.name, reason=reason)) from error
    if len(data) > largest:
        reason = Message("{file} is larger than what is read ({limit:bytes} unpacked)", file=path.name, limit=largest)
        raise UnreadableTrace(reason, broken=False)
    return data.decode("utf-8-sig", "replace")


@dataclass
class _Reader:
    """Collects the events of one trace, by plane and line."""

    file: str
    count: int = 0
    has_list: bool = False
    damage: Message | None = None
    _head: dict[str, object] = field(default_factory=dict)
    _columns: dict[tuple[str, str], LineColumns] = field(default_factory=dict)
    _names: dict[str, Names] = field(default_factory=dict)
    _process_names: dict[str, str] = field(default_factory=dict)
    _thread_names: dict[tuple[str, str], str] = field(default_factory=dict)

    def read(self, text: str) -> None:
        """Read the whole trace. Raises `json.JSONDecodeError` at the first place that is no JSON and cannot be repaired."""
        at = _SPACE.match(text).end()  # type: ignore[union-attr]
        if text.startswith("[", at):
            self._read_list(text, at + 1)
            return
        if not text.startswith("{", at):
            raise json.JSONDecodeError("no object and no list", text[:0], 0)
        decode = _Decoder(text)
        at = decode.skip_space(at + 1)
        while not decode.text.startswith("}", at):
            key, at = decode.value(at)
            at = decode.skip_space(at)
            if not decode.text.startswith(":", at):
                raise json.JSONDecodeError("no colon", decode.text[:0], 0)
            at = decode.skip_space(at + 1)
            if key == "traceEvents" and decode.text.startswith("[", at):
                at, decode = self._read_list(decode.text, at + 1)
            else:
                self._head[str(key)], at = decode.value(at)
            at = decode.skip_space(at)

    def _read_list(self, text: str, at: int) -> tuple[int, _Decoder]:
        self.has_list = True
        decode = _Decoder(text)
        at = decode.skip_space(at)
        while not decode.text.startswith("]", at):
            event, at = decode.value(at)
            if isinstance(event, dict):
                self._add(event)
            at = decode.skip_space(at)
        return at + 1, decode

    def _add(self, event: dict[str, object]) -> None:
        phase, name = event.get("ph"), str(event.get("name", ""))
        pid, tid = str(event.get("pid", "")), str(event.get("tid", ""))
        stats = event.get("args")
        args: dict[str, object] = stats if isinstance(stats, dict) else {}
        if phase == "M":
            self._add_metadata(name, pid, tid, args)
            return
        self.count += 1
        category = str(event.get("cat") or "").lower()
        ts, duration = number_of(event.get("ts")), number_of(event.get("dur"))
        if phase == "i" and name == MEMORY:
            wanted: tuple[str, ...] = _MEMORY_STATS
            duration = 0.0
        elif phase == "X" and category not in _SKIPPED_CATEGORIES:
            wanted = _MARKER_STATS
        else:
            return
        if ts is None or duration is None or (ts <= 0 and category in DEVICE_CATEGORIES):
            return
        columns = self._line(category, pid, tid, args)
        columns.ids.append(columns.names.id(name))
        columns.starts.append(ts)
        columns.durations.append(duration)
        for stat in wanted:
            value = number_of(args.get(stat))
            if value is not None:
                columns.add_stat(stat, value)
        if "tf_function_call" in args:
            columns.add_stat("tf_function_call", str(args["tf_function_call"]))

    def _add_metadata(self, name: str, pid: str, tid: str, args: dict[str, object]) -> None:
        if name == "process_name":
            self._process_names[pid] = str(args.get("name", ""))
        elif name == "thread_name":
            self._thread_names[pid, tid] = str(args.get("name", ""))

    def _line(self, category: str, pid: str, tid: str, args: dict[str, object]) -> LineColumns:
        plane = self._process_names.get(pid, "")
        if category in DEVICE_CATEGORIES:
            plane, line = f"{DEVICE}GPU:{args.get('device', pid)}", f"Stream #{args.get('stream', tid)}"
        elif plane.startswith(DEVICE):
            line = self._thread_names.get((pid, tid), tid)
        else:
            plane, line = HOST, f"{pid}/{tid}"
        if (plane, line) not in self._columns:
            self._columns[plane, line] = LineColumns(self._names.setdefault(plane, Names()))
        return self._columns[plane, line]

    def trace(self) -> Trace:
        """What was collected. Times count from the first event."""
        origin = min((min(columns.starts) for columns in self._columns.values()), default=0.0)
        devices = {f"{DEVICE}GPU:{d.get('id')}": d for d in _dicts(self._head.get("deviceProperties"))}
        planes = []
        for plane in dict.fromkeys((*self._names, *devices)):
            table = tuple(self._names[plane].ids) if plane in self._names else ()
            lines = tuple(
                columns.line(line, table, MICROSECOND_MS, origin) for (owner, line), columns in self._columns.items() if owner == plane
            )
            planes.append(Plane(plane, lines, _device_stats(devices.get(plane, {}))))
        writer = "kineto" if {"schemaVersion", "deviceProperties", "distributedInfo"} & self._head.keys() else "chrome"
        host = str(self._head.get("host_name") or host_of(self.file).split(".")[0])
        rank = _rank(self._head.get("distributedInfo"))
        # Where PyTorch gives this, times count from there, else from the epoch (libkineto/src/output_json.cpp).
        base_ns = number_of(self._head.get("baseTimeNanoseconds")) or 0.0
        began = epoch_seconds(base_ns / 1e9 + origin / 1e6)
        return Trace(self.file, host, writer, tuple(planes), self.count, damage=self.damage, rank=rank, began=began)


class _Decoder:
    """Decodes JSON values one after the other. Invalid backslashes are repaired once, from the place where the first one is met."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._repaired = False
        self._decode = json.JSONDecoder(strict=False).raw_decode

    def value(self, at: int) -> tuple[object, int]:
        """The value at `at` and the offset after it. Raises `json.JSONDecodeError`."""
        try:
            return self._decode(self.text, at)
        except json.JSONDecodeError:
            if self._repaired or "\\" not in self.text:
                raise
            self._repaired = True
            rest = _BAD_BACKSLASH.sub(lambda m: m.group() if m.group(1) else r"\\", self.text[at:])
            self.text = self.text[:at] + rest
            return self._decode(self.text, at)

    def skip_space(self, at: int) -> int:
        """The offset of the next character that is no white space and no comma."""
        return _SPACE.match(self.text, at).end()  # type: ignore[union-attr]


def number_of(value: object) -> float | None:
    """`value` as a float: Kineto writes numbers, older writers strings of them. None for anything else."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        return number if abs(number) < 1e300 else None
    return None


def _dicts(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _rank(distributed: object) -> int | None:
    """The rank of a process that is one of several."""
    rank, size = (number_of(distributed.get(key)) for key in ("rank", "world_size")) if isinstance(distributed, dict) else (None, None)
    return int(rank) if rank is not None and size is not None and size > 1 else None


def _device_stats(properties: dict[str, object]) -> dict[str, float | str]:
    """The properties of a device under the names that XPlane files use."""
    numbers = {"memory_size": number_of(properties.get("totalGlobalMem")), "compute_cap_major": number_of(properties.get("computeMajor"))}
    name = properties.get("name")
    return {**{key: value for key, value in numbers.items() if value}, **({"device_type_string": name} if isinstance(name, str) else {})}
