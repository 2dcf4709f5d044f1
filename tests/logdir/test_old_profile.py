from __future__ import annotations

import gzip
import json

import pytest

from tb_advisor.evidence.memory import allocator_memory
from tb_advisor.evidence.trace_steps import marked_steps, read_capture, step_times
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.reading import read_trace
from tb_advisor.logdir.trace import HOST, UnreadableTrace
from tests.trace_builders import message, put

GENERIC = b"type.googleapis.com/tensorflow.profiler.PerGenericStepDetails"


def pipeline(steps, hardware=b"GPU", ops=()):
    """An InputPipelineAnalysisResult: (step time, input wait) pairs in ms, and (stage, calls, own time)."""
    details = [message((1, i), (2, period), (11, wait)) for i, (period, wait) in enumerate(steps)]
    stages = [message((1, name), (2, calls), (5, own)) for name, calls, own in ops]
    return message(*((4, message((1, GENERIC), (2, one))) for one in details), *((6, stage) for stage in stages), (9, hardware))


def read(tmp_path, name, content):
    return read_trace(put(tmp_path / name, content))


def named(trace):
    return [(plane.name, line.name, line[i].name) for plane in trace.planes for line in plane.lines for i in range(len(line))]


def test_steps_and_waits_of_an_input_pipeline(tmp_path):
    content = pipeline([(100.0, 80.0)] * 6, ops=[(b"Iterator::Prefetch::Generator", 6, 480.0)])
    path = put(tmp_path / "h.input_pipeline.pb", content)
    traces = (read_capture(Capture("exp/s", "exp", (path,))),)
    (times,) = step_times(traces, marked_steps(traces))
    assert (times.period_ms.tolist(), times.wait_ms.tolist(), times.numbers) == ([100] * 5, [80] * 5, (1, 2, 3, 4, 5))
    assert times.pipeline.slowest.name == "Generator"
    (trace,) = traces[0].traces
    assert (trace.host, trace.events, [plane.name for plane in trace.devices]) == ("h", 6, ["/device:GPU:0"])


def test_an_overview_page_holds_the_same(tmp_path):
    content = pipeline([(100.0, 80.0)] * 4, hardware=b"CPU_ONLY")
    alone = read(tmp_path, "h.input_pipeline.pb", content)
    within = read(tmp_path, "h.overview_page.pb", message((2, content)))
    assert named(within) == named(alone)
    assert within.devices == ()


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        (("a.input_pipeline.pb", "a.overview_page.pb"), ["a.input_pipeline.pb"]),
        (("a.input_pipeline.pb", "b.input_pipeline.pb"), ["a.input_pipeline.pb", "b.input_pipeline.pb"]),
        (("a.input_pipeline.pb", "a.trace.json.gz"), ["a.trace.json.gz"]),
    ],
)
def test_steps_of_a_host_count_once(tmp_path, files, kept):
    events = [{"ph": "X", "name": "train", "ts": 1e5 * i, "dur": 9e4, "args": {"step_num": str(i)}} for i in range(5)]
    summary = pipeline([(100.0, 80.0)] * 4)
    contents = {
        ".input_pipeline.pb": summary,
        ".overview_page.pb": message((2, summary)),
        ".trace.json.gz": gzip.compress(json.dumps({"traceEvents": events}).encode()),
    }
    paths = tuple(put(tmp_path / name, contents[name[1:]]) for name in files)
    assert [steps.trace.file for steps in marked_steps((read_capture(Capture("exp/s", "exp", paths)),))] == kept


def test_steps_of_another_kind_are_none(tmp_path):
    tpu = message((4, message((1, b"type.googleapis.com/tensorflow.profiler.PerTpuStepDetails"), (2, b""))))
    assert read(tmp_path, "h.input_pipeline.pb", tpu).events == 0


