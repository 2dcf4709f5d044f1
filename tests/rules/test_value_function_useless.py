import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.value_function_useless import value_function_useless
from tests.builders import series

NOISE = 0.05 * np.random.default_rng(0).standard_normal(100)


def check(values):
    return value_function_useless(series(values, tag="train/explained_variance", step=2048))


def test_below_zero_for_most_of_the_run():
    (found,) = check(-0.3 + NOISE)
    assert (found.severity, found.confidence, found.onset_step) == (Severity.INFO, Confidence.HIGH, 25 * 2048)
    assert found.summary.startswith("Explained variance is at or below zero at 100% of the points since step 51,200")


def test_a_few_good_points():
    assert check(np.where(np.arange(100) % 6 == 0, 0.2, -0.3))[0].confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(-1, 0.9, 100),  # learns
        NOISE,  # around zero
        [-3.6e9, -1.4e6, *np.linspace(0.1, 0.8, 98)],  # the first points of an untrained one
        [np.nan] * 50 + [0.5] * 50,
    ],
)
def test_clear(values):
    assert check(values) == []


def test_returns_without_variance_are_said():
    with pytest.raises(Missing, match="0 finite points; 20 are needed"):
        check([np.nan] * 100)
