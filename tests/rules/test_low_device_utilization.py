from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.rules.low_device_utilization import low_device_utilization
from tests.trace_builders import E, capture, gpu_steps, judge, keras_steps, kineto_capture, kineto_event, kineto_steps, xplane_capture


def check(tmp_path, busy, idle_devices=()):
    planes = {**gpu_steps({"Compute": [E("gemm", 0, busy)]}), **{f"/device:{name}": {} for name in idle_devices}}
    return judge(low_device_utilization, capture(xplane_capture(tmp_path, planes)))


def test_a_device_that_is_mostly_idle(tmp_path):
    (found,) = check(tmp_path, 20)
    assert found.summary == "GPU:0 works in 20% of the step time of 100 ms."
    assert found.severity is Severity.INFO
    assert str(found.impact.text) == "Without that a step would take 20 ms: at most 5.0× faster."


def test_devices_that_never_work(tmp_path):
    (found,) = check(tmp_path, 90, idle_devices=("GPU:1", "GPU:2", "GPU:3"))
    assert found.summary == "1 of 4 devices work in the captured steps; GPU:0 works in 90% of the step time of 100 ms."


@pytest.mark.parametrize("busy", [51, 99])
def test_busy_devices_are_silent(tmp_path, busy):
    assert check(tmp_path, busy) == []


def test_devices_of_other_processes_are_silent(tmp_path):
    events = [kineto_event("gemm", 1001 + 100 * i, 90, "kernel", device=0) for i in range(6)]
    path = kineto_capture(tmp_path, [*kineto_steps([100] * 6, [1] * 6), *events], devices=[{"id": 0}, {"id": 1}])
    assert judge(low_device_utilization, capture(path)) == []


def test_a_capture_of_a_cpu_is_silent(tmp_path):
    assert judge(low_device_utilization, capture(xplane_capture(tmp_path, keras_steps([100] * 6, [1] * 6)))) == []
