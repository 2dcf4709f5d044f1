import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.roles import Assignment, Roles
from tb_advisor.message import Missing
from tb_advisor.rules.update_ratio import update_ratio
from tests.builders import series
from tests.histogram_builders import RANDOM, layers

WEIGHTS = [RANDOM.normal(0, 0.1, 300)] * 6


def ratio(rate, slope, *, gradient="fc1.weight.grad"):
    assignments = (Assignment(series([rate] * 60, tag="lr"), "learning_rate", False, ("lr",)),) if rate is not None else ()
    gradients = layers({gradient: [RANDOM.normal(0, slope, 300)] * 6})
    return update_ratio(layers({"fc1.weight": WEIGHTS}), gradients, Roles(assignments, "supervised"))


def test_far_too_small():
    (found,) = ratio(1e-8, 1e-3)
    assert "far too small" in found.summary
    assert found.severity is Severity.INFO
    assert found.values["adaptive"] == pytest.approx(1.25e-7, rel=0.1)


def test_far_too_large():
    (found,) = ratio(0.1, 3)
    assert "changes the weights of fc1 by about" in found.summary
    assert "far too large" in found.summary


@pytest.mark.parametrize(("rate", "slope"), [(1e-3, 0.01), (0.1, 0.01), (1e-5, 1e-6), (1e-3, 10), (0.0, 1)])
def test_healthy_or_not_certain(rate, slope):
    assert ratio(rate, slope) == []


def test_without_learning_rate():
    with pytest.raises(Missing, match="no tag plays the role of learning_rate"):
        ratio(None, 1)


def test_gradients_of_another_layer():
    with pytest.raises(Missing, match="no layer has histograms of both"):
        ratio(1e-3, 1, gradient="fc2.weight.grad")
