"""Literals for tests: profiler captures as TensorFlow, JAX and PyTorch write them.

An XSpace is built with the message classes that also read it; Kineto traces are plain JSON.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tb_advisor.diagnosis import Diagnosis
from tb_advisor.evidence import Evidence
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.jobs import Job
from tb_advisor.logdir.xplane import xspace_class
from tb_advisor.rule import Rule

START_NS = 1_796_000_000_000_000_000
SESSION = "2026_12_01_12_00_00"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

Stat = int | float | str


@dataclass(frozen=True)
class E:
    """One event: name, start and duration in milliseconds from the start of the trace, and its stats."""

    name: str
    start: float
    duration: float
    stats: Mapping[str, Stat] = field(default_factory=dict)


Planes = Mapping[str, Mapping[str, Sequence[E]]]


def xspace(planes: Planes, *, errors: Sequence[str] = (), plane_stats: Mapping[str, Mapping[str, Stat]] | None = None) -> bytes:
    """The bytes of an XSpace: plane name → line name → events."""
    space = xspace_class()(errors=[error.encode() for error in errors])
    for plane_name, lines in planes.items():
        plane = space.planes.add(name=plane_name.encode())
        event_ids: dict[str, int] = {}
        stat_ids: dict[str, int] = {}
        for line_name, events in lines.items():
            line = plane.lines.add(name=line_name.encode(), timestamp_ns=START_NS)
            for event in events:
                key = event_ids.setdefault(event.name, len(event_ids) + 1)
                added = line.events.add(metadata_id=key, offset_ps=round(event.start * 1e9), duration_ps=round(event.duration * 1e9))
                for name, value in event.stats.items():
                    _add_stat(added.stats.add(metadata_id=stat_ids.setdefault(name, len(stat_ids) + 1)), value)
        for name, value in ((plane_stats or {}).get(plane_name) or {}).items():
            _add_stat(plane.stats.add(metadata_id=stat_ids.setdefault(name, len(stat_ids) + 1)), value)
        for name, key in event_ids.items():
            plane.event_metadata.add(key=key).value.name = name.encode()
        for name, key in stat_ids.items():
            plane.stat_metadata.add(key=key).value.name = name.encode()
    return bytes(space.SerializeToString())


def _add_stat(stat: Any, value: Stat) -> None:
    if isinstance(value, str):
        stat.str_value = value.encode()
    elif isinstance(value, float):
        stat.double_value = value
    else:
        stat.int64_value = value


def xplane_capture(run: Path, planes: Planes, *, host: str = "host", session: str = SESSION, **more: Any) -> Path:
    """A session of the Profile tab below the run's directory. Returns the path of its file."""
    return put(run / "plugins" / "profile" / session / f"{host}.xplane.pb", xspace(planes, **more))


