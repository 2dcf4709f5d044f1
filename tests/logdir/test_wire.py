from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_advisor.logdir.messages import message_class
from tb_advisor.logdir.wire import BYTES, FIXED32, FIXED64, VARINT, fields, varint, varints
from tests.trace_builders import message


def varint_of(number):
    return message((1, number))[1:]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.binary(max_size=8))
def test_a_varint_in_each_of_many_words(numbers, after):
    words = np.array([int.from_bytes((varint_of(n) + after + b"\0" * 8)[:8], "little") for n in numbers], np.uint64)
    values, widths = varints(words)
    short = np.array([len(varint_of(n)) <= 8 for n in numbers])
    assert widths.tolist() == [len(varint_of(n)) if s else 0 for n, s in zip(numbers, short, strict=True)]
    assert values[short].tolist() == [n for n, s in zip(numbers, short, strict=True) if s]


def test_fields_of_a_message():
    content = message((1, 300), (2, b"ab"), (4, 1.5)) + b"\x1d1234"
    assert fields(content, 0, len(content)) == [(1, VARINT, 1, 3), (2, BYTES, 5, 7), (4, FIXED64, 8, 16), (3, FIXED32, 17, 21)]


@pytest.mark.parametrize("content", [b"\x08", b"\x12\x05ab", b"\x0b", b"\x00\x01", b"\x80" * 40, b"\x1d123"])
def test_what_is_no_message(content):
    assert fields(content, 0, len(content)) is None


def test_a_varint_without_an_end_costs_ten_bytes():
    assert varint(b"\xff" * 10_000, 0, 10_000) == (0, 10_001)


def test_classes_with_the_same_names_do_not_clash():
    first, second = (message_class({"A": (("x", number, "int64"),)}, "A") for number in (1, 2))
    assert (first(x=3).SerializeToString(), second(x=3).SerializeToString()) == (b"\x08\x03", b"\x10\x03")
