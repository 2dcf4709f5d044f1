from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.rules.host_device_copies import host_device_copies
from tests.trace_builders import E, capture, gpu_steps, judge, kineto_capture, kineto_event, kineto_steps, xplane_capture


def check(tmp_path, copies, compute):
    return judge(host_device_copies, capture(xplane_capture(tmp_path, gpu_steps({"MemcpyH2D": copies, "Compute": compute}))))


def test_copies_that_nothing_hides(tmp_path):
    (found,) = check(tmp_path, [E("MemcpyH2D", 0, 20)], [E("gemm", 20, 78)])
    assert found.summary == "GPU:0 does nothing but copy from or to the host in 20% of the step time of 100 ms."
    assert found.severity is Severity.WARNING
    assert str(found.impact.text) == "Without that a step would take 80 ms: at most 1.2× faster."


@pytest.mark.parametrize(
    ("copy", "start", "expected"),
    [
        (E("MemcpyH2D", 0, 14.9), 20, [Severity.INFO]),
        (E("MemcpyD2H", 0, 5.1), 20, [Severity.INFO]),
        (E("MemcpyH2D", 0, 4.9), 20, []),
        (E("MemcpyH2D", 0, 60), 1, []),  # behind kernels
        (E("MemcpyD2D", 0, 18), 20, []),  # within the device
    ],
)
def test_thresholds(tmp_path, copy, start, expected):
    assert [d.severity for d in check(tmp_path, [copy], [E("gemm", start, 78)])] == expected


def test_memory_that_is_not_pinned_is_said(tmp_path):
    events = [kineto_event("Memcpy HtoD (Pageable -> Device)", 1001 + 100 * i, 10, "gpu_memcpy", device=0, stream=7) for i in range(6)]
    (found,) = judge(host_device_copies, capture(kineto_capture(tmp_path, [*kineto_steps([100] * 6, [0.1] * 6), *events])))
    assert found.summary.endswith("; 100% of the copied time is from memory that is not pinned.")
    assert found.fixes[0] == "pin-memory"


def test_arrays_of_a_tpu_that_live_on_the_host(tmp_path):
    planes = dict(gpu_steps({}))
    done = "%copy-done = f32[8]{0:T(8)} copy-done((f32[8]{0:T(8)}, f32[8]{0:T(8)S(5)}, u32[]) %copy-start)"
    planes["/device:TPU:0"] = {"XLA Ops": [e for i in range(8) for e in (E(done, 100 * i, 60), E("%fusion", 100 * i + 60, 39))]}
    assert [d.severity for d in judge(host_device_copies, capture(xplane_capture(tmp_path, planes)))] == [Severity.WARNING]
