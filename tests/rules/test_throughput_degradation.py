import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.speed import Pace
from tb_advisor.rules.throughput_degradation import throughput_degradation
from tb_advisor.series import Series
from tests.builders import FIRST_SECOND

NOISE = 1 + 0.05 * np.random.default_rng(0).standard_normal(200)
BUSY = np.random.default_rng(1).uniform(size=200)


def check(times, source="step_time", tag="step_time", step=1):
    times = np.asarray(times, dtype=np.float64)
    steps = step * np.arange(len(times), dtype=np.int64)
    return throughput_degradation(Pace(Series(steps, FIRST_SECOND + np.cumsum(times), times, "run", tag), source))


def grown(ratio, at=0.3, n=200):
    progress = np.arange(n) / n
    return 0.1 * (1 + (ratio - 1) * np.clip((progress - at) / (0.8 - at), 0, 1)) * NOISE[:n]


def jumped(ratio, at=100, n=200):
    return 0.1 * np.where(np.arange(n) < at, 1, ratio) * NOISE[:n]


def test_a_step_time_that_jumps():
    (found,) = check(jumped(3))
    assert found.summary == "step_time rose from 0.1 to 0.298 (3.0× slower) at step 100."
    assert (found.onset_step, found.last_step, found.confidence) == (100, 199, Confidence.HIGH)
    assert str(found.impact.text) == "50.6% of the run (19.7 s) went into slower steps."


def test_a_throughput_that_falls_steadily():
    (found,) = check(grown(4), "throughput", "samples_per_sec", step=10)
    assert found.summary.startswith("samples_per_sec fell from 9.95 to 2.53 (3.9× slower), beginning at step ")
    assert 500 <= found.onset_step <= 700


@pytest.mark.parametrize("source", ["throughput", "wall_times"])
def test_a_steady_ramp_under_noise(source):
    noise = 1 + 0.2 * np.random.default_rng(2).standard_normal(200)
    (found,) = check(0.1 * np.linspace(1, 3, 200) * noise, source)
    assert found.confidence is Confidence.MEDIUM


def test_wall_times_alone_give_less_confidence():
    (found,) = check(jumped(3), "wall_times", "loss")
    assert found.confidence is Confidence.MEDIUM
    assert found.summary.endswith("it became slow at step 100. No throughput is logged: this is from wall times of loss.")


def test_a_few_epochs():
    (found,) = check([0.3, 0.1, 0.1, 0.11, 0.1, 0.12, 0.13, 0.15, 0.16, 0.18, 0.2, 0.21, 0.22, 0.24])
    assert found.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("reason", "times"),
    [
        ("steady", 0.1 * NOISE),
        ("just below", jumped(1.6)),
        ("compilation at the start", [5.0, *([0.1] * 100)]),
        ("faster", jumped(0.3)),
        ("slow for a while", [*([0.1] * 80), *([0.5] * 40), *([0.1] * 80)]),
        ("a busy machine: some steps are as fast as before", 0.1 * NOISE * np.where((np.arange(200) > 100) & (BUSY < 0.7), 4, 1)),
        ("load that comes and goes", 0.1 * np.repeat([1, 1.4, 1, 1, 2.5, 1, 2.5, 1, 2.5, 1.9, 1.7, 2], 20)),
        ("noisy all along", 0.1 * np.exp(1.2 * (BUSY - 0.5) * 2) * np.linspace(1, 1.8, 200)),
        ("long evaluations", 0.1 * NOISE * np.where(np.arange(200) % 20 == 0, 30, 1)),
    ],
)
def test_clear(reason, times):
    assert check(times) == []


def test_the_shortest_series_there_is():
    assert check([0.1] * 8) == []
