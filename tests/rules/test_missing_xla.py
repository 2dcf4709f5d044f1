from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.missing_xla import missing_xla
from tests.trace_builders import E, capture, gpu_steps, judge, kernels, xplane_capture

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"


def check(tmp_path, *work, device="GPU:0"):
    return judge(missing_xla, capture(xplane_capture(tmp_path, gpu_steps({"Compute": list(work)}, device=device))))


def test_many_kernels_that_do_little(tmp_path):
    (found,) = check(tmp_path, *kernels(ADD, 300, start=0, every=0.1, duration=0.1), E("gemm", 30, 60))
    assert found.summary == (
        "Kernels that do little with each value take 30% of the step time of 100 ms on GPU:0; of 301 kernels a step none is made by "
        "a compiler."
    )
    assert found.severity is Severity.INFO


@pytest.mark.parametrize(
    "work",
    [
        kernels(ADD, 300, start=0, every=0.1, duration=0.04),  # 12%
        kernels(ADD, 190, start=0, every=0.3, duration=0.2),  # few
        [*kernels(ADD, 300, start=0, every=0.1, duration=0.1), E("loop_multiply_fusion", 40, 1)],
        [*kernels(ADD, 300, start=0, every=0.1, duration=0.1), E("triton_poi_fused_add_0", 40, 1)],
    ],
)
def test_silent(tmp_path, work):
    assert check(tmp_path, *work) == []


def test_a_cpu_is_not_applicable(tmp_path):
    with pytest.raises(Missing, match="no capture of a GPU"):
        check(tmp_path)
