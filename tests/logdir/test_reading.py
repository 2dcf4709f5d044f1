from __future__ import annotations

import gzip
import logging
import os
import sys

import pytest

from tb_advisor.logdir import reading
from tb_advisor.logdir.reading import memory_needed, read_trace
from tb_advisor.logdir.trace import UnreadableTrace
from tests.trace_builders import keras_steps, kineto_capture, kineto_steps, put, xplane_capture

STEPS = keras_steps([20] * 4, [1] * 4)


@pytest.fixture
def apart(monkeypatch):
    """Every file is large."""
    monkeypatch.setattr(reading, "_LARGE", 0)
    # The first reading of a process includes its imports.
    monkeypatch.setattr(reading, "_MEMORY_A_BYTE", 100_000)


def unreadable(path, memory_bytes=None):
    with pytest.raises(UnreadableTrace) as error:
        read_trace(path, memory_bytes)
    return error.value


def test_a_large_file_is_read_by_another_process_as_by_this_one(tmp_path, apart, monkeypatch):
    paths = [xplane_capture(tmp_path, STEPS), kineto_capture(tmp_path, kineto_steps([20] * 4, [1] * 4))]
    here = [reading._read(path, 1 << 30) for path in paths]
    monkeypatch.setattr(reading, "_read", None)  # nothing is read in this process
    for path, trace in zip(paths, here, strict=True):
        other = read_trace(path)
        assert (other.file, other.events, other.window_ms) == (trace.file, trace.events, trace.window_ms)
        assert [line[i] for line in other.host_lines for i in range(len(line))] == [
            line[i] for line in trace.host_lines for i in range(len(line))
        ]


def test_a_damaged_file_says_so_from_there_too(tmp_path, apart):
    error = unreadable(put(tmp_path / "h.xplane.pb", b"\xff" * 100))
    assert str(error).startswith("h.xplane.pb is damaged or cut off")
    assert error.broken


def test_a_file_that_takes_too_long(tmp_path, apart, monkeypatch):
    monkeypatch.setattr(reading, "_SECONDS", 0.0)
    monkeypatch.setattr(reading, "_SECONDS_A_BYTE", 0.0)
    error = unreadable(xplane_capture(tmp_path, STEPS))
    assert "cannot be read within" in str(error)
    assert not error.broken


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is limited on Linux")
def test_a_file_that_takes_more_memory_than_it_should(tmp_path, apart, monkeypatch):
    monkeypatch.setattr(reading, "_MEMORY_A_BYTE", 6)
    path = put(tmp_path / "a.json.gz", gzip.compress(b"[" + b" " * (100 << 20)))
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")  # says that it is small
    monkeypatch.setattr(reading, "_LARGEST_FILE", 2 << 30)
    assert "takes more memory to read than" in str(unreadable(path))


def test_what_needs_more_than_the_budget_is_not_read(tmp_path):
    path = xplane_capture(tmp_path, STEPS)
    need = memory_needed(path)
    assert need == 6 * path.stat().st_size
    read_trace(path, need)
    error = unreadable(path, need - 6)
    assert str(error).startswith("host.xplane.pb would take about")
    assert not error.broken
    assert "0 B that may be taken" in str(unreadable(path, -5))


def test_what_is_larger_than_protobuf_reads_is_not_read(tmp_path):
    path = put(tmp_path / "h.xplane.pb")
    os.truncate(path, (2 << 30) + 1)  # a hole: it takes no room
    assert str(unreadable(path)) == "h.xplane.pb is larger (2 GiB) than what is read (2 GiB)"


def test_a_packed_file_counts_as_what_is_in_it(tmp_path):
    assert memory_needed(put(tmp_path / "a.json.gz", gzip.compress(b" " * 100_000))) == 600_000
    assert memory_needed(tmp_path / "gone.json.gz") == 0


def test_where_no_process_can_be_started_this_one_reads(tmp_path, apart, monkeypatch, caplog):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with caplog.at_level(logging.WARNING):
        assert read_trace(xplane_capture(tmp_path, STEPS)).events
    assert "No such file or directory" in caplog.text
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert read_trace(xplane_capture(tmp_path, STEPS)).events


def test_a_process_that_dies_costs_the_file(tmp_path, apart, monkeypatch):
    monkeypatch.setattr(sys, "path", [])  # it finds no tb_advisor
    assert str(unreadable(xplane_capture(tmp_path, STEPS))) == "the process that read host.xplane.pb died"
