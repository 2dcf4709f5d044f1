"""TFRecord framing: where the records of an event file lie, and whether their checksums hold.

A record is ``uint64 length | uint32 crc(length) | payload | uint32 crc(payload)``, little-endian, both checksums
CRC-32C, rotated and offset ("masked"): tensorflow/core/lib/io/record_writer.cc and lib/hash/crc32c.h.

Both steps work on a whole buffer at once, which costs about a tenth of a loop over records:

- *Framing.* Every position whose eight bytes could be a short length, and whose next four bytes are the checksum of
  that length, is a candidate. Where each candidate ends at the next one, they are the records. If their lengths go
  round in a cycle, as a training loop's do, the next headers are looked for where the cycle puts them, as long as they
  are there: such `Rounds` are a table, each record at the same place in every row. Where the chain breaks (a blob, a
  header inside a payload, damage) one header is read by hand, and the chain goes on after it.
- *Checksums.* CRC is linear: a register that is zero stays zero over zero bytes. In a copy of the buffer the headers
  are zeroed, the first four bytes of each payload inverted (which starts its CRC from a zero register) and the stored
  checksum replaced by the register's value after the payload (which brings it back to zero). One native call over the
  copy then ends with zero exactly when every payload is intact; otherwise each is checked alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

HEADER = 12
FOOTER = 4
# Payloads from this length on are checked one by one, and their headers read by hand.
LONG = 4096
# Bytes in which headers are searched at once: more and more as long as records follow each other, few after a blob.
SMALLEST_WINDOW, LARGEST_WINDOW = 2 * LONG, 1 << 18
# Fewer rounds than this are not worth a table.
FEWEST_ROUNDS = 16
# Larger pieces of memory than 128 KB come from the system and go back to it, which costs more than what is done with them (mallopt(3)).
BLOCK_BYTES = 96 << 10

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Damage:
    """Bytes of a file that could not be read as records."""

    offset: int
    length: int


@dataclass(frozen=True)
class Chain:
    """Records one by one: starts and lengths of their payloads, both of shape ``(n,)``."""

    starts: Indices
    lengths: Indices


@dataclass(frozen=True)
class Rounds:
    """Short records whose lengths go round: `count` times those of `lengths`, shape ``(p,)``, from the header at
    `start` on without a gap.
    """

    start: int
    lengths: Indices
    count: int

    @cached_property
    def size(self) -> int:
        """Bytes of one round."""
        return int((self.lengths + (HEADER + FOOTER)).sum())

    @cached_property
    def end(self) -> int:
        """Where the last round ends."""
        return self.start + self.count * self.size

    @cached_property
    def offsets(self) -> Indices:
        """Where the payloads of a round start in it, shape ``(p,)``."""
        return np.cumsum(self.lengths + (HEADER + FOOTER)) - self.lengths - FOOTER

    def tables(self, content: Bytes) -> Iterator[Bytes]:
        """Views of the rounds in `content`, a round a row, so small that the allocator has the memory for a copy at hand."""
        most = max(1, BLOCK_BYTES // self.size)
        for first in range(0, self.count, most):
            start, count = self.start + first * self.size, min(most, self.count - first)
            yield content[start : start + count * self.size].reshape(count, self.size)

    def chain(self) -> Chain:
        """The same records one by one."""
        firsts = self.start + self.size * np.arange(self.count)
        return Chain((firsts[:, None] + self.offsets).ravel(), np.tile(self.lengths, self.count))


@dataclass(frozen=True)
class Frames:
    """The whole records of a buffer, in their order.

    `damage` are ranges without a valid header; `end` is where the unfinished rest begins.
    """

    pieces: tuple[Chain | Rounds, ...]
    damage: tuple[Damage, ...]
    end: int

    def chain(self) -> Chain:
        """All records one by one."""
        chains = [piece.chain() if isinstance(piece, Rounds) else piece for piece in self.pieces]
        starts = np.concatenate([np.empty(0, np.int64), *(chain.starts for chain in chains)])
        return Chain(starts, np.concatenate([np.empty(0, np.int64), *(chain.lengths for chain in chains)]))


def masked_crc(data: bytes) -> int:
    """CRC-32C of `data`, masked as TFRecord stores it."""
    crc: int = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


class Buffer:
    """Bytes of one or several files, to be cut into records.

    `content` ends with at least `LONG` + 16 zero bytes that belong to none, so that a row of bytes can be taken at any
    record.
    """

    def __init__(self, content: Bytes) -> None:
        self.content = content
        self._words = view(content, "<u4")
        self._long_words = view(content, "<u8")

    def frame(self, start: int, stop: int) -> Frames:
        """The records between `start` and `stop`, the part of one file. Never raises."""
        pieces: list[Chain | Rounds] = []
        damage: list[Damage] = []
        position, window = start, SMALLEST_WINDOW
        while position + HEADER <= stop:
            length = self._length_at(position)
            if length is None:
                following = self._next_header(position + 1, stop)
                damage.append(Damage(position, following - position))
                position, window = following, SMALLEST_WINDOW
                continue
            if position + HEADER + length + FOOTER > stop:
                break
            if length >= LONG:
                pieces.append(Chain(np.array([position + HEADER]), np.array([length])))
                position, window = position + HEADER + length + FOOTER, SMALLEST_WINDOW
                continue
            end = min(position + window, stop)
            chain = self._chain(position, end)
            pieces.append(chain)
            position = int(chain.starts[-1] + chain.lengths[-1]) + FOOTER
            window = min(4 * window, LARGEST_WINDOW)
            if end - LONG < position < stop - window:  # records go on to the end of what was searched, and there is more
                rounds = self._rounds(position, stop, chain.lengths)
                if rounds.count >= FEWEST_ROUNDS:
                    pieces.append(rounds)
                    position, window = rounds.end, SMALLEST_WINDOW
        return Frames(tuple(pieces), tuple(damage), position)

    def intact(self, starts: Indices, lengths: Indices) -> NDArray[np.bool_]:
        """Which payloads agree with their checksums, shape ``(n,)``."""
        ok = np.ones(len(starts), np.bool_)
        if not len(starts):
            return ok
        short = (lengths >= 4) & (lengths < LONG)
        for index in np.flatnonzero(~short).tolist():
            ok[index] = self._is_intact(int(starts[index]), int(lengths[index]))
        if not self._all_intact(starts[short], lengths[short]):
            for index in np.flatnonzero(short).tolist():
                ok[index] = self._is_intact(int(starts[index]), int(lengths[index]))
        return ok

    def all_intact(self, rounds: Rounds) -> bool:
        """Whether all payloads of the rounds agree with their checksums, by one CRC over a copy of them."""
        if rounds.lengths.min() < 4:
            return False
        keep, flip = np.full(rounds.size, 0xFF, np.uint8), np.zeros(rounds.size, np.uint8)
        keep[rounds.offsets[:, None] - HEADER + np.arange(HEADER)] = 0
        flip[rounds.offsets[:, None] + np.arange(4)] = 0xFF
        register, footers = 0xFFFFFFFF, np.empty(0, np.int64)
        for table in rounds.tables(self.content):
            registers, count = table & keep, len(table)
            registers ^= flip
            if len(footers) != count * len(rounds.lengths):
                footers = (rounds.size * np.arange(count)[:, None] + rounds.offsets + rounds.lengths).ravel()
            words = view(registers.ravel(), "<u4")
            words[footers] = _register(words[footers])
            register = google_crc32c.extend(register, registers.tobytes())
        return register == 0xFFFFFFFF

    def payload(self, start: int, length: int) -> bytes:
        """A copy of the bytes of one payload."""
        return self.content[start : start + length].tobytes()

    def _chain(self, start: int, stop: int) -> Chain:
        """The short records that follow each other from `start` on, the first of which ends before `stop`."""
        window = self._long_words[start : stop - HEADER + 1]
        heads = (window < LONG).nonzero()[0]
        lengths = window[heads].astype(np.int64)
        heads += start
        valid = _HEADER_CRCS[lengths] == self._words[heads + 8]
        heads, lengths = heads[valid], lengths[valid]
        ends = heads + lengths + (HEADER + FOOTER)
        breaks = (ends[:-1] != heads[1:]).nonzero()[0]
        count = int(breaks[0]) + 1 if len(breaks) else len(heads)
        count = int(ends[:count].searchsorted(stop, side="right"))
        return Chain(heads[:count] + HEADER, lengths[:count])

    def _rounds(self, start: int, stop: int, before: Indices) -> Rounds:
        """The records from `start` on that go on in the cycle in which the lengths `before` ended; maybe none."""
        lengths = before[len(before) - _period(before) :]
        rounds = Rounds(start, lengths, 0)
        count = (stop - start) // rounds.size if len(lengths) else 0
        for head, length in zip((rounds.offsets - HEADER).tolist(), lengths.tolist(), strict=True):
            said = np.ndarray((count,), "<u8", self.content, start + head, (rounds.size,))
            crcs = np.ndarray((count,), "<u4", self.content, start + head + 8, (rounds.size,))
            right = (said == length) & (crcs == _HEADER_CRCS[length])
            count = count if right.all() else int(right.argmin())
        return Rounds(start, lengths, count)

    def _length_at(self, position: int) -> int | None:
        head = self.content[position : position + HEADER].tobytes()
        length, crc = struct.unpack("<QI", head)
        return int(length) if crc == masked_crc(head[:8]) else None

    def _next_header(self, start: int, stop: int) -> int:
        """The first valid header at or after `start`; where there is none, the first position too late for one.

        Eight bytes of payload and their checksum look like a header, so that one that is searched for must say less
        than a terabyte.
        """
        end = max(start, stop - HEADER + 1)
        for offset in np.flatnonzero(self._long_words[start:end] < 1 << 40).tolist():
            if self._length_at(start + offset) is not None:
                return start + int(offset)
        return end

    def _is_intact(self, start: int, length: int) -> bool:
        return bool(masked_crc(self.payload(start, length)) == self._words[start + length])

    def _all_intact(self, starts: Indices, lengths: Indices) -> bool:
        """Whether all of these short payloads agree with their checksums, by one CRC over a copy of their stretches."""
        if not len(starts):
            return True
        follows = np.concatenate([[False], starts[1:] == starts[:-1] + lengths[:-1] + (FOOTER + HEADER)])
        firsts = np.flatnonzero(~follows)
        begin, end = starts[firsts], (starts + lengths)[np.append(firsts[1:], len(starts)) - 1] + FOOTER
        registers = np.concatenate([self.content[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)])
        shift = begin - np.concatenate([[0], np.cumsum(end - begin)[:-1]])
        begin = starts - shift[np.cumsum(~follows) - 1]
        words = view(registers, "<u4")
        view(registers, "<u8")[begin[follows] - HEADER] = 0
        words[begin[follows] - 4] = 0
        words[begin] ^= np.uint32(0xFFFFFFFF)
        words[begin + lengths] = _register(words[begin + lengths])
        return bool(google_crc32c.extend(0xFFFFFFFF, registers.tobytes()) == 0xFFFFFFFF)


def view(content: Bytes, dtype: str) -> NDArray[Any]:
    """A value of `dtype` at every position: ``view(content, "<u4")[i]`` is what the four bytes from `i` on say."""
    count = max(0, len(content) - np.dtype(dtype).itemsize + 1)
    values: NDArray[Any] = np.ndarray((count,), dtype, content, 0, (1,))
    return values


def _register(masked: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The CRC register that stored checksums stand for."""
    stored = masked - np.uint32(0xA282EAD8)
    register: NDArray[np.uint32] = ~((stored >> np.uint32(17)) | (stored << np.uint32(15)))
    return register


def _period(lengths: Indices) -> int:
    """The shortest cycle that `lengths` repeat from the first to the last, at least twice; 0 where they do not."""
    likely = len(lengths) - 1 - np.flatnonzero(lengths[:-1] == lengths[-1])[::-1]
    for period in likely[:64].tolist():
        if 2 * period <= len(lengths) and np.array_equal(lengths[period:], lengths[:-period]):
            return int(period)
    return 0


def _header_crcs() -> NDArray[np.uint32]:
    """The masked checksum of every length below `LONG`, from those of its single bits: CRC is affine."""

    def crc(length: int) -> int:
        return int(google_crc32c.value(struct.pack("<Q", length)))

    zero = crc(0)
    crcs = np.full(LONG, zero, np.uint32)
    lengths = np.arange(LONG)
    for bit in range(LONG.bit_length() - 1):
        crcs[(lengths >> bit) & 1 == 1] ^= np.uint32(crc(1 << bit) ^ zero)
    masked: NDArray[np.uint32] = ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(0xA282EAD8)
    return masked


_HEADER_CRCS = _header_crcs()
