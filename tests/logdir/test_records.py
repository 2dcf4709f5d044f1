import io

import numpy as np
import pytest
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_advisor.logdir.records import LONG, Buffer

PAYLOADS = [b"one", b"two" * 100, b"", b"three"]


def written(payloads=PAYLOADS):
    stream = io.BytesIO()
    writer = RecordWriter(stream)
    for payload in payloads:
        writer.write(payload)
    return stream.getvalue()


def read(data):
    """(payloads, frames, damaged payloads) of all records in `data`."""
    buffer = Buffer(np.frombuffer(data + bytes(LONG + 64), np.uint8))
    frames = buffer.frame(0, len(data))
    chain = frames.chain()
    ok = buffer.intact(chain.starts, chain.lengths)
    whole = list(zip(chain.starts.tolist(), chain.lengths.tolist(), ok.tolist(), strict=True))
    payloads = [buffer.payload(start, length) for start, length, good in whole if good]
    skipped = sum(length + 16 for _, length, good in whole if not good)
    read_bytes = sum(len(payload) + 16 for payload in payloads)
    assert read_bytes + skipped + sum(gap.length for gap in frames.damage) == frames.end  # nothing is lost
    return payloads, frames, skipped


def test_intact_records_come_back():
    payloads, frames, skipped = read(written())
    assert payloads == PAYLOADS
    assert (frames.damage, frames.end, skipped) == ((), len(written()), 0)


@pytest.mark.parametrize("cut", [1, 4, 10, 16, 20])
def test_a_torn_tail_is_left_and_the_rest_is_read(cut):
    payloads, frames, _ = read(written()[:-cut])
    assert payloads == PAYLOADS[:-1]
    assert (frames.damage, frames.end) == ((), len(written(PAYLOADS[:-1])))


def test_a_flipped_payload_loses_one_record_only():
    data = bytearray(written())
    data[12] ^= 1
    payloads, _, skipped = read(bytes(data))
    assert (payloads, skipped) == (PAYLOADS[1:], 12 + 3 + 4)


def test_a_flipped_header_is_skipped_to_the_next_valid_one():
    data = bytearray(written())
    data[2] ^= 1
    payloads, frames, _ = read(bytes(data))
    assert payloads == PAYLOADS[1:]
    assert frames.damage[0].length == 12 + 3 + 4


@pytest.mark.parametrize("data", [b"", b"x", b"fileFormatVersion: 2\nguid: 0123456789abcdef\n", bytes(4096)])
def test_foreign_bytes_give_no_record_and_no_error(data):
    payloads, frames, _ = read(data)
    assert payloads == []
    assert len(data) - frames.end < 12


def test_a_record_inside_a_payload_is_no_record():
    blob = b"x" * 10 + written([b"inner"] * 3)
    payloads, _, _ = read(written([b"before", blob, b"after" * 2000, blob * 300, b"end"]))
    assert payloads == [b"before", blob, b"after" * 2000, blob * 300, b"end"]


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bits_lose_nothing_but_their_records(seed):
    generator = np.random.default_rng(seed)
    payloads = [generator.bytes(int(n)) for n in generator.integers(0, 200, 300)]
    data = bytearray(written(payloads))
    ends = np.cumsum([len(payload) + 16 for payload in payloads])
    flipped = generator.integers(0, len(data), 5)
    for position in flipped:
        data[position] ^= 1 << int(generator.integers(0, 8))
    hit = set(np.searchsorted(ends, flipped, side="right").tolist())
    assert read(bytes(data))[0] == [payload for index, payload in enumerate(payloads) if index not in hit]
