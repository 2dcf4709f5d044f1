"""TFRecord framing: from the bytes of an event file to its payloads, with every checksum verified.

A record is ``uint64 length | uint32 crc(length) | payload | uint32 crc(payload)``, little-endian, both checksums
CRC-32C, rotated and offset ("masked"): tensorflow/core/lib/io/record_writer.cc and lib/hash/crc32c.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import google_crc32c
import numpy as np

HEADER = 12
FOOTER = 4


@dataclass(frozen=True)
class Damage:
    """Bytes that could not be read as records. `torn` means an unfinished record at the end, normal in a growing
    file.
    """

    offset: int
    length: int
    torn: bool


@dataclass
class Records:
    """What `read_records` met besides payloads: the damage, and the offset after the last whole record."""

    damage: list[Damage] = field(default_factory=list)
    end: int = 0


def masked_crc(data: bytes | memoryview) -> int:
    """CRC-32C of `data`, masked as TFRecord stores it."""
    crc: int = google_crc32c.value(bytes(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def read_records(data: bytes, records: Records) -> Iterator[bytes]:
    """Yield the payload of every intact record in `data`; note the rest in `records`.

    A payload with a wrong checksum is skipped alone. Where a header is damaged, reading goes on at the next valid
    header. Never raises.
    """
    view = memoryview(data)
    offset = 0
    while offset < len(data):
        payload_length = _payload_length(view, offset)
        if payload_length is None:
            resumed = _next_header(data, offset + 1)
            torn = resumed is None and len(data) - offset < HEADER
            following = len(data) if resumed is None else resumed
            records.damage.append(Damage(offset, following - offset, torn))
            offset = following
            continue
        end = offset + HEADER + payload_length + FOOTER
        if end > len(data):
            records.damage.append(Damage(offset, len(data) - offset, torn=True))
            return
        payload = bytes(view[offset + HEADER : end - FOOTER])
        if masked_crc(payload) == struct.unpack_from("<I", data, end - FOOTER)[0]:
            yield payload
        else:
            records.damage.append(Damage(offset, end - offset, torn=False))
        offset = records.end = end


def _payload_length(view: memoryview, offset: int) -> int | None:
    """The length in the header at `offset`, or None where no valid header stands."""
    if offset + HEADER > len(view):
        return None
    length, crc = struct.unpack_from("<QI", view, offset)
    return length if crc == masked_crc(view[offset : offset + 8]) else None


def _next_header(data: bytes, start: int) -> int | None:
    """The first offset at or after `start` where a header is valid and its record fits into `data`."""
    count = len(data) - start - HEADER - FOOTER + 1
    if count <= 0:
        return None
    view = memoryview(data)
    chunk = 1 << 20
    for first in range(start, start + count, chunk):
        n = min(chunk, start + count - first)
        lengths = np.ndarray((n,), "<u8", data, first, (1,))
        fits = np.flatnonzero(lengths <= len(data) - first)
        for offset in (fits + first).tolist():
            length = _payload_length(view, offset)
            if length is not None and offset + HEADER + length + FOOTER <= len(data):
                return int(offset)
    return None
