from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.communication_bound import communication_bound
from tests.trace_builders import E, capture, gpu_steps, judge, kineto_capture, kineto_event, kineto_steps, xplane_capture

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def check(tmp_path, collective, compute):
    return judge(communication_bound, capture(xplane_capture(tmp_path, gpu_steps({"Comm": [collective], "Compute": [compute]}))))


def test_collectives_that_nothing_hides(tmp_path):
    (found,) = check(tmp_path, E(NCCL, 40, 58), E("gemm", 0, 60))
    assert found.summary == (
        "GPU:0 only exchanges data with other devices in 38% of the step time of 100 ms, longest in "
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL (1 collectives a step)."
    )
    assert found.severity is Severity.WARNING
    assert str(found.impact.text) == "Without that a step would take 62 ms: at most 1.6× faster."


@pytest.mark.parametrize(
    ("exposed", "expected"), [(30.5, [Severity.WARNING]), (29.5, [Severity.INFO]), (10.5, [Severity.INFO]), (9.5, []), (0, [])]
)
def test_thresholds(tmp_path, exposed, expected):
    assert [d.severity for d in check(tmp_path, E(NCCL, 20, 40 + exposed), E("gemm", 0, 60))] == expected


def test_pytorch(tmp_path):
    events = [kineto_event("gemm", 1001 + 100 * i, 50, "kernel", device=0, stream=7) for i in range(6)]
    events += [kineto_event(NCCL, 1041 + 100 * i, 50, "kernel", device=0, stream=20) for i in range(6)]
    (found,) = judge(communication_bound, capture(kineto_capture(tmp_path, [*kineto_steps([100] * 6, [0.1] * 6), *events])))
    assert found.severity is Severity.WARNING


def test_a_tpu(tmp_path):
    planes = dict(gpu_steps({}))
    ops = (("%fusion.1 = f32[8] fusion()", 0, 55), ("%all-reduce.3 = f32[8] all-reduce(f32[8] %fusion.1)", 55, 40))
    planes["/device:TPU:0"] = {"XLA Ops": [E(name, 100 * i + start, duration) for i in range(8) for name, start, duration in ops]}
    assert [d.severity for d in judge(communication_bound, capture(xplane_capture(tmp_path, planes)))] == [Severity.WARNING]


def test_one_device_is_not_applicable(tmp_path):
    with pytest.raises(Missing, match="no collective of several devices"):
        check(tmp_path, E("memset", 0, 1), E("gemm", 0, 60))


def test_waiting_for_a_slower_device_is_not_communication(tmp_path):
    slow = gpu_steps({"Comm": [E(NCCL, 90, 9)], "Compute": [E("gemm", 0, 90)]})
    fast = gpu_steps({"Comm": [E(NCCL, 50, 49)], "Compute": [E("gemm", 0, 50)]}, device="GPU:1")
    assert judge(communication_bound, capture(xplane_capture(tmp_path, {**fast, **slow}))) == []
