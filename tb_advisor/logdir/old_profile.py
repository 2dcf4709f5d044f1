"""Reads what the profiler of TensorFlow 2.0 to 2.10 left where it wrote no XSpace, or the XSpace is gone.

=============================================  ==================================================================================
file                                           what it becomes
=============================================  ==================================================================================
``local.trace`` (2.0, 2.1)                     the same events on the same threads; it holds one batch
``*.input_pipeline.pb``, ``*.overview_page.pb``  steps and, in each, waiting for input while no device computes; the own times of tf.data's
                                               stages. What else fills a step is not known for more than half of it, and left out
``*.memory_profile.json.gz``                   the allocator's events
``*.kernel_stats.pb``                          one event a kernel with its whole time; when it ran is not known
=============================================  ==================================================================================

Field numbers: tensorflow/core/profiler/protobuf/{trace_events,input_pipeline,overview_page,kernel_stats}.proto; they are the same in
XProf today.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tb_advisor.logdir.captures import host_of
from tb_advisor.logdir.chrome_trace import number_of, unpacked_text
from tb_advisor.logdir.messages import Fields, message_classes
from tb_advisor.logdir.trace import DEVICE, HOST, SUMMARY, LineColumns, Names, Plane, Trace, UnreadableTrace
from tb_advisor.message import Message

_MESSAGES: Fields = {
    "Resource": (("name", 1, "bytes"), ("resource_id", 2, "uint64")),
    "ResourceEntry": (("key", 1, "uint64"), ("value", 2, "Resource")),
    "Device": (("name", 1, "bytes"), ("resources", 3, "ResourceEntry*")),
    "DeviceEntry": (("key", 1, "uint64"), ("value", 2, "Device")),
    "Argument": (("key", 1, "bytes"), ("value", 2, "bytes")),
    "TraceEvent": (
        ("device_id", 1, "uint64"),
        ("resource_id", 2, "uint64"),
        ("name", 3, "bytes"),
        ("timestamp_ps", 9, "uint64"),
        ("duration_ps", 10, "uint64"),
        ("args", 11, "Argument*"),
    ),
    "Trace": (("devices", 1, "DeviceEntry*"), ("trace_events", 4, "TraceEvent*")),
    "Any": (("type_url", 1, "bytes"), ("value", 2, "bytes")),
    "PerGenericStepDetails": (
        ("step_number", 1, "int32"),
        ("step_time_ms", 2, "double"),
        ("host_wait_input_ms", 11, "double"),
    ),
    "InputOpDetails": (("op_name", 1, "bytes"), ("count", 2, "uint64"), ("self_time_in_ms", 5, "double")),
    "InputPipelineAnalysisResult": (
        ("step_details", 4, "Any*"),
        ("input_op_details", 6, "InputOpDetails*"),
        ("hardware_type", 9, "bytes"),
    ),
    "OverviewPage": (("input_analysis", 2, "InputPipelineAnalysisResult"),),
    "KernelReport": (("name", 1, "bytes"), ("total_duration_ns", 7, "uint64")),
    "KernelStatsDb": (("reports", 1, "KernelReport*"),),
}
_SNAPSHOT_STATS = {
    "stackReservedBytes": "bytes_reserved",
    "heapAllocatedBytes": "bytes_allocated",
    "freeMemoryBytes": "bytes_available",
    "fragmentation": "fragmentation",
}
_ACTIVITY_STATS = {"requestedBytes": "requested_bytes", "tfOpName": "tf_op", "dataType": "data_type", "tensorShape": "shape"}
_TEXTS = frozenset({"tfOpName", "dataType", "tensorShape"})
PICOSECOND_MS = 1e-9


def read_old_profile(path: Path, largest: int) -> Trace:
    """Read one such file, by its name. Raises `UnreadableTrace` where it is none, is damaged, or larger than `largest` bytes unpacked."""
    from google.protobuf.message import DecodeError

    if path.name.endswith(".memory_profile.json.gz"):
        return _memory_profile(path, largest)
    ending = next((ending for ending in _READERS if path.name.endswith(ending)), None)
    if ending is None:
        raise UnreadableTrace(Message("{file} has a format of 2020 to 2022, which is not read", file=path.name), broken=False)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableTrace(Message("{file}: {error}", file=path.name, error=error.strerror or str(error))) from error
    if not data:
        raise UnreadableTrace(Message("{file} is empty (0 bytes)", file=path.name))
    message, read = _READERS[ending]
    try:
        return read(path, _classes()[message].FromString(data))
    except (DecodeError, ValueError, RecursionError) as error:
        raise UnreadableTrace(Message("{file} is damaged or cut off: it is no {message}", file=path.name, message=message)) from error


@cache
def _classes() -> Mapping[str, Any]:
    return message_classes(_MESSAGES)


class _Lines:
    """The lines of one plane while it is made; starts and durations are in milliseconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._names = Names()
        self._columns: dict[str, LineColumns] = {}

    def add(self, line: str, name: str, start_ms: float, duration_ms: float, stats: Mapping[str, float | str] | None = None) -> None:
        """One more event of a line."""
        columns = self._columns.setdefault(line, LineColumns(self._names))
        columns.ids.append(self._names.id(name))
        columns.starts.append(start_ms)
        columns.durations.append(duration_ms)
        for stat, value in (stats or {}).items():
            columns.add_stat(stat, value)

    def plane(self) -> Plane:
        """The plane of what was added."""
        table = tuple(self._names.ids)
        return Plane(self.name, tuple(columns.line(name, table, 1.0) for name, columns in self._columns.items()))


