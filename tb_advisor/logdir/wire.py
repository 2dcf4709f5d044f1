"""Protobuf's wire format, where its own parser is too slow or takes too much memory.

A message is fields one after the other, each a varint (``number << 3 | kind``) and its content: a varint, eight bytes, a length and so
many bytes, or four bytes. A varint has seven bits a byte, lowest first; the highest bit says that another byte follows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Words = NDArray[np.uint64]

_LAST_BYTES, _SEVEN_BITS = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)


def fields(payload: bytes | bytearray, start: int, end: int) -> list[tuple[int, int, int, int]] | None:
    """Every `field` of a message, None where it is not well formed."""
    found = []
    while start < end:
        one = field(payload, start, end)
        if one is None:
            return None
        found.append(one)
        start = one[3]
    return found


def field(payload: bytes | bytearray, position: int, end: int) -> tuple[int, int, int, int] | None:
    """Field number, wire type, start and end of the content of the field at `position`, None where it is not well formed."""
    key, first = varint(payload, position, end)
    kind = key & 7
    stop = first
    if kind == VARINT:
        _, stop = varint(payload, first, end)
    elif kind == BYTES:
        length, first = varint(payload, first, end)
        stop = first + length
    elif kind in (FIXED64, FIXED32):
        stop += 8 if kind == FIXED64 else 4
    else:
        return None
    return None if stop > end or key >> 3 == 0 else (key >> 3, kind, first, stop)


def varint(payload: bytes | bytearray, position: int, end: int) -> tuple[int, int]:
    """The varint at `position` and the offset after it, which is past `end` where it is not well formed."""
    result = shift = 0
    while position < end and shift < 70:
        byte = payload[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    return 0, end + 1


def varints(words: Words) -> tuple[Words, NDArray[np.int64]]:
    """The varint that each of `words` (eight bytes, little-endian) begins with, and how many bytes it takes; both of the shape of
    `words`. One of more than eight bytes has a width of 0 and no value.
    """
    last = ~words & _LAST_BYTES
    last &= -last  # the highest bit of the last byte
    values = words & (last ^ (last - np.uint64(1))) & _SEVEN_BITS
    # Close the gap between two bytes, then that between two pairs, then that in the middle.
    for width, mask in ((1, 0x007F007F007F007F), (2, 0x00003FFF00003FFF), (4, 0x000000000FFFFFFF)):
        values = (values & np.uint64(mask)) | ((values & ~np.uint64(mask)) >> np.uint64(width))
    exponents = last.astype(np.float64).view(np.int64) >> 52
    return values, np.maximum((exponents - 1022) >> 3, 0)
