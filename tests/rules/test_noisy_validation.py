import numpy as np
import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.noisy_validation import noisy_validation
from tests.builders import falling, series


def check(values):
    return noisy_validation(series(values, tag="val_loss"))


@pytest.mark.parametrize("noise", [0.25, 0.4])
def test_jitter_as_large_as_the_differences_is_told(noise):
    (found,) = check(falling(40, start=2.0, end=1.0, noise=noise))
    assert found.severity is Severity.INFO
    assert found.summary.startswith("Validation loss jitters by 0.")


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", falling(40, start=2.0, end=0.5)),
        ("a little jitter", falling(40, start=2.0, end=0.5, noise=0.08)),
        ("nothing is learned", 2.3 + 0.1 * np.random.default_rng(0).standard_normal(40)),
        ("diverges", [*falling(20), *np.linspace(0.5, 9, 20) + np.random.default_rng(0).standard_normal(20)]),
        ("one outlier", [*falling(20), 9.0, *([0.5] * 20)]),
    ],
)
def test_clear(reason, values):
    assert check(values) == []


def test_too_few_evaluations_are_said():
    with pytest.raises(Missing, match="10 are needed"):
        check([2.0, 1.0, 1.5])
