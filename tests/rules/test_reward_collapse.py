import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.reward_collapse import reward_collapse
from tests.builders import series

NOISE = np.random.default_rng(0).standard_normal(200)


def check(values):
    return reward_collapse(series(values, tag="rollout/ep_rew_mean", step=100))


def through(*points, n=100):
    """A return that goes straight from point to point, with a little noise."""
    return np.interp(np.linspace(0, len(points) - 1, n), np.arange(len(points)), points) + NOISE[:n]


def test_a_return_that_falls_back_to_its_start():
    (found,) = check(through(20, 200, 200, 30, 25, 25))
    assert (found.confidence, found.last_step) == (Confidence.HIGH, 9900)
    assert 1500 <= found.onset_step <= 4200
    assert found.summary.startswith("The mean return was highest around step ")


def test_half_of_it_is_gone():
    (found,) = check(through(20, 200, 200, 95, 95, 95))
    assert found.confidence is Confidence.MEDIUM


def test_an_environment_that_changed_is_told_with_low_confidence():
    (found,) = check(through(20, 200, 200, -400, -400, -400))
    assert found.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("learning", through(20, 60, 200)),
        ("a plateau", through(20, 200, 200, 200)),
        ("a third is lost", through(20, 200, 200, 150, 150)),
        ("a dip that recovers", through(20, 200, 30, 150, 200)),
        ("on its way up again", through(20, 200, 0, 20, 60, 80)),
        ("the best at the end", through(20, 20, 20, 20, 200, 100)),
        ("noise", 20 * NOISE),
        ("constant", [1.0] * 100),
        ("a slow start below the first returns", through(21, 16, 15, 18, 41)),
    ],
)
def test_clear(reason, values):
    assert check(values) == []


def test_few_points_are_said():
    with pytest.raises(Missing, match="20 are needed"):
        check([1.0, 2.0])
