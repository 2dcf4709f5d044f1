import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.memory import allocator_memory
from tb_advisor.evidence.trace_steps import marked_steps, read_capture
from tb_advisor.message import Missing
from tb_advisor.rules.memory_growth import memory_growth
from tb_advisor.rules.memory_spike import memory_spike
from tests.builders import series
from tests.trace_builders import allocator_steps, capture, xplane_capture

NOISE = np.random.default_rng(0).normal(0, 1, 400)
LEAK = np.linspace(1000, 2000, 101)


def check(*curves, learning_curve=None):
    return memory_growth(curves, learning_curve, ())


def logged(values, tag="system/gpu_memory_mb", **more):
    return series(values, tag=tag, **more)


def test_a_steady_leak_is_told_in_bytes_a_step():
    (found,) = check(logged(LEAK, step=10))
    assert found.summary == "system/gpu_memory_mb rose from 1,220 MB at step 220 to 1,960 MB (+61.7%) and rises on, 1 MB a step."
    assert (found.onset_step, found.last_step, found.confidence) == (220, 1000, Confidence.HIGH)
    assert str(found.impact.text) == "Another run of this length would need 745 MB more."


def test_a_leak_that_starts_late():
    (found,) = check(logged([*([1000.0] * 50), *np.linspace(1000, 1800, 50)]))
    assert 45 <= found.onset_step <= 55


def test_a_small_leak_of_few_epochs():
    (found,) = check(logged(np.linspace(800, 960, 12), tag="host_memory_mb"))
    assert found.confidence is Confidence.MEDIUM


def test_a_percentage_is_full_at_a_step():
    (found,) = check(logged(np.linspace(20, 60, 101), tag="memory_percent"))
    assert "0.4 % a step; at this pace it is full at step 200." in found.summary


def test_a_device_whose_size_a_capture_names_is_full_at_a_step(tmp_path):
    path = xplane_capture(tmp_path, allocator_steps([(100, 200)] * 3, capacity=4000))
    allocators = allocator_memory(marked_steps((read_capture(capture(path)),)))
    (found,) = memory_growth((logged(LEAK, tag="gpu/memory_MiB"),), None, allocators)
    assert "10 MiB a step; at this pace it is full at step 300." in found.summary
    (host,) = memory_growth((logged(LEAK, tag="rss_MiB"),), None, allocators)
    assert "full" not in host.summary


def test_steps_are_those_of_the_learning_curve():
    curve = series([1.0] * 10001, seconds=0.01, tag="loss")
    (found,) = check(logged(LEAK), learning_curve=curve)
    assert "0.1 MB a step" in found.summary


def test_several_curves_are_one_diagnosis():
    (found,) = check(logged(LEAK), logged(3 * LEAK - 1800, tag="rss_bytes"), logged([5.0] * 101, tag="vram"))
    assert found.summary.startswith("rss_bytes rose from")
    assert found.summary.endswith("; one more memory scalar grows too.")


def test_a_peak_since_the_start_only_rises():
    assert check(logged(LEAK, tag="max_memory_allocated"))[0].confidence is Confidence.LOW


HEALTHY = {
    "noise": 1000 + 20 * NOISE[:200],
    "warm-up, then a plateau": np.minimum(100 + 50 * np.arange(200), 1000) + NOISE[:200],
    "a warm-up that levels out": 1000 - 600 * np.exp(-np.arange(200) / 30),
    "one step up in the middle": np.repeat([1000.0, 1500.0], 60),
    "one late step up": np.repeat([1000.0, 1500.0], [90, 30]),
    "a sawtooth of garbage collection": np.tile(np.linspace(1000, 2000, 10), 12),
    "just below a tenth": np.linspace(1000, 1100, 100),
    "falling": LEAK[::-1],
    "a spike": np.where(np.arange(100) == 50, 3000, 1000),
    "zeros": np.zeros(60),
}


@pytest.mark.parametrize("reason", HEALTHY)
def test_clear(reason):
    assert check(logged(HEALTHY[reason])) == []


def captured(tmp_path, floors, *, capacity=None, peak=50):
    """Growth in a capture whose steps go from `peak` MiB above these MiB down to them."""
    used = [(floor, floor + peak, floor) for floor in floors]
    path = xplane_capture(tmp_path, allocator_steps(used, capacity=capacity))
    return memory_growth((), None, allocator_memory(marked_steps((read_capture(capture(path)),))))


def test_what_each_step_of_a_capture_keeps(tmp_path):
    (found,) = captured(tmp_path, range(100, 140, 3), capacity=1000)
    assert found.summary == (
        "GPU_0_bfc keeps 3 MiB more with every step: its lowest use rose from 100 MiB in step 11 to 136 MiB in step 23; "
        "at this pace 1,000 MiB are full at step 293."
    )
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert (found.onset_step, found.last_step, found.explains) == (11, 23, ())
    assert str(found.impact.text) == "1,000 more steps need 2.93 GiB more."


def test_a_leak_of_six_steps_on_a_device_that_is_almost_full(tmp_path):
    (found,) = captured(tmp_path, [100, 101, 102, 103, 104, 105, 106], capacity=160)
    assert (found.confidence, found.explains) == (Confidence.MEDIUM, ("memory-near-limit",))


@pytest.mark.parametrize(
    "floors",
    [
        [100] * 8,
        [60, 100, 100, 100, 100, 100, 100, 100],  # the first step allocates what stays
        [100, 100, 100, 100, 140, 140, 140, 140],  # a second model
        [100, 130, 150, 160, 164, 165, 165, 165],  # a queue that fills
        [100, 104, 108, 112, 100, 104, 108, 112],  # a list that is emptied
        [100, 101, 100, 102, 101, 100, 102, 101],  # batches of changing size
        [140, 130, 120, 110, 100, 90, 80, 70],
    ],
)
def test_healthy_steps_are_silent(tmp_path, floors):
    assert captured(tmp_path, floors, capacity=1000) == []


def test_just_below_a_thousandth_of_the_use_a_step(tmp_path):
    assert captured(tmp_path, range(9000, 9012), peak=2000) == []
    assert len(captured(tmp_path, range(9000, 9024, 2), peak=900, capacity=10**5)) == 0
    assert len(captured(tmp_path, range(900, 912), peak=50)) == 1


def test_few_steps_are_not_judged(tmp_path):
    with pytest.raises(Missing, match="cover 5 whole steps; 6 are needed"):
        captured(tmp_path, [100, 110, 120, 130, 140])


def test_growth_is_no_spike():
    assert memory_spike((logged(LEAK),), ()) == []


def test_missing():
    with pytest.raises(Missing, match="neither a memory scalar"):
        check()
    with pytest.raises(Missing, match="vram has 7 finite points; 8 are needed"):
        check(logged([1.0] * 7, tag="vram"))
