import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.learning_rate_jump import learning_rate_jump
from tests.builders import series


def check(values, finished=True):
    return learning_rate_jump(series(values, step=10, tag="lr"), finished)


def test_a_jump_in_mid_run_is_found():
    (found,) = check([2e-3] * 50 + [0.4] * 50)
    assert (found.onset_step, found.last_step, found.confidence) == (500, 990, Confidence.HIGH)
    assert found.summary == "The learning rate jumped to 0.4 at step 500, 200 times its highest value before (0.002) and stays high."


def test_a_jump_that_comes_back_ends_there():
    (found,) = check([2e-3] * 50 + [0.02] * 2 + [2e-3] * 50)
    assert (found.onset_step, found.last_step, found.confidence) == (500, 520, Confidence.MEDIUM)
    assert found.summary.endswith("it was back by step 520.")


def test_a_warm_up_longer_than_the_run_is_found():
    (found,) = check(np.linspace(1e-7, 5e-5, 200))
    assert (found.onset_step, found.confidence) == (0, Confidence.HIGH)
    assert "still rising at the last step, 1,990" in found.summary


def test_a_rate_that_grows_in_every_step_is_found():
    (found,) = check(6e-3 * 1.22 ** np.arange(40))
    assert found.onset_step == 0


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("constant", [1e-3] * 100),
        ("warm-up and decay", [*np.linspace(0, 1e-3, 10), *np.linspace(1e-3, 0, 90)]),
        ("a coarse warm-up", [1e-6, 5e-4, 1e-3, *np.linspace(1e-3, 0, 47)]),
        ("a warm-up that holds a low rate", [1e-5] * 8 + [1e-3] * 92),
        ("step drops", [1e-2] * 30 + [1e-3] * 30 + [1e-4] * 30),
        ("warm restarts", [*np.linspace(1e-3, 1e-7, 30)] * 3),
        ("a triangular cycle that ends high", [*np.linspace(1e-4, 1e-3, 20), *np.linspace(1e-3, 1e-4, 20), *np.linspace(1e-4, 1e-3, 20)]),
        ("one cycle", [*np.linspace(4e-5, 1e-3, 30), *np.linspace(1e-3, 4e-9, 70)]),
        ("a rise just below eight times", [1e-3] * 50 + [7.5e-3] * 50),
        ("a small rise to the end", np.linspace(1e-3, 2.5e-3, 100)),
        ("a backbone that is frozen first", [0.0] * 50 + [1e-4] * 50),
    ],
)
def test_clear(reason, values):
    assert check(values) == []


def test_a_run_that_goes_on_may_still_be_in_its_warm_up():
    assert check(np.linspace(1e-7, 5e-5, 200), finished=False) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="5 are needed"):
        check([1e-3] * 4)
