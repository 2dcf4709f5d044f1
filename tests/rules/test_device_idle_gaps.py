from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.logdir.trace import HOST
from tb_advisor.rules.device_idle_gaps import device_idle_gaps
from tests.trace_builders import E, capture, gpu_steps, judge, kernels, xplane_capture


def check(tmp_path, work, **more):
    return judge(device_idle_gaps, capture(xplane_capture(tmp_path, gpu_steps({"Compute": work}, **more))))


def test_a_gap_in_every_step(tmp_path):
    (found,) = check(tmp_path, [E("gemm", 0, 75)], host=[E("save_image", 76, 23), E("write", 80, 2)])
    assert found.summary == (
        "GPU:0 stops for a millisecond or more at a time, in 25% of the step time of 100 ms; a long gap lasts 25 ms; "
        "the host is in save_image then."
    )
    assert found.severity is Severity.INFO
    assert str(found.impact.text) == "Without that a step would take 75 ms: at most 1.3× faster."


@pytest.mark.parametrize(
    ("work", "more"),
    [
        ([E("gemm", 0, 91)], {}),  # 9%
        ([E("gemm", 50, 49.5)], {"wait": 50}),  # input
        (kernels("add", 110, start=0, every=0.9, duration=0.1), {}),  # short gaps
        ([E("gemm", 0, 50)], {"host": [E("GpuCompiler::RunBackend", 50, 49.5)]}),
    ],
)
def test_silent(tmp_path, work, more):
    assert check(tmp_path, work, **more) == []


def test_one_checkpoint_is_no_habit(tmp_path):
    planes = dict(gpu_steps({"Compute": [E("gemm", 0, 99.5)]}, host=[E("train_step", 0, 99)]))
    (name, work), *_ = planes["/device:GPU:0"].items()
    planes["/device:GPU:0"] = {name: [*work[:4], *work[5:]]}
    assert HOST in planes
    assert judge(device_idle_gaps, capture(xplane_capture(tmp_path, planes))) == []
