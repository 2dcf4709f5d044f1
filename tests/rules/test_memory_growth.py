import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.memory_growth import memory_growth
from tb_advisor.rules.memory_spike import memory_spike
from tests.builders import series

NOISE = np.random.default_rng(0).normal(0, 1, 400)
LEAK = np.linspace(1000, 2000, 101)


def check(*curves, learning_curve=None):
    return memory_growth(curves, learning_curve)


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


def test_growth_is_no_spike():
    assert memory_spike((logged(LEAK),), ()) == []


def test_missing():
    with pytest.raises(Missing, match="no memory scalar"):
        check()
    with pytest.raises(Missing, match="vram has 7 finite points; 8 are needed"):
        check(logged([1.0] * 7, tag="vram"))
