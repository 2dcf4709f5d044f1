"""Literals for tests: series from values, and event files written with TensorBoard's own record writer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_advisor.series import Series

FIRST_SECOND = 1_700_000_000.0


def series(values: Iterable[float], *, step: int = 1, first: int = 0, seconds: float = 1.0, run: str = "run", tag: str = "loss") -> Series:
    """A series with a point every `step` steps and `seconds` seconds."""
    points = np.array(list(values), dtype=np.float64)
    steps = first + step * np.arange(len(points), dtype=np.int64)
    return Series(steps, FIRST_SECOND + seconds * np.arange(len(points)), points, run, tag)


def falling(n: int, start: float = 2.0, end: float = 0.5, noise: float = 0.0, seed: int = 0) -> list[float]:
    """A healthy loss: exponential from `start` towards `end`, with Gaussian noise of standard deviation `noise`."""
    generator = np.random.default_rng(seed)
    return [end + (start - end) * math.exp(-5 * i / n) + noise * float(generator.standard_normal()) for i in range(n)]


def event_file(
    directory: Path, scalars: dict[str, Sequence[float]], *, steps: Sequence[int] | None = None, name: str = "1700000000.host.1.0"
) -> Path:
    """An event file as PyTorch writes it: one `simple_value` an event. Returns its path."""
    events = [Event(wall_time=FIRST_SECOND, file_version="brain.Event:2")]
    for tag, values in scalars.items():
        for index, value in enumerate(values):
            step = steps[index] if steps is not None else index
            events.append(scalar_event(tag, step, value, FIRST_SECOND + index))
    return write_events(directory, events, name)


def scalar_event(tag: str, step: int, value: float, wall_time: float = FIRST_SECOND) -> Event:
    return Event(wall_time=wall_time, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))


def tensor_event(tag: str, step: int, tensor: object, plugin: str = "scalars") -> Event:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))
    return Event(
        wall_time=FIRST_SECOND + step, step=step, summary=Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])
    )


def write_events(directory: Path, events: Iterable[Event], name: str = "1700000000.host.1.0") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"events.out.tfevents.{name}"
    with path.open("wb") as stream:
        writer = RecordWriter(stream)
        for event in events:
            writer.write(event.SerializeToString())
    return path
