import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.overtraining import overtraining
from tests.builders import falling, series


def plateau(reached, n=100, best=0.5):
    return [*np.linspace(1.5, best, reached + 1), *([best] * (n - reached - 1))]


def test_most_of_the_run_brought_nothing():
    (found,) = overtraining(series(plateau(20), seconds=36))
    assert (found.onset_step, found.confidence) == (20, Confidence.HIGH)
    assert str(found.impact.text) == "79.8% of the run (47 min) brought no better model."


@pytest.mark.parametrize(("best_at", "confidence"), [(42, Confidence.MEDIUM), (47, Confidence.LOW)])
def test_a_little_more_than_half_is_less_sure(best_at, confidence):
    (found,) = overtraining(series(plateau(best_at)))
    assert found.confidence is confidence


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", falling(100, end=0.3)),
        ("just after the middle", plateau(51)),
        ("nothing improved at all", [0.5] * 100),
        ("solved", plateau(20, best=0.0005)),
        ("still improving a little", [1.0 / (1 + 0.02 * i) for i in range(100)]),
    ],
)
def test_clear(reason, values):
    assert overtraining(series(values)) == []


def test_a_lucky_evaluation_of_a_run_that_still_improves_is_clear():
    for seed in range(40):
        noise = 1 + 0.15 * np.random.default_rng(seed).standard_normal(200)
        assert overtraining(series(np.linspace(1.5, 0.8, 200) * noise)) == []


def test_too_few_evaluations_are_said():
    with pytest.raises(Missing, match="15 are needed"):
        overtraining(series(plateau(5, n=14)))
