from __future__ import annotations

import pytest

from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Job
from tb_advisor.logdir.trace import HOST
from tests.trace_builders import E, capture, gpu_steps, keras_steps, xplane_capture

NCCL = "ncclDevKernel_AllReduce"


def devices(tmp_path, planes):
    return Evidence(Job("exp", {}, (capture(xplane_capture(tmp_path, planes)),)))["device_time"]


def test_what_a_device_does_in_a_step(tmp_path):
    work = {
        "MemcpyH2D": [E("MemcpyH2D", 0, 12)],
        "Compute": [E("ampere_sgemm_64x64", 10, 30), E("elementwise_kernel", 40, 10)],
        "Comm": [E(NCCL, 45, 25)],
    }
    (device,) = devices(tmp_path, gpu_steps(work, host=[E("log", 71, 28)], count=4))
    assert (device.device, device.kernels.tolist()) == ("GPU:0", [2, 2, 2])
    assert device.busy_ms.tolist() == pytest.approx([70] * 3)
    assert device.exposed_copy_ms.tolist() == pytest.approx([10] * 3)
    assert device.exposed_collective_ms.tolist() == pytest.approx([20] * 3)
    assert device.idle_ms.tolist() == pytest.approx([30] * 3)
    assert device.long_gap_ms.tolist() == pytest.approx([30] * 3)
    assert {gap.host for gap in device.longest_gaps} == {"log"}
    assert (device.matrix_ms, device.half_ms, device.elementwise_ms) == (pytest.approx(90), 0, pytest.approx(30))


def test_waiting_for_input_is_not_idle(tmp_path):
    (device,) = devices(tmp_path, gpu_steps({"Compute": [E("gemm", 40, 60)]}, wait=40, count=4))
    assert device.idle_ms.tolist() == pytest.approx([0] * 3)
    assert device.busy_share == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("name", "matrix", "half", "tf32"),
    [
        ("volta_sgemm_128x64_nn", 1, 0, 0),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5>", 1, 0, 0),
        ("volta_fp16_s884cudnn_fp16_256x64_ldg8_relu", 1, 1, 0),
        ("volta_h884gemm_64x64_ldg8_nn", 1, 1, 0),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 1, 1, 0),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc", 1, 0, 1),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", 1, 1, 0),
        ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1", 1, 1, 0),
        ("Cijk_Ailk_Bljk_SB_MT128x128x16", 1, 0, 0),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float>", 0, 0, 0),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>", 0, 0, 0),
        ("gemm_fusion_dot_general_1", 0, 0, 0),  # its name tells no type
        ("void at::native::elementwise_kernel<128, 2>", 0, 0, 0),
    ],
)
def test_precision_from_the_names_of_kernels(tmp_path, name, matrix, half, tf32):
    (device,) = devices(tmp_path, gpu_steps({"Compute": [E(name, 0, 1)]}, count=4))
    assert [round(ms / 3) for ms in (device.matrix_ms, device.half_ms, device.tf32_ms)] == [matrix, half, tf32]


def test_a_tpu_tells_its_work_twice(tmp_path):
    planes = dict(gpu_steps({}, count=4))
    planes["/device:TPU:0"] = {
        "XLA Modules": [E("jit_step", 100 * i, 90) for i in range(4)],
        "XLA Ops": [E("%fusion = f32[8] fusion()", 100 * i, 50) for i in range(4)],
    }
    (device,) = devices(tmp_path, planes)
    assert (device.device, device.busy_ms.tolist()) == ("TPU:0", pytest.approx([50] * 3))


def test_devices_without_work_and_cpus_are_left_out(tmp_path):
    planes = dict(gpu_steps({"Compute": [E("gemm", 0, 60)]}, count=4))
    assert len(devices(tmp_path / "a", {**planes, "/device:GPU:1": {}})) == 1
    assert devices(tmp_path / "b", {HOST: keras_steps([100] * 4, [1] * 4)[HOST]}) == ()