def _trace(path: Path, form: str, planes: Iterable[_Lines], events: int) -> Trace:
    return Trace(path.name, host_of(path.name), form, tuple(lines.plane() for lines in planes), events)


def _old_trace(path: Path, message: Any) -> Trace:
    devices = {entry.key: entry.value for entry in message.devices}
    threads = {key: {entry.key: _text(entry.value.name) for entry in device.resources} for key, device in devices.items()}
    planes = {key: _Lines(_text(device.name)) for key, device in devices.items()}
    origin = min((event.timestamp_ps for event in message.trace_events), default=0)
    for event in message.trace_events:
        plane = planes.setdefault(event.device_id, _Lines(HOST))
        thread = threads.get(event.device_id, {}).get(event.resource_id, "")
        long_name = next((_text(argument.value) for argument in event.args if argument.key == b"long name"), "")
        start, duration = (event.timestamp_ps - origin) * PICOSECOND_MS, event.duration_ps * PICOSECOND_MS
        plane.add(f"{thread}/{event.resource_id}", long_name or _text(event.name).strip(), start, duration)
    return _trace(path, "chrome", planes.values(), len(message.trace_events))


def _input_pipeline(path: Path, message: Any) -> Trace:
    host = _Lines(HOST)
    start, count = 0.0, 0
    for detail in message.step_details:
        if not detail.type_url.endswith(b"PerGenericStepDetails"):
            continue
        step = _classes()["PerGenericStepDetails"].FromString(detail.value)
        duration = _milliseconds(step.step_time_ms)
        host.add("steps", "step", start, duration, {"step_num": count})
        host.add("steps", "IteratorGetNext", start, min(duration, _milliseconds(step.host_wait_input_ms)))
        start += duration
        count += 1
    for op in message.input_op_details:
        name = _text(op.op_name)
        host.add(name, name, 0.0, _milliseconds(op.self_time_in_ms))
    devices = [] if message.hardware_type in (b"", b"CPU_ONLY") else [_Lines(f"{DEVICE}{_text(message.hardware_type)}:0")]
    return _trace(path, SUMMARY, [host, *devices], count)


def _overview_page(path: Path, message: Any) -> Trace:
    return _input_pipeline(path, message.input_analysis)


def _kernel_stats(path: Path, message: Any) -> Trace:
    device = _Lines(f"{DEVICE}GPU:0")
    for report in message.reports:
        device.add("kernels", _text(report.name), 0.0, report.total_duration_ns * 1e-6)
    return _trace(path, SUMMARY, [device], len(message.reports))


_READERS: Mapping[str, tuple[str, Callable[[Path, Any], Trace]]] = {
    ".trace": ("Trace", _old_trace),
    ".input_pipeline.pb": ("InputPipelineAnalysisResult", _input_pipeline),
    ".overview_page.pb": ("OverviewPage", _overview_page),
    ".kernel_stats.pb": ("KernelStatsDb", _kernel_stats),
}


def _memory_profile(path: Path, largest: int) -> Trace:
    try:
        profile = json.loads(unpacked_text(path, largest))
    except (ValueError, RecursionError):
        raise UnreadableTrace(Message("{file} is damaged or cut off: it is no valid JSON", file=path.name)) from None
    allocators = _dict(_dict(profile).get("memoryProfilePerAllocator"))
    host = _Lines(HOST)
    count = 0
    for allocator, of_allocator in allocators.items():
        found = _dict(of_allocator)
        snapshots = found.get("memoryProfileSnapshots") or found.get("sampledTimelineSnapshots")
        for snapshot in map(_dict, snapshots if isinstance(snapshots, list) else []):
            time = number_of(snapshot.get("timeOffsetPs"))
            if time is None:
                continue
            stats = _known(_dict(snapshot.get("aggregationStats")), _SNAPSHOT_STATS)
            activity = _dict(snapshot.get("activityMetadata"))
            stats |= {"allocator_name": allocator, **_known(activity, _ACTIVITY_STATS)}
            name = "MemoryDeallocation" if activity.get("memoryActivity") == "DEALLOCATION" else "MemoryAllocation"
            host.add(allocator, name, time * PICOSECOND_MS, 0.0, stats)
            count += 1
    return _trace(path, SUMMARY, [host], count)


def _known(values: Mapping[str, object], names: Mapping[str, str]) -> dict[str, float | str]:
    """The values that have a name in an XSpace, under it. Numbers of 64 bits are written as text."""
    found: dict[str, float | str] = {}
    for key, name in names.items():
        value = str(values.get(key, "")) if key in _TEXTS else number_of(values.get(key))
        if value is not None and value != "":
            found[name] = value
    return found


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _milliseconds(value: float) -> float:
    return value if math.isfinite(value) and 0 < value < 1e12 else 0.0


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