def put(path: Path, content: bytes | str = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def keras_steps(periods: Sequence[float], waits: Sequence[float], *, first: int = 10, marker: str = "Profiled batch") -> Planes:
    """Steps of a Keras run with tf.data: a marker a step, and the wait at its beginning on the thread of the iterator."""
    markers, gets, start = [], [], 0.0
    for i, (period, wait) in enumerate(zip(periods, waits, strict=True)):
        markers.append(E(marker, start, period * 0.98, {"step_num": first + i}))
        gets.append(E("IteratorGetNextOp::DoCompute", start + period * 0.005, wait))
        start += period
    markers.append(E(marker, start, 1.0, {"step_num": first + len(periods)}))
    return {"/host:CPU": {"python": markers, "tf_data_iterator_get_next/1": gets}}


def every_step(events: Sequence[E], *, period: float = 100, count: int = 8) -> list[E]:
    """The same events in each of `count` steps; their starts count from the beginning of the step."""
    return [E(e.name, period * i + e.start, e.duration, e.stats) for i in range(count) for e in events]


def gpu_steps(
    work: Mapping[str, Sequence[E]], *, host: Sequence[E] = (), period: float = 100, count: int = 8, wait: float = 0, device: str = "GPU:0"
) -> Planes:
    """Steps of a TensorFlow loop on a device: what each of its streams and the host's thread do in every step, after a wait for input."""
    markers = [E("train", period * i, period * 0.99, {"step_num": i}) for i in range(count + 1)]
    gets = every_step([E("IteratorGetNextOp::DoCompute", 0, wait)] if wait else [], period=period, count=count)
    streams = {f"Stream #{i}({name})": every_step(events, period=period, count=count) for i, (name, events) in enumerate(work.items())}
    return {
        "/host:CPU": {"python": [*markers, *every_step(host, period=period, count=count)], "tf_data_iterator_get_next/1": gets},
        f"/device:{device}": streams,
    }


def kernels(name: str, count: int, *, start: float, every: float, duration: float) -> list[E]:
    """`count` kernels, one `every` so many milliseconds."""
    return [E(name, start + every * i, duration) for i in range(count)]


def kineto_steps(periods: Sequence[float], waits: Sequence[float], *, loader: str = LOADER, first: int = 5) -> list[dict[str, Any]]:
    """Steps of a PyTorch run: ProfilerStep, and the DataLoader at its beginning."""
    events, start = [], 1000.0
    for i, (period, wait) in enumerate(zip(periods, waits, strict=True)):
        events.append(kineto_event(f"ProfilerStep#{first + i}", start, period))
        events.append(kineto_event(loader, start + 0.001, wait))
        start += period
    return events


def kineto_event(name: str, start: float, duration: float, category: str = "user_annotation", **args: Any) -> dict[str, Any]:
    """A complete event; start and duration in milliseconds."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start * 1e3, "dur": duration * 1e3, "args": args}


def kineto_memory(start: float, total: int, *, change: int = 0, device: int = 0, reserved: int | None = None) -> dict[str, Any]:
    """A memory event of a CUDA device; `total` bytes are allocated after it, and `reserved` held (by default as many)."""
    held = total if reserved is None else reserved
    args = {"Bytes": change, "Total Allocated": total, "Total Reserved": held, "Device Type": 1, "Device Id": device}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": start * 1e3, "args": args}


def allocator_steps(used: Sequence[Sequence[int]], *, capacity: int | None = None, fragmentation: float = 0.0, first: int = 10) -> Planes:
    """Steps of a Keras run on a GPU, in each of which its allocator uses these many MiB, one after the other; `capacity` is in MiB."""
    planes = keras_steps([20] * len(used), [1] * len(used), first=first)
    events = []
    for i, its in enumerate(used):
        for k, mib in enumerate(its):
            stats: dict[str, Stat] = {"allocator_name": "GPU_0_bfc", "bytes_allocated": mib << 20, "bytes_reserved": 0, "tf_op": "conv"}
            stats |= {"fragmentation": fragmentation, "requested_bytes": 1 << 20, "data_type": 1, "shape": "[64,512]"}
            if capacity is not None:
                stats["bytes_available"] = (capacity - mib) << 20
            events.append(E("MemoryAllocation", 20 * i + 2 + 15 * k / len(its), 0, stats))
    return {"/host:CPU": {**planes["/host:CPU"], "allocator": events}}


def kineto_text(events: Sequence[Mapping[str, Any]], devices: Sequence[Mapping[str, Any]] = ()) -> str:
    return json.dumps({"schemaVersion": 1, "deviceProperties": list(devices), "traceEvents": list(events)})


def kineto_capture(run: Path, events: Sequence[Mapping[str, Any]], *, name: str = "worker0.123", devices: Sequence[Any] = ()) -> Path:
    return put(run / f"{name}.pt.trace.json.gz", gzip.compress(kineto_text(events, devices).encode()))


def message(*fields: tuple[int, int | float | bytes]) -> bytes:
    """A protobuf message of these fields, in this order: (number, value) pairs."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: int | float | bytes) -> bytes:
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    """Negative numbers are two's complement of 64 bits."""
    value %= 2**64
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def capture(path: Path, run: str = "exp") -> Capture:
    """The capture of one file."""
    session = path.parent.name if path.name.endswith(".xplane.pb") else path.name.split(".pt.")[0]
    return Capture(f"{run}/{session}", run, (path,))


def judge(rule: Rule, *captures: Capture) -> list[Diagnosis]:
    """What a rule says of a job with these captures."""
    evidence = Evidence(Job("exp", {}, captures))
    return rule(*(evidence[name] for name in rule.evidence))
