from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_advisor.logdir.trace import HOST, UnreadableTrace
from tb_advisor.logdir.xplane import read_xplane, xspace_class
from tests.trace_builders import E, message, put, xplane_capture, xspace


def unreadable(path):
    with pytest.raises(UnreadableTrace) as error:
        read_xplane(path)
    return error.value


def test_planes_lines_and_events(tmp_path):
    planes = {
        HOST: {"python": [E("train", 1.0, 2.0, {"step_num": 7}), E("inner", 1.5, 0.5)]},
        "/device:GPU:0": {"Stream #1(Compute)": [E("gemm", 2.0, 0.25)]},
    }
    trace = read_xplane(xplane_capture(tmp_path, planes, plane_stats={"/device:GPU:0": {"memory_size": 16}}))
    assert (trace.host, trace.format, trace.events, trace.window_ms) == ("host", "xplane", 3, 2.0)
    event = trace.host_lines[0][0]
    assert (event.name, event.start_ms, event.duration_ms, event.stats) == ("train", 1.0, 2.0, {"step_num": 7.0})
    (device,) = trace.devices
    assert (device.lines[0].name, device.stats) == ("Stream #1(Compute)", {"memory_size": 16})


def test_a_step_number_of_zero_is_kept(tmp_path):
    trace = read_xplane(xplane_capture(tmp_path, {HOST: {"python": [E("train", 0, 1, {"step_num": 0})]}}))
    assert trace.host_lines[0][0].stats == {"step_num": 0.0}


def test_events_are_sorted_and_the_enclosing_one_comes_first(tmp_path):
    events = [E("late", 5, 1), E("inner", 1, 1), E("train", 1, 3, {"step_num": 2})]
    (line,) = read_xplane(xplane_capture(tmp_path, {HOST: {"python": events}})).host_lines
    assert [line[i].name for i in range(3)] == ["train", "inner", "late"]
    assert line[0].stats == {"step_num": 2.0}


def test_frames_of_the_python_tracer_are_counted_and_left_out(tmp_path):
    events = [E("$file.py:12 f", 0, 1), E("f", 0, 1)]
    trace = read_xplane(xplane_capture(tmp_path, {HOST: {"python": events}}))
    assert (trace.events, len(trace.host_lines[0])) == (2, 1)


def test_stages_of_tf_data_are_described_once_a_line(tmp_path):
    events = [E("Iterator::Root::Map", i, 1, {"name": "MapDataset:4", "parallelism": 16}) for i in range(5)]
    (line,) = read_xplane(xplane_capture(tmp_path, {HOST: {"tf_data": events}})).host_lines
    assert line[0].stats == {"name": "MapDataset:4", "parallelism": 16.0}
    assert line[1].stats == {}


def test_memory_events_keep_their_stats(tmp_path):
    stats = {"allocator_name": "GPU_0_bfc", "bytes_allocated": 100, "bytes_reserved": 0, "bytes_available": 50, "address": 1}
    (line,) = read_xplane(xplane_capture(tmp_path, {HOST: {"t": [E("MemoryAllocation", 0, 0, stats)]}})).host_lines
    assert line[0].stats == {"allocator_name": "GPU_0_bfc", "bytes_allocated": 100.0, "bytes_reserved": 0.0, "bytes_available": 50.0}


def test_what_the_profiler_reported_is_said(tmp_path):
    trace = read_xplane(xplane_capture(tmp_path, {HOST: {"t": [E("a", 0, 1)]}}, errors=["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"]))
    assert [str(note) for note in trace.notes] == ["the profiler reported: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"]


def test_names_that_are_no_utf_8(tmp_path):
    content = xspace({HOST: {"t": [E("abc", 0, 1)]}}).replace(b"abc", b"a\xffc")
    (line,) = read_xplane(put(tmp_path / "h.xplane.pb", content)).host_lines
    assert line[0].name == "a\ufffdc"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "h.xplane.pb is empty (0 bytes)"),
        (xspace({HOST: {"t": [E("abc", 0, 1)]}})[:-3], "h.xplane.pb is damaged or cut off: its"),
        (b"\xff" * 100, "h.xplane.pb is damaged or cut off: its"),
        (xspace({}, errors=["x"]), "h.xplane.pb holds no plane"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, content, reason):
    error = unreadable(put(tmp_path / "h.xplane.pb", content))
    assert str(error).startswith(reason)
    assert error.broken


