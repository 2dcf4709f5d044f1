import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.losses import Loss
from tb_advisor.message import Missing
from tb_advisor.rules.loss_not_decreasing import loss_not_decreasing
from tests.builders import falling, series


def check(loss, val=None, first=0):
    losses = [] if val is None else [Loss(series(val, tag="val_loss"), is_validation=True, is_main=True)]
    return loss_not_decreasing(series(loss, first=first), tuple(losses))


def noisy(level, n, noise, seed=1):
    return level + noise * np.random.default_rng(seed).standard_normal(n)


def test_a_flat_loss_is_found():
    (found,) = check([2.3026] * 100)
    assert (found.severity, found.confidence, found.impact.share) == (Severity.ERROR, Confidence.HIGH, 1.0)
    assert found.summary == "Training loss did not fall: 2.3 at the start, 2.3 after 99 steps."


def test_a_flat_loss_under_noise_is_found():
    assert len(check(noisy(2.3, 300, 0.05))) == 1


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", falling(100)),
        ("falls by just more than 7%", np.linspace(1.0, 0.91, 100)),
        ("converged within the first 5%", [*np.geomspace(3.4, 0.5, 9), *([0.447] * 335)]),
        ("a long plateau before it learns", [*([2.3] * 80), *np.linspace(2.3, 1.5, 40)]),
        ("an epoch in which all that clicks tell was learned", [0.64, 0.592, 0.588, 0.587, *([0.584] * 8)]),
        ("diverged instead", np.linspace(1.0, 9.0, 100)),
        ("falls and rises again", [*np.linspace(1.0, 0.5, 50), *np.linspace(0.5, 1.0, 50)]),
    ],
)
def test_clear(reason, values):
    assert check(values) == []


def test_a_constant_validation_loss_tells_that_training_only_wanders():
    wandering = [0.99, 0.94, 1.03, 0.9, 0.85, 0.93, 0.84, 0.86, 1.02, 0.98, 0.95, 1.04]
    assert check(wandering) == []
    (found,) = check(wandering, val=[0.9394] * 6)
    assert found.severity is Severity.ERROR
    assert check(wandering, val=[0.9394] * 4) == check(wandering, val=[0.0] * 6) == []
    assert check(falling(40), val=[0.9394] * 6) == []


def test_a_slow_but_steady_fall_is_uncertain():
    (found,) = check(np.linspace(1.0, 0.95, 100))
    assert found.confidence is Confidence.LOW


def test_a_dip_within_the_noise_is_no_fall():
    (found,) = check(noisy(1.0, 15, 0.05))
    assert found.confidence is Confidence.MEDIUM


def test_a_run_that_goes_on_from_a_checkpoint_is_uncertain():
    (found,) = check([0.4] * 50, first=10_000)
    assert found.confidence is Confidence.LOW


@pytest.mark.parametrize(("values", "reason"), [([1.0] * 5, "10 are needed"), ([0.0] * 50, "not measured")])
def test_not_applicable(values, reason):
    with pytest.raises(Missing, match=reason):
        check(values)
