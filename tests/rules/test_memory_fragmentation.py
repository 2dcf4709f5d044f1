from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.memory import allocator_memory
from tb_advisor.evidence.trace_steps import marked_steps, read_capture
from tb_advisor.message import Missing
from tb_advisor.rules.memory_fragmentation import memory_fragmentation
from tests.trace_builders import allocator_steps, capture, keras_steps, kineto_capture, kineto_memory, kineto_steps, xplane_capture

MIB = 2**20


def captured(path):
    return memory_fragmentation(allocator_memory(marked_steps((read_capture(capture(path)),))))


def on_gpu(tmp_path, fragmentation, *, top=800, capacity=1000):
    return captured(xplane_capture(tmp_path, allocator_steps([(300, top)] * 4, capacity=capacity, fragmentation=fragmentation)))


def on_torch(tmp_path, total, reserved, size=1000):
    events = [*kineto_steps([10] * 4, [1] * 4), kineto_memory(1015, total * MIB, reserved=reserved * MIB)]
    events.append(kineto_memory(1025, 10 * MIB, reserved=reserved * MIB))  # between two steps little is in use
    return captured(kineto_capture(tmp_path, events, devices=[{"id": 0, "totalGlobalMem": size * MIB}]))


def test_free_memory_in_pieces(tmp_path):
    (found,) = on_gpu(tmp_path, 0.6)
    assert found.summary == (
        "At its fullest moment, in step 10, GPU_0_bfc has 200 MiB of 1,000 MiB free, 60% of it outside the largest piece."
    )
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.MEDIUM, 10)
    assert str(found.impact.text) == "A request for more than 80 MiB fails although 200 MiB are free."


def test_held_memory_that_fits_no_request(tmp_path):
    (found,) = on_torch(tmp_path, total=400, reserved=900)
    assert found.summary == (
        "At its fullest moment, in step 6, GPU:0 holds 900 MiB of 1,000 MiB and uses 400 MiB: "
        "55.6% of what it holds is in pieces that fit no request."
    )
    assert (found.severity, str(found.impact.text)) == (Severity.WARNING, "500 MiB more could be used.")


@pytest.mark.parametrize(("fragmentation", "severity"), [(0.3, Severity.INFO), (0.49, Severity.INFO), (0.5, Severity.WARNING)])
def test_from_where_on_it_matters(tmp_path, fragmentation, severity):
    assert [d.severity for d in on_gpu(tmp_path, fragmentation)] == [severity]


def test_just_below(tmp_path):
    assert on_gpu(tmp_path, 0.29) == []
    assert on_torch(tmp_path, total=640, reserved=900) == []


def test_in_an_empty_device_it_means_nothing(tmp_path):
    assert on_gpu(tmp_path, 0.9, top=690) == []
    assert on_torch(tmp_path, total=300, reserved=690) == []


def test_nothing_to_look_at(tmp_path):
    with pytest.raises(Missing, match="a capture of a CPU holds no allocator events"):
        captured(xplane_capture(tmp_path, keras_steps([20] * 4, [1] * 4)))
    with pytest.raises(Missing, match="says neither how much memory there is nor how it is cut up"):
        on_gpu(tmp_path, 0.9, capacity=None)
