from __future__ import annotations

import gzip
import json

import pytest

from tb_advisor.logdir.chrome_trace import read_chrome_trace
from tb_advisor.logdir.trace import UnreadableTrace
from tests.trace_builders import kineto_event, kineto_memory, kineto_text, put


def read(tmp_path, text, name="worker0.1.pt.trace.json"):
    content = text if isinstance(text, bytes) else text.encode()
    return read_chrome_trace(put(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content))


def event_names(trace):
    return [line[i].name for plane in trace.planes for line in plane.lines for i in range(len(line))]


@pytest.mark.parametrize("name", ["worker0.1.pt.trace.json", "worker0.1.pt.trace.json.gz"])
def test_host_and_device(tmp_path, name):
    events = [kineto_event("aten::mm", 10, 2, "cpu_op"), kineto_event("gemm", 11, 4, "kernel", device=0, stream=7)]
    trace = read(tmp_path, kineto_text(events, [{"id": 0, "name": "V100", "totalGlobalMem": 16}]), name)
    assert (trace.host, trace.format, trace.events) == ("worker0", "kineto", 2)
    assert [(p.name, p.lines[0].name, p.lines[0].start_ms.tolist()) for p in trace.planes] == [
        ("/host:CPU", "1/1", [0.0]),
        ("/device:GPU:0", "Stream #7", [1.0]),
    ]
    assert trace.devices[0].stats == {"memory_size": 16.0, "device_type_string": "V100"}


def test_capitalised_categories_of_2021(tmp_path):
    trace = read(tmp_path, kineto_text([kineto_event("gemm", 1, 1, "Kernel"), kineto_event("Memcpy HtoD", 2, 1, "Memcpy")]))
    assert [plane.is_device for plane in trace.planes] == [True]


def test_twins_python_frames_and_arrows_are_left_out(tmp_path):
    events = [
        kineto_event("ProfilerStep#1", 1, 1),
        kineto_event("ProfilerStep#1", 1, 1, "gpu_user_annotation"),
        kineto_event("f.py(3): g", 1, 1, "python_function"),
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "ts": 1, "id": 1},
    ]
    trace = read(tmp_path, kineto_text(events))
    assert (trace.events, event_names(trace)) == (4, ["ProfilerStep#1"])


def test_events_without_a_time_and_kernels_at_zero_are_dropped(tmp_path):
    broken = [{"ph": "X", "cat": "cpu_op", "name": "a", "dur": 1}, {"ph": "X", "cat": "cpu_op", "name": "b", "ts": None, "dur": 1}]
    trace = read(tmp_path, kineto_text([*broken, kineto_event("k", 0, 1, "kernel"), kineto_event("aten::mm", 5, 1, "cpu_op")]))
    assert event_names(trace) == ["aten::mm"]


def test_memory_events(tmp_path):
    (line,) = read(tmp_path, kineto_text([kineto_memory(1, 100, change=4)])).host_lines
    assert line[0].stats["Total Allocated"] == 100.0


def test_backslashes_of_windows_are_repaired(tmp_path):
    text = kineto_text([kineto_event("PATH", 1, 1), kineto_event("b", 2, 1)]).replace("PATH", r"C:\users\me\x.py")
    assert len(event_names(read(tmp_path, text))) == 2


def test_a_list_of_events_without_its_end(tmp_path):
    trace = read(tmp_path, '[{"ph": "X", "name": "a", "ts": 1, "dur": 1},\n{"ph": "X", "name": "b", "ts": 2, "dur": 1},\n')
    assert (event_names(trace), trace.format) == (["a", "b"], "chrome")


def test_a_trace_that_was_cut_off_gives_what_came_before(tmp_path):
    text = kineto_text([kineto_event("a", 1, 1), kineto_event("b", 2, 1)])
    trace = read(tmp_path, text[: text.index('"name": "b"')])
    assert event_names(trace) == ["a"]
    assert str(trace.damage) == "worker0.1.pt.trace.json is cut off or damaged after 1 events"


def test_planes_named_by_the_process(tmp_path):
    names = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}}]
    names += [{"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "Stream #5"}}]
    text = json.dumps({"traceEvents": [*names, {"ph": "X", "pid": 1, "tid": 2, "name": "k", "ts": 1, "dur": 1}]})
    (plane,) = read(tmp_path, text, "h.trace.json").planes
    assert (plane.name, plane.lines[0].name) == ("/device:GPU:0", "Stream #5")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\x1f\x8b broken", "cannot be unpacked"),
        (gzip.compress(b"[" + b"1" * 10_000)[:30], "cannot be unpacked"),
        (b"{}", "holds no traceEvents"),
        (b"null", "no valid JSON"),
        (b'{"traceEvents": [{"ph": ', "no valid JSON"),
        (b'{"a": ' + b"[" * 100_000, "no valid JSON"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "no valid JSON"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, content, reason):
    with pytest.raises(UnreadableTrace) as error:
        read(tmp_path, content)
    assert reason in str(error.value)


def test_a_bomb_is_not_unpacked(tmp_path):
    with pytest.raises(UnreadableTrace) as error:
        read_chrome_trace(put(tmp_path / "a.json.gz", gzip.compress(b"[" + b" " * 10_000)), largest=1000)
    assert not error.value.broken
