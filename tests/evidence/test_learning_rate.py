import numpy as np
import pytest

from tb_advisor.evidence.learning_rate import comes_back, learning_rate, learning_rates
from tb_advisor.evidence.roles import roles
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tests.builders import series


def rates_of(**values):
    scalars = {tag: series(points, tag=tag) for tag, points in values.items()}
    return learning_rates(roles(Job("run", {"run": Run("run", scalars, {}, "", (), 0, ())})))


def test_a_group_that_is_trained_stands_for_the_job():
    rates = rates_of(**{"lr-Adam/pg1": [0.0] * 9, "lr-Adam/pg2": [1e-3] * 9})
    assert [rate.tag for rate in rates] == ["lr-Adam/pg2", "lr-Adam/pg1"]
    assert learning_rate(rates).tag == "lr-Adam/pg2"


def test_the_first_of_several_groups_stands_for_the_job():
    assert rates_of(**{"x/lr2": [0.1, 0.01], "x/lr0": [0.001, 0.01], "x/lr1": [0.001, 0.01]})[0].tag == "x/lr0"


def test_a_single_value_among_hyperparameters_comes_last():
    assert rates_of(learning_rate=[1e-3], lr=[1e-3, 5e-4, 1e-4])[0].tag == "lr"


def test_points_that_are_not_finite_are_left_out():
    assert rates_of(lr=[1e-3, float("nan"), 1e-4])[0].values.tolist() == [1e-3, 1e-4]


def test_none_is_said():
    assert rates_of(loss=[1.0, 0.5]) == ()
    with pytest.raises(Missing, match="role of a learning rate"):
        learning_rate(())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-3] * 50, False),
        (np.linspace(1e-3, 0, 50), False),
        ([*np.linspace(0, 1e-3, 10), *np.linspace(1e-3, 0, 40)], False),
        ([*np.linspace(1e-3, 1e-4, 20), *np.linspace(1e-3, 1e-4, 20)], True),
        ([0.0], False),
    ],
)
def test_restarts_and_cycles_come_back(values, expected):
    assert comes_back(series(values)) is expected
