import io

import pytest
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_advisor.logdir.records import Records, read_records

PAYLOADS = [b"one", b"two" * 100, b"", b"three"]


def written(payloads=PAYLOADS):
    stream = io.BytesIO()
    writer = RecordWriter(stream)
    for payload in payloads:
        writer.write(payload)
    return stream.getvalue()


def read(data):
    records = Records()
    return list(read_records(data, records)), records


def test_intact_records_come_back():
    payloads, records = read(written())
    assert payloads == PAYLOADS
    assert records.damage == []
    assert records.end == len(written())


@pytest.mark.parametrize("cut", [1, 4, 10, 16, 20])
def test_a_torn_tail_is_noted_and_the_rest_is_read(cut):
    payloads, records = read(written()[:-cut])
    assert payloads == PAYLOADS[:-1]
    assert [damage.torn for damage in records.damage] == [True]
    assert records.end + records.damage[0].length == len(written()) - cut


def test_a_flipped_payload_loses_one_record_only():
    data = bytearray(written())
    data[12] ^= 1
    payloads, records = read(bytes(data))
    assert payloads == PAYLOADS[1:]
    assert (records.damage[0].offset, records.damage[0].torn) == (0, False)


def test_a_flipped_header_is_skipped_to_the_next_valid_one():
    data = bytearray(written())
    data[2] ^= 1
    payloads, records = read(bytes(data))
    assert payloads == PAYLOADS[1:]
    assert records.damage[0].length == 12 + 3 + 4


@pytest.mark.parametrize("data", [b"", b"x", b"fileFormatVersion: 2\nguid: 0123456789abcdef\n", bytes(4096)])
def test_foreign_bytes_give_no_record_and_no_error(data):
    payloads, records = read(data)
    assert payloads == []
    assert sum(damage.length for damage in records.damage) == len(data)


def test_every_byte_is_read_skipped_or_torn():
    data = bytearray(written(PAYLOADS * 20))
    for position in range(0, len(data), 97):
        data[position] ^= 0x40
    payloads, records = read(bytes(data))
    assert sum(len(p) + 16 for p in payloads) + sum(d.length for d in records.damage) == len(data)
