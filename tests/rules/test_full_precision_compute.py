from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.full_precision_compute import full_precision_compute
from tests.trace_builders import E, capture, gpu_steps, judge, kineto_capture, kineto_event, kineto_steps, xplane_capture

SGEMM, HALF, TF32 = "ampere_sgemm_128x64_tn", "ampere_fp16_s16816gemm_fp16_128x64", "sm80_xmma_fprop_implicit_gemm_tf32f32_f32"


def check(tmp_path, *work, capability=8):
    stats = {"/device:GPU:0": {"compute_cap_major": capability, "device_type_string": "NVIDIA A100"}}
    return judge(full_precision_compute, capture(xplane_capture(tmp_path, gpu_steps({"Compute": list(work)}), plane_stats=stats)))


def test_multiplications_in_32_bits(tmp_path):
    (found,) = check(tmp_path, E(SGEMM, 0, 60), E("relu", 60, 10))
    assert found.summary == (
        "32-bit kernels of matrices take 60% of the step time of 100 ms on GPU:0 (NVIDIA A100); 0% of the matrix time is in 16 bits."
    )
    assert found.severity is Severity.INFO
    assert str(found.impact.text) == "Without that a step would take 40 ms: at most 2.5× faster."
    assert found.fixes == ("mixed-precision", "allow-tf32", "sizes-divisible-by-8")


def test_tf32_is_said(tmp_path):
    (found,) = check(tmp_path, E(TF32, 0, 60))
    assert found.summary.startswith("TF32 kernels of matrices take 60%")
    assert "allow-tf32" not in found.fixes


@pytest.mark.parametrize(
    "work",
    [
        (E(HALF, 0, 60),),
        (E(SGEMM, 0, 53), E(HALF, 53, 6)),  # a tenth in 16 bits
        (E(SGEMM, 0, 19), E("relu", 20, 60)),  # few matrices
        (E(SGEMM, 0, 49),),  # the device waits for something else
        (E("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64", 0, 60),),  # bfloat16 of AMD
        (E("fusion_12", 0, 90),),  # a name that tells no type
    ],
)
def test_silent(tmp_path, work):
    assert check(tmp_path, *work) == []


def test_pytorch_tells_the_capability_too(tmp_path):
    events = [kineto_event("volta_sgemm_64x64_nt", 1001 + 100 * i, 70, "kernel", device=0, stream=7) for i in range(6)]
    devices = [{"id": 0, "name": "Tesla V100", "computeMajor": 7}]
    (found,) = judge(
        full_precision_compute, capture(kineto_capture(tmp_path, [*kineto_steps([100] * 6, [0.1] * 6), *events], devices=devices))
    )
    assert found.fixes == ("mixed-precision", "sizes-divisible-by-8")


def test_a_device_without_tensor_cores_is_not_applicable(tmp_path):
    with pytest.raises(Missing, match="no GPU with tensor cores"):
        check(tmp_path, E(SGEMM, 0, 60), capability=6)
