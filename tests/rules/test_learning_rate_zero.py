import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.roles import roles
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.rules.learning_rate_zero import learning_rate_zero
from tests.builders import falling, series


def check(values, loss=(), finished=True):
    scalars = {"loss": series(loss)} if len(loss) else {}
    job = Job("run", {"run": Run("run", scalars, {}, "", (), 0, ())})
    return learning_rate_zero(series(values, tag="lr"), roles(job), finished)


def cosine(n, period, peak=1e-3):
    return peak * (1 + np.cos(np.pi * np.minimum(np.arange(n) / period, 1))) / 2


def test_a_learning_rate_of_zero_is_an_error():
    (found,) = check([0.0] * 50, loss=[2.3] * 50)
    assert (found.severity, found.confidence, found.onset_step) == (Severity.ERROR, Confidence.HIGH, 0)
    assert "loss-not-decreasing" in found.explains


def test_a_loss_that_falls_says_that_the_rate_is_not_zero():
    (found,) = check([0.0] * 50, loss=falling(50))
    assert found.confidence is Confidence.LOW


def test_a_schedule_that_ends_too_early_is_found_from_where_the_rate_is_low():
    (found,) = check(cosine(400, 100))
    assert found.severity is Severity.WARNING
    assert found.onset_step == 94
    assert found.impact.share == pytest.approx(0.76, abs=0.01)
    assert found.summary == "The learning rate fell below 1% of its peak (0.001) at step 94 and stayed there for 76.4% of the run."


def test_decay_per_step_that_was_meant_per_epoch_is_found():
    (found,) = check(1e-3 * 0.95 ** np.arange(300))
    assert found.confidence is Confidence.HIGH
    assert found.onset_step == pytest.approx(90, abs=2)


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("constant", [1e-3] * 100),
        ("cosine to zero at the end", cosine(200, 200)),
        ("linear to zero at the end", np.linspace(1e-3, 0, 100)),
        ("warm-up and one cycle", [*np.linspace(4e-5, 1e-3, 60), *cosine(140, 140)]),
        ("two drops by ten before the middle", np.float32([1e-3] * 40 + [1e-4] * 8 + [1e-3 * 0.1 * 0.1] * 60)),
        ("warm restarts", [*cosine(100, 100), *cosine(100, 100)]),
        ("a low rate in the last third only", [1e-3] * 65 + [1e-6] * 35),
        ("one very high point", [1e-3] * 20 + [10.0] + [1e-3] * 80),
        ("an inverse square root", 1e-3 / np.sqrt(np.arange(1, 2001))),
    ],
)
def test_clear(reason, values):
    assert check(values) == []


def test_a_run_that_goes_on_is_not_judged():
    assert check(cosine(400, 100), finished=False) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="5 are needed"):
        check([0.0] * 4)
