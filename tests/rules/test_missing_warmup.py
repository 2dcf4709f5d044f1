import numpy as np
import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.missing_warmup import missing_warmup
from tests.builders import falling, series

CONSTANT = [1e-3] * 200
WARM_UP = [*np.linspace(1e-5, 1e-3, 20), *np.linspace(1e-3, 0, 180)]
UNSTABLE = [2.0, 3.0, 8.0, 9.0, 7.0, 4.0, 2.5, *falling(193, start=1.9)]


def check(loss, rate):
    return missing_warmup(series(loss), series(rate, tag="lr"))


@pytest.mark.parametrize("rate", [CONSTANT, np.linspace(1e-3, 0, 200)])
def test_a_jump_in_the_first_steps_at_the_full_rate_is_found(rate):
    (found,) = check(UNSTABLE, rate)
    assert (found.severity, found.onset_step, found.last_step) == (Severity.INFO, 0, 7)
    assert found.summary.startswith("Training loss rose from 2 to 8 at step 2 and was back by step 7")


@pytest.mark.parametrize(
    ("reason", "loss", "rate"),
    [
        ("there is a warm-up", UNSTABLE, WARM_UP),
        ("healthy", falling(200), CONSTANT),
        ("batch noise", falling(200, noise=0.3), CONSTANT),
        ("one bad batch", [2.0, 1.9, 30.0, *falling(197)], CONSTANT),
        ("it diverged", [2.0, 3.0, 8.0, 9.0, *([9.0] * 196)], CONSTANT),
        ("just below twice its first point", [2.0, 3.0, 3.9, 3.9, 3.0, *falling(195)], CONSTANT),
        ("the rate is zero", UNSTABLE, [0.0] * 200),
    ],
)
def test_clear(reason, loss, rate):
    assert check(loss, rate) == []


def test_too_few_early_points_are_said():
    with pytest.raises(Missing, match="loss has 3 points in the first 10% of the run; 5 are needed"):
        check(falling(30), CONSTANT[:30])
