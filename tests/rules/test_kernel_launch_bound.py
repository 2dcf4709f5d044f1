from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.rules.kernel_launch_bound import kernel_launch_bound
from tests.trace_builders import E, capture, gpu_steps, judge, kernels, xplane_capture


def check(tmp_path, work, **more):
    return judge(kernel_launch_bound, capture(xplane_capture(tmp_path, gpu_steps({"Compute": work}, **more))))


def test_kernels_that_are_shorter_than_their_launch(tmp_path):
    (found,) = check(tmp_path, kernels("add", 1000, start=0, every=0.1, duration=0.01))
    assert found.severity is Severity.WARNING
    assert found.summary == (
        "GPU:0 runs 1,000 kernels a step, half of them shorter than 10.0 µs; the gaps between them take 90% of the step time of 100 ms."
    )
    assert str(found.impact.text) == "Without that a step would take 10 ms: at most 10.0× faster."


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (kernels("add", 1000, start=0, every=0.03, duration=0.008), [Severity.INFO]),  # 22%
        (kernels("add", 1000, start=0, every=0.025, duration=0.008), []),  # 17%
        (kernels("add", 1000, start=0, every=0.1, duration=0.03), []),  # kernels longer than a launch
        (kernels("add", 90, start=0, every=1, duration=0.01), []),  # few kernels, long gaps
        ([E("gemm", 0, 99)], []),
    ],
)
def test_thresholds(tmp_path, work, expected):
    assert [d.severity for d in check(tmp_path, work)] == expected
