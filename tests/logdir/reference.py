"""The slow and plain reader that the fast one is held to: one record at a time, through the protobuf class."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import google_crc32c
import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.tensor_pb2 import TensorProto

from tb_advisor.logdir.jobs import Run

Points = dict[str, list[tuple[int, float, float]]]


def crc_is(data: bytes, stored: bytes) -> bool:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF) == stored


def intact(data: bytes) -> Iterator[bytes]:
    """The payloads of the intact records; after a damaged header, from the next valid one on.

    Whether that one's record is whole does not matter: it may be still to come. But eight bytes of payload and their
    checksum look like a header, so that one found by searching must say less than a terabyte.
    """
    offset, lost = 0, False
    while offset + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, offset)
        end = offset + 16 + length
        if (lost and length >= 1 << 40) or not crc_is(data[offset : offset + 8], data[offset + 8 : offset + 12]):
            offset, lost = offset + 1, True
            continue
        if end > len(data):
            return
        if crc_is(data[offset + 12 : end - 4], data[end - 4 : end]):
            yield data[offset + 12 : end - 4]
        offset, lost = end, False


def events_of(data: bytes) -> Iterator[Event]:
    for payload in intact(data):
        try:
            yield Event.FromString(payload)
        except DecodeError:
            continue


TYPES = {1: "f4", 2: "f8", 3: "i4", 4: "u1", 5: "i2", 6: "i1", 9: "i8", 10: "?", 17: "u2", 19: "f2", 22: "u4", 23: "u8"}
FIELDS = {1: "float_val", 2: "double_val", 9: "int64_val", 10: "bool_val", 22: "uint32_val", 23: "uint64_val"}
HALF, BFLOAT16 = 19, 14


def number_in(tensor: TensorProto) -> float | None:
    content = tensor.tensor_content
    if any(dim.size != 1 for dim in tensor.tensor_shape.dim) or tensor.dtype not in {*TYPES, BFLOAT16}:
        return None
    if tensor.dtype in (HALF, BFLOAT16) and not content:
        content = struct.pack("<H", tensor.half_val[0] & 0xFFFF if tensor.half_val else 0)
    if not content:
        return float(next(iter(getattr(tensor, FIELDS.get(tensor.dtype, "int_val"))), 0))
    if tensor.dtype == BFLOAT16:
        return float(np.frombuffer(b"\0\0" + content, "<f4")[0]) if len(content) == 2 else None
    kind = np.dtype(TYPES[tensor.dtype])
    return float(np.frombuffer(content, kind)[0]) if len(content) == kind.itemsize else None


def points_of(events: list[Event]) -> Points:
    """Every simple value and every tensor that is one number, whichever plugin shows it."""
    points: Points = {}
    for one in events:
        for value in one.summary.value:
            number = value.simple_value if value.HasField("simple_value") else None
            if value.HasField("tensor"):
                number = number_in(value.tensor)
            if number is not None:
                points.setdefault(value.tag, []).append((one.step, one.wall_time, number))
    return points


def bits(numbers: object) -> list[int]:
    """Bit patterns of float64 numbers, with one pattern for all NaN."""
    array = np.array(numbers, np.float64)
    array[np.isnan(array)] = np.nan
    return array.view(np.int64).tolist()


def assert_is(run: Run, data: bytes) -> None:
    """`run` holds exactly what the reference reads from `data`."""
    events = list(events_of(data))
    points = points_of(events)
    assert sorted(run.scalars) == sorted(points)
    for tag, series in run.scalars.items():
        steps, walls, values = zip(*points[tag], strict=True)
        assert series.steps.tolist() == list(steps), tag
        assert bits(series.wall_times) == bits(walls), tag
        assert bits(series.values) == bits(values), tag
    assert run.events == len(events)