def test_one_batch_of_2019(tmp_path):
    device = message((1, HOST.encode()), (3, message((1, 7), (2, message((1, b"python"), (2, 7))))))
    event = message((1, 0), (2, 7), (3, b"ParallelMap"), (9, 5_000_000_000), (10, 2_000_000_000))
    long_name = message((1, b"long name"), (2, b"Iterator::Model::ParallelMap"))
    other = message((1, 0), (2, 7), (3, b" Identity"), (9, 6_000_000_000), (10, 1_000_000_000))
    trace = read(tmp_path, "local.trace", message((1, message((1, 0), (2, device))), (4, event + message((11, long_name))), (4, other)))
    assert named(trace) == [(HOST, "python/7", "Iterator::Model::ParallelMap"), (HOST, "python/7", "Identity")]
    assert (trace.events, trace.window_ms, trace.host_lines[0].start_ms.tolist()) == (2, 2.0, [0.0, 1.0])


def test_kernels_have_no_place_in_time(tmp_path):
    trace = read(tmp_path, "h.kernel_stats.pb", message((1, message((1, b"sgemm"), (7, 3_000_000)))))
    (line,) = trace.devices[0].lines
    assert (line.name, line[0].name, line[0].duration_ms) == ("kernels", "sgemm", 3.0)


def test_memory_of_an_allocator(tmp_path):
    def snapshot(time_ps, heap, **activity):
        use = {"stackReservedBytes": "10", "heapAllocatedBytes": str(heap), "freeMemoryBytes": str(90 - heap), "fragmentation": 0.5}
        return {"timeOffsetPs": str(time_ps), "aggregationStats": use, "activityMetadata": activity}

    snapshots = [
        snapshot(2_000_000_000, 40, memoryActivity="ALLOCATION", tfOpName="conv", dataType="float", tensorShape="[2,2]"),
        snapshot(3_000_000_000, 20, memoryActivity="DEALLOCATION"),
    ]
    profile = {"memoryProfilePerAllocator": {"GPU_0_bfc": {"memoryProfileSnapshots": snapshots}, "odd": None}}
    path = put(tmp_path / "h.memory_profile.json.gz", gzip.compress(json.dumps(profile).encode()))
    (memory,) = allocator_memory(marked_steps((read_capture(Capture("exp/s", "exp", (path,))),)))
    assert (memory.allocator, memory.bytes.tolist(), memory.capacity) == ("GPU_0_bfc", [50, 30], 100)
    assert [line[i].name for line in read_trace(path).host_lines for i in range(2)] == ["MemoryAllocation", "MemoryDeallocation"]


@pytest.mark.parametrize("name", ["h.input_pipeline.pb", "h.overview_page.pb", "h.kernel_stats.pb", "local.trace"])
@pytest.mark.parametrize(("content", "reason"), [(b"", "is empty"), (b"\x22\xff", "is damaged or cut off"), (b"\xff" * 20, "is damaged")])
def test_a_file_that_cannot_be_read_says_why(tmp_path, name, content, reason):
    with pytest.raises(UnreadableTrace) as error:
        read(tmp_path, name, content)
    assert str(error.value).startswith(f"{name} {reason}")
    assert error.value.broken


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", gzip.compress(b"{"), gzip.compress(b"[" * 100_000)])
def test_a_memory_profile_that_cannot_be_read(tmp_path, content):
    with pytest.raises(UnreadableTrace) as error:
        read(tmp_path, "h.memory_profile.json.gz", content)
    assert error.value.broken


@pytest.mark.parametrize(
    "content", [b"null", b"[]", b'{"memoryProfilePerAllocator": {"a": {"memoryProfileSnapshots": [1, {"timeOffsetPs": "x"}]}}}']
)
def test_a_memory_profile_without_memory(tmp_path, content):
    assert read(tmp_path, "h.memory_profile.json.gz", gzip.compress(content)).events == 0


@pytest.mark.parametrize("name", ["h.tensorflow_stats.pb", "h.pod_viewer.json"])
def test_tables_are_not_read(tmp_path, name):
    with pytest.raises(UnreadableTrace) as error:
        read(tmp_path, name, b"x")
    assert not error.value.broken
