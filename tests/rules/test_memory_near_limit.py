from __future__ import annotations

import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity, TableExhibit, TimelineExhibit, TraceExhibit
from tb_advisor.evidence.memory import allocator_memory
from tb_advisor.evidence.trace_steps import marked_steps, read_capture
from tb_advisor.message import Missing
from tb_advisor.rules.memory_near_limit import memory_near_limit
from tests.builders import series
from tests.trace_builders import allocator_steps, capture, kineto_capture, kineto_memory, kineto_steps, xplane_capture

MIB = 2**20


def captured(path):
    return memory_near_limit((), allocator_memory(marked_steps((read_capture(capture(path)),))), ())


def on_gpu(tmp_path, used, **more):
    return captured(xplane_capture(tmp_path, allocator_steps(used, **more)))


def on_torch(tmp_path, total, reserved, size=1000):
    events = [*kineto_steps([10] * 4, [1] * 4), kineto_memory(1015, total * MIB, change=5 * MIB, reserved=reserved * MIB)]
    return captured(kineto_capture(tmp_path, events, devices=[{"id": 0, "totalGlobalMem": size * MIB}]))


def logged(values, tag="ray/tune/perf/ram_util_percent", **more):
    return memory_near_limit((series(values, tag=tag, **more),), (), ())


def retried(values):
    return memory_near_limit((), (), (series(values, tag="DeviceStatsMonitor.on_train_batch_end/num_alloc_retries", step=10),))


def test_an_allocator_that_is_almost_full(tmp_path):
    (found,) = on_gpu(tmp_path, [(500, 600), (500, 960), (500, 600), (500, 600)], capacity=1000)
    assert found.summary == (
        "GPU_0_bfc has 960 MiB of 1,000 MiB (96%) in use at its fullest moment, in step 11; "
        "its largest request is 1 MiB, of conv float32[64,512]."
    )
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.HIGH, 11)
    assert str(found.impact.text) == "A request for more than 40 MiB ends the run."
    timeline, table, trace = found.exhibits
    assert isinstance(timeline, TimelineExhibit) and timeline.capacity == 1000 * 2**20
    assert isinstance(table, TableExhibit) and table.rows[1] == (11, "960 MiB", "500 MiB", "conv float32[64,512]")
    assert isinstance(trace, TraceExhibit) and (trace.tool, trace.host) == ("memory_profile", "host")


@pytest.mark.parametrize(
    ("top", "severity"), [(850, Severity.INFO), (949, Severity.INFO), (950, Severity.WARNING), (1000, Severity.WARNING)]
)
def test_from_where_on_it_is_near(tmp_path, top, severity):
    assert [d.severity for d in on_gpu(tmp_path, [(100, top)] * 3, capacity=1000)] == [severity]


def test_just_below(tmp_path):
    assert on_gpu(tmp_path, [(100, 849)] * 5, capacity=1000) == []


def test_one_step_is_enough_to_see_it(tmp_path):
    assert len(on_gpu(tmp_path, [(100, 990)], capacity=1000)) == 1


def test_what_pytorch_keeps_for_later_does_not_count(tmp_path):
    assert on_torch(tmp_path, total=600, reserved=990) == []
    (found,) = on_torch(tmp_path, total=960, reserved=990)
    assert found.summary.startswith(
        "GPU:0 has 960 MiB of 1,000 MiB (96%) in use at its fullest moment, in step 6; its largest request is 5 MiB"
    )


def test_an_allocator_of_unknown_size(tmp_path):
    with pytest.raises(Missing, match=r"the capture exp/\S+ does not say how much memory there is"):
        on_gpu(tmp_path, [(100, 900)] * 5)


def test_a_machine_that_runs_out(tmp_path):
    (found,) = logged(np.linspace(40, 97, 50))
    assert found.summary == "ray/tune/perf/ram_util_percent reaches 97 % at step 49."
    assert (found.severity, found.confidence, found.onset_step, found.last_step) == (Severity.WARNING, Confidence.MEDIUM, 39, 49)


@pytest.mark.parametrize("tag", ["ray/tune/perf/vram_util_percent0", "system/gpu.0.memory_percent"])
def test_a_device_may_be_full_of_what_is_kept_for_later(tag):
    (found,) = logged(np.linspace(40, 97, 50), tag=tag)
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.LOW)


@pytest.mark.parametrize(
    "values",
    [
        [97.0] * 50,  # taken at the start, whatever is needed
        np.linspace(40, 84, 50),  # just below
        np.linspace(95, 99, 50),  # moves by four points
        np.linspace(40, 250, 50),  # no percentage of the machine: of one core
        np.linspace(0.4, 0.97, 50),  # a share that calls itself a percentage is unknown
    ],
)
def test_healthy_percentages_are_silent(values):
    assert logged(values) == []


def test_requests_that_failed():
    (found,) = retried([0, 0, 0, 1, 1, 3, 5, 9])
    assert found.summary == (
        "No memory was left for 9 requests, so that PyTorch gave its cache back and asked again "
        "(DeviceStatsMonitor.on_train_batch_end/num_alloc_retries), first by step 30."
    )
    assert (found.severity, found.last_step, found.fixes[0]) == (Severity.WARNING, 70, "allocator-settings")


def test_requests_that_failed_at_the_start():
    assert [d.severity for d in retried([0, 2, 2, 2, 2, 2, 2, 2])] == [Severity.INFO]
    assert retried([3] * 8) == []


def test_nothing_to_look_at():
    with pytest.raises(Missing, match="a capture of a CPU holds no allocator events"):
        memory_near_limit((), (), ())
    with pytest.raises(Missing, match="no memory scalar is a percentage"):
        logged([1.0] * 50, tag="memory_mb")
    with pytest.raises(Missing, match="has 3 finite points; 5 are needed"):
        logged([1.0] * 3)
