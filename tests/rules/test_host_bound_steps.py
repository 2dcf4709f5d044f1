from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.logdir.trace import HOST
from tb_advisor.rules.host_bound_steps import host_bound_steps
from tests.trace_builders import E, capture, gpu_steps, judge, kernels, kineto_capture, kineto_event, kineto_steps, xplane_capture


def check(tmp_path, work, **more):
    return judge(host_bound_steps, capture(xplane_capture(tmp_path, gpu_steps({"Compute": work}, **more))))


def test_the_host_computes_between_kernels(tmp_path):
    (found,) = check(tmp_path, [E("gemm", 0, 40)], host=[E("augment", 41, 58)])
    assert found.summary == (
        "GPU:0 has nothing to do in 60% of the step time of 100 ms while nobody waits for input; the longest gap lasts 60 ms, in augment."
    )
    assert (found.severity, found.confidence, found.onset_step, found.last_step) == (Severity.WARNING, Confidence.HIGH, 1, 7)
    assert str(found.impact.text) == "Without that a step would take 40 ms: at most 2.5× faster."
    assert found.fixes == ("less-host-work", "steps-per-execution", "avoid-sync")


def test_many_short_kernels(tmp_path):
    (found,) = check(tmp_path, kernels("add", 990, start=0, every=0.1, duration=0.01))
    assert found.summary.endswith("; it runs 990 kernels a step, half of them shorter than 10.0 µs.")
    assert found.fixes[0] == "compile-step"


def test_calls_that_wait_for_the_device(tmp_path):
    (found,) = check(tmp_path, [E("gemm", 0, 80)], host=[E("cudaStreamSynchronize", 60, 36)])
    assert found.summary.endswith("; the host waits for it in cudaStreamSynchronize, 1× a step.")
    assert (found.severity, found.fixes) == (Severity.WARNING, ("avoid-sync", "non-blocking-copy"))


def test_memory_that_is_given_back(tmp_path):
    (found,) = check(tmp_path, [E("gemm", 0, 10)], host=[E("hipFree", 12, 85)])
    assert found.fixes == ("reuse-memory",)


@pytest.mark.parametrize(
    ("busy", "more", "expected"),
    [
        (49, {}, [Severity.WARNING]),
        (51, {}, [Severity.INFO]),
        (69, {}, [Severity.INFO]),
        (71, {}, []),
        (20, {"wait": 79}, []),  # input is the reason
        (10, {"wait": 40}, [Severity.WARNING]),  # input explains less than half
        (71, {"host": [E("cudaStreamSynchronize", 20, 57)]}, [Severity.INFO]),  # 6% while the device is idle
        (71, {"host": [E("cudaStreamSynchronize", 0, 75)]}, []),  # it waits for what runs
    ],
)
def test_thresholds(tmp_path, busy, more, expected):
    start = more.get("wait", 0)
    assert [d.severity for d in check(tmp_path, [E("gemm", start, busy)], **more)] == expected


def test_a_step_of_a_millisecond_is_silent(tmp_path):
    assert check(tmp_path, [E("gemm", 0, 0.1)], period=1) == []


def test_compiling_is_another_rule(tmp_path):
    assert check(tmp_path, [E("gemm", 0, 20)], host=[E("GpuCompiler::RunBackend", 20, 79)]) == []


def test_a_loop_without_markers_is_never_certain(tmp_path):
    planes = dict(gpu_steps({"Compute": [E("gemm", 0, 20)]}))
    planes[HOST] = {"python": [E("PjitFunction(f)", 100 * i, 30) for i in range(8)]}
    (found,) = judge(host_bound_steps, capture(xplane_capture(tmp_path, planes)))
    assert found.confidence is Confidence.LOW


def items(tmp_path, count, *, optimizer=0):
    steps = range(6)
    events = [kineto_event("aten::item", 1020 + 100 * i + 0.1 * k, 0.01, "cpu_op") for i in steps for k in range(count)]
    events += [kineto_event("Optimizer.step#Adam.step", 1080 + 100 * i, 10) for i in steps]
    events += [kineto_event("aten::item", 1081 + 100 * i + 0.1 * k, 0.01, "cpu_op") for i in steps for k in range(optimizer)]
    return judge(host_bound_steps, capture(kineto_capture(tmp_path, [*kineto_steps([100] * 6, [1] * 6), *events])))


def test_single_values_on_a_cpu_are_worth_knowing(tmp_path):
    (found,) = items(tmp_path, 20, optimizer=6)
    assert found.severity is Severity.INFO
    assert found.summary.startswith("Each step fetches 20 single values from tensors (aten::item)")


@pytest.mark.parametrize(("count", "optimizer"), [(9, 0), (0, 30), (0, 0)])
def test_few_values_and_those_of_the_optimizer_are_silent(tmp_path, count, optimizer):
    assert items(tmp_path, count, optimizer=optimizer) == []
