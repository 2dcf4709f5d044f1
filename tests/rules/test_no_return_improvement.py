import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.no_return_improvement import no_return_improvement
from tests.builders import series

NOISE = np.random.default_rng(0).standard_normal(200)


def check(values, first=0):
    return no_return_improvement(series(values, tag="rollout/ep_rew_mean", step=100, first=first))


def test_a_flat_return():
    (found,) = check(-0.5 + 0.1 * NOISE)
    assert found.confidence is Confidence.MEDIUM
    assert found.summary.startswith("The mean return did not improve: ")


def test_a_resumed_run_may_have_been_good_before():
    assert check(-0.5 + 0.1 * NOISE, first=5_650_000)[0].confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("a slow improvement below the noise", np.linspace(0, 3, 200) + NOISE),
        ("learned at once", [-500.0, -400.0, -200.0, *(200 + 10 * NOISE[:100])]),
        ("a dip, then better", np.interp(np.arange(100), [0, 70, 99], [21, 15, 41]) + 0.1 * NOISE[:100]),
        ("good for a while", np.where((np.arange(200) > 100) & (np.arange(200) < 150), 4, 0) + NOISE),
        ("falling", np.linspace(5, 0, 200) + NOISE),
    ],
)
def test_clear(reason, values):
    assert check(values) == []


def test_a_placeholder_is_said():
    with pytest.raises(Missing, match=r"hardly changes \(1\)"):
        check([1.0] * 100)
    with pytest.raises(Missing, match="50 are needed"):
        check(NOISE[:30])
