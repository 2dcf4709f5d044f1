import numpy as np
import pytest

from tb_advisor.message import Missing
from tb_advisor.series import Series
from tests.builders import FIRST_SECOND, series
from tests.evidence.test_losses import evidence


def at_wall_times(seconds, tag="loss", steps=None):
    seconds = FIRST_SECOND + np.asarray(seconds, dtype=np.float64)
    steps = np.arange(len(seconds), dtype=np.int64) if steps is None else np.asarray(steps, dtype=np.int64)
    return Series(steps, seconds, np.ones(len(seconds)), "exp", tag)


def pace(*curves):
    return evidence(*curves)["pace"]


def test_logged_throughput_is_turned_into_time():
    found = pace(series([100.0, 50.0] * 10, run="exp", tag="perf/samples_per_sec"), series([1.0] * 500, run="exp"))
    assert (found.source, found.times.tag) == ("throughput", "perf/samples_per_sec")
    assert found.times.values[:2].tolist() == [0.01, 0.02]


def test_a_logged_step_time_is_taken_as_it_is():
    found = pace(series([0.2, 0.3, 0.2, 0.3, 0.2, 0.3, 0.2, 0.3], run="exp", tag="step_time"))
    assert (found.source, found.times.values[1]) == ("step_time", 0.3)


@pytest.mark.parametrize(
    "curve",
    [
        series([100.0] * 30, run="exp", tag="eval/samples_per_second"),  # an evaluation
        series(range(1, 31), run="exp", tag="duration"),  # a clock
        series([100.0] * 5, run="exp", tag="samples_per_second"),  # too few
        series([0.0] * 30, run="exp", tag="samples_per_second"),
    ],
)
def test_what_tells_no_pace_leaves_wall_times(curve):
    found = pace(curve, at_wall_times(np.arange(30) * 2.0, steps=np.arange(30) * 10))
    assert found.source == "wall_times"
    assert found.times.values[0] == pytest.approx(0.2 if found.times.tag == "loss" else 1.0)


def test_an_average_since_the_start_gives_its_wall_times():
    fps = at_wall_times(np.arange(40.0), "time/fps", steps=np.arange(1, 41) * 128)
    found = pace(fps, series(range(40), run="exp", tag="rollout/ep_rew_mean"))
    assert found.source == "wall_times"
    assert found.times.values[0] == pytest.approx(1 / 128)


def test_episodes_that_take_longer_are_no_slow_down():
    with pytest.raises(Missing, match="an episode that takes longer"):
        pace(series(range(40), run="exp", tag="rollout/ep_rew_mean"), series([1.0] * 40, run="exp", tag="policy_loss"))


def test_few_events_are_said():
    with pytest.raises(Missing, match="nor 20 events of one tag"):
        pace(series([1.0] * 10, run="exp"))
    with pytest.raises(Missing, match="nor 20 events of one tag"):
        pace()


def test_what_another_curve_logged_in_a_pause_shortens_it():
    often = at_wall_times([*np.arange(50.0), *(500 + np.arange(50.0))], "a")
    alone, together = evidence(often), evidence(often, at_wall_times([200.0], "b"))
    assert (alone["longest_pause"].at, alone["longest_pause"].seconds) == (49, 451)
    assert together["longest_pause"].seconds == 300


def test_a_pause_needs_points():
    with pytest.raises(Missing, match="no scalar has 40 points"):
        evidence(at_wall_times(np.zeros(60)))["longest_pause"]
