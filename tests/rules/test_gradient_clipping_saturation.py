import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.gradient_clipping_saturation import gradient_clipping_saturation
from tests.builders import series


def clipped(usual, n=100, ceiling=1.0, seed=0):
    return np.minimum(usual * np.random.default_rng(seed).lognormal(0, 0.5, n), ceiling)


def found_in(values, step=1):
    return gradient_clipping_saturation(series(values, step=step, tag="grad_norm"))


def test_a_norm_at_its_ceiling_in_most_steps_is_found():
    (found,) = found_in(clipped(3.0), step=5)
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HIGH)
    assert found.summary == "The gradient norm sits at its ceiling of 1 in 99% of the logged steps."
    assert found.exhibits[0].marks[0].label.values["ceiling"] == 1.0


def test_rounding_and_averages_of_a_few_steps_stay_at_the_ceiling():
    (found,) = found_in(clipped(1.15, n=200) * np.random.default_rng(1).uniform(0.997, 1.0, 200))
    assert found.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", np.random.default_rng(0).lognormal(0, 0.5, 100)),
        ("clipped in a third of the steps", clipped(0.8)),
        ("clipped in half of the steps", [1.0] * 50 + [0.5] * 50),
        ("not measured", [0.0] * 100),
        ("one outlier above a steady level", [1.0] * 60 + [9.0] + [1.0] * 39),
    ],
)
def test_clear(reason, values):
    assert found_in(values) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="20 are needed"):
        found_in([1.0] * 19)
