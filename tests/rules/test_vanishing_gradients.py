import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, HistogramExhibit, SeriesExhibit, Severity
from tb_advisor.evidence.gradients import Gradients, LayerGradient
from tb_advisor.message import Missing
from tb_advisor.rules.vanishing_gradients import vanishing_gradients
from tests.builders import falling, series

FLAT = [2.31] * 100
HEALTHY = falling(100)


def layer(name, values, of_histograms=True, step=10):
    curve = series(values, step=step, tag=f"gradients/{name}")
    return LayerGradient(name, curve, curve, of_histograms)


def noisy(level, n=20, seed=1):
    return list(level * np.random.default_rng(seed).lognormal(0, 0.3, n))


def found_in(*layers, loss=FLAT):
    return vanishing_gradients(layers, Gradients(None, layers, None if loss is None else series(loss)))


def test_a_deep_sigmoid_network_is_found():
    (found,) = found_in(layer("fc1", noisy(4e-8)), layer("fc5", noisy(9e-6)), layer("fc8", noisy(5e-3)), layer("head", noisy(4e-2)))
    assert (found.severity, found.confidence, found.onset_step, found.last_step) == (Severity.WARNING, Confidence.HIGH, 0, 190)
    assert found.summary.startswith("2 of 4 layers get almost no gradient: fc1 has ")
    assert found.summary.endswith("1e-06 of what head has.")
    assert found.exhibits[0].rows[0][0] == "fc1"
    assert found.exhibits[1:] == (HistogramExhibit("run", "gradients/fc1"), HistogramExhibit("run", "gradients/head"))
    assert "loss-not-decreasing" in found.explains


def test_norms_tell_it_too():
    (found,) = found_in(layer("fc1", noisy(2e-6), False), layer("head", noisy(0.3), False))
    assert isinstance(found.exhibits[1], SeriesExhibit)
    assert found.exhibits[0].columns[1] == "norm"


@pytest.mark.parametrize(("size", "confidence"), [(4e-8, Confidence.MEDIUM), (2e-5, Confidence.LOW)])
def test_where_the_loss_fell_it_is_less_certain(size, confidence):
    (found,) = found_in(layer("fc1", noisy(size)), layer("head", noisy(4e-2)), loss=HEALTHY)
    assert found.confidence is confidence


def test_only_what_lasts_from_the_first_quarter_on_counts():
    (found,) = found_in(layer("fc1", [*noisy(1e-2, 4), *noisy(1e-8, 16)]), layer("head", noisy(4e-2)))
    assert found.onset_step == 40


@pytest.mark.parametrize(
    ("reason", "layers"),
    [
        ("healthy", (layer("fc1", noisy(3e-3)), layer("head", noisy(1e-2)))),
        ("just above a thousandth", (layer("fc1", noisy(6e-5, seed=1)), layer("head", noisy(4e-2, seed=1)))),
        ("a thousandth of much", (layer("fc1", noisy(5e-4)), layer("head", noisy(4.0)))),
        ("zero is a layer that is not trained", (layer("frozen", [0.0] * 20), layer("head", noisy(4e-2)))),
        ("only in the first steps", (layer("fc1", [*noisy(1e-8, 4), *noisy(1e-2, 16)]), layer("head", noisy(4e-2)))),
        ("now and then", (layer("fc1", [1e-8, 1e-2, 1e-2, 1e-2] * 5), layer("head", noisy(4e-2)))),
        ("a norm beside a mean", (layer("fc1", noisy(4e-8)), layer("head", noisy(0.4), False), layer("fc2", noisy(0.3), False))),
    ],
)
def test_clear(reason, layers):
    assert found_in(*layers) == []


def test_too_few_common_steps_are_said():
    with pytest.raises(Missing, match="share fewer than 3 steps"):
        found_in(layer("fc1", noisy(4e-8)), layer("head", noisy(4e-2), step=1000))


def test_zero_everywhere_is_no_comparison():
    with pytest.raises(Missing):
        found_in(layer("fc1", [0.1] + [0.0] * 19), layer("head", [0.1] + [0.0] * 19))
