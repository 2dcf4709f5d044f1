from __future__ import annotations

import json

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.logdir.captures import Capture
from tb_advisor.message import Missing
from tb_advisor.rules.straggler_device import straggler_device
from tests.trace_builders import E, capture, gpu_steps, judge, keras_steps, kineto_event, kineto_steps, put, xplane_capture

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def check(tmp_path, computing):
    """A host for each of these compute times; all wait in the collective until the slowest is done, 95 ms into the step."""
    paths = []
    for i, ms in enumerate(computing):
        planes = gpu_steps({"Compute": [E("gemm", 0, ms)], "Comm": [E(NCCL, ms, 100 - ms)]})
        paths.append(xplane_capture(tmp_path, planes, host=f"worker{i}"))
    return judge(straggler_device, Capture("exp/2026_12_01_12_00_00", "exp", tuple(paths)))


def test_one_of_four_hosts(tmp_path):
    (found,) = check(tmp_path, [60, 61, 95, 60])
    assert found.summary == "worker2 GPU:0 needs 95 ms for its part of a step, 1.58× the 60 ms that is usual among 3 others."
    assert found.severity is Severity.WARNING
    assert str(found.impact.text) == "Without that a step would take 65 ms: at most 1.5× faster."


@pytest.mark.parametrize(
    ("computing", "expected"),
    [
        ([60, 60, 75.5, 60], [Severity.WARNING]),
        ([60, 60, 74, 60], [Severity.INFO]),
        ([60, 60, 66.5, 60], [Severity.INFO]),
        ([60, 60, 65, 60], []),
        ([60, 95], [Severity.INFO]),  # among two the usual is not known
        ([4, 4, 4.9, 4], []),  # less than a millisecond
        ([60, 60, 40, 60], []),  # a fast one
    ],
)
def test_thresholds(tmp_path, computing, expected):
    assert [d.severity for d in check(tmp_path, computing)] == expected


def test_a_host_that_waits_for_input(tmp_path):
    waits = (1, 1, 41)
    paths = tuple(xplane_capture(tmp_path, keras_steps([60 + w] * 6, [w] * 6), host=f"host{i}") for i, w in enumerate(waits))
    (found,) = judge(straggler_device, Capture("exp/2026_12_01_12_00_00", "exp", paths))
    assert found.summary.startswith("host2 needs 101 ms")
    assert found.summary.endswith("; it waits for input that long.")


def test_ranks_of_pytorch(tmp_path):
    captures = []
    for rank, ms in enumerate((50, 90, 50)):
        events = kineto_steps([100] * 6, [0.1] * 6)
        events += [kineto_event("gemm", 1000 + 100 * i, ms, "kernel", device=rank, stream=7) for i in range(6)]
        events += [kineto_event(NCCL, 1000 + 100 * i + ms, 100 - ms, "kernel", device=rank, stream=20) for i in range(6)]
        head = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": events}
        captures.append(capture(put(tmp_path / f"rank{rank}.1.pt.trace.json", json.dumps(head))))
    (found,) = judge(straggler_device, *captures)
    assert found.summary.startswith("rank 1 GPU:1 needs 90 ms")


def test_devices_of_one_host_with_the_same_work_are_silent(tmp_path):
    planes = {
        **gpu_steps({"Compute": [E("gemm", 0, 60)]}),
        **dict([list(gpu_steps({"Compute": [E("gemm", 0, 60)]}, device="GPU:1").items())[1]]),
    }
    assert judge(straggler_device, capture(xplane_capture(tmp_path, planes))) == []


def test_one_device_is_not_applicable(tmp_path):
    with pytest.raises(Missing, match="show one device or host"):
        check(tmp_path, [60])