def test_a_file_that_is_gone(tmp_path):
    assert "No such file" in str(unreadable(tmp_path / "gone.xplane.pb"))


# Whatever order and size fields have, and whatever is unknown among them.
INT64 = st.integers(-(2**63), 2**63 - 1)
FIELDS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([1]), st.sampled_from([1, 2, 3, 2**40, -1])),
        st.tuples(st.sampled_from([2, 3]), st.one_of(st.integers(0, 10**9), INT64)),
        st.tuples(st.just(4), st.sampled_from([b"\x08\x01\x20\x07", b"", b"\x08\x01\x2a\x96\x01" + b"x" * 150])),
        st.tuples(st.just(9), st.sampled_from([0, b"unknown"])),
    ),
    max_size=5,
)


@given(events=st.lists(FIELDS, max_size=30), timestamp=st.one_of(st.integers(0, 10**12), INT64))
@settings(deadline=None)
def test_events_are_what_protobuf_reads(events, timestamp):
    line = message((2, b"t"), (3, timestamp), *((4, message(*sorted(fields, key=lambda f: f[0]))) for fields in events))
    names = [(4, message((1, key), (2, message((2, b"n%d" % key))))) for key in (1, 2, 3, 2**40)]
    plane = message((2, HOST.encode()), (3, line), *names, (5, message((1, 1), (2, message((2, b"step_num"))))))
    content = message((1, plane))
    known = {1: "n1", 2: "n2", 3: "n3", 2**40: f"n{2**40}"}
    expected = sorted(
        (e.offset_ps * 1e-9, -max(0.0, e.duration_ps * 1e-9), known[e.metadata_id])
        for e in xspace_class().FromString(content).planes[0].lines[0].events
        if e.metadata_id in known
    )
    with TemporaryDirectory() as directory:
        (read,) = read_xplane(put(Path(directory) / "h.xplane.pb", content)).host_lines
    found = sorted((float(s), -float(d), read.names[i]) for s, d, i in zip(read.start_ms, read.duration_ms, read.ids, strict=True))
    assert found == expected


@given(at=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8), cut=st.floats(0, 1))
@settings(deadline=None)
def test_no_damage_is_more_than_an_unreadable_file(at, cut):
    events = [E("train", float(i), 2.0, {"step_num": i, "name": "x" * 200}) for i in range(40)]
    content = bytearray(xspace({HOST: {"python": [*events, *(E("op", float(i), 0.5) for i in range(40))]}}))
    for place, value in at:
        content[int(place * len(content))] = value
    with TemporaryDirectory() as directory, suppress(UnreadableTrace):
        read_xplane(put(Path(directory) / "h.xplane.pb", bytes(content[: int(cut * len(content)) if at else None])))


def test_a_step_among_thousands_of_events_is_found(tmp_path):
    many = [E("op", 0.001 * i, 0.0005) for i in range(30_000)]
    steps = [E("train", 3.0 * i, 2.9, {"step_num": i, "why": "x" * 300}) for i in range(10)]
    (line,) = read_xplane(xplane_capture(tmp_path, {HOST: {"t": [*many[:100], *steps, *many[100:]]}})).host_lines
    assert len(line) == 30_010
    assert line.numbers["step_num"].values.tolist() == list(range(10))


def test_reading_needs_neither_tensorflow_nor_xprof(tmp_path):
    path = xplane_capture(tmp_path, {HOST: {"t": [E("abc", 0, 1)]}})
    code = (
        "import sys, pathlib; from tb_advisor.logdir.xplane import read_xplane; read_xplane(pathlib.Path(sys.argv[1]));"
        "assert not {'tensorflow', 'xprof', 'tensorboard'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
