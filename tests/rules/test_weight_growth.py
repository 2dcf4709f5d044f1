import numpy as np
import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.weight_growth import weight_growth
from tests.histogram_builders import RANDOM, layers, tf_buckets

WEIGHTS = RANDOM.normal(0, 0.2, 400)


def grown(*factors):
    return [WEIGHTS * factor for factor in factors]


def test_weights_that_keep_growing():
    (found,) = weight_growth(layers({"fc1.weight": grown(1, 3, 6, 9, 12, 15, 18, 21), "fc2.weight": grown(*[1] * 8)}))
    assert found.summary.startswith("The norm of the weights of fc1 grew from ")
    assert found.severity is Severity.INFO
    assert found.values["factor"] == pytest.approx(21, rel=0.01)


def test_several_layers():
    tensors = {"fc1.weight": grown(1, 4, 8, 12, 16, 20), "fc2.weight": grown(1, 5, 10, 15, 20, 25)}
    (found,) = weight_growth(layers(tensors, tf_buckets))
    assert found.summary.startswith("The weights of 2 layers (fc1, fc2) still grow; the norm of fc2 most, from ")


@pytest.mark.parametrize(
    "factors",
    [
        (1, 1, 1, 1, 1, 1),
        (1, 2, 3, 4, 5, 6),  # not much
        (1, 10, 12, 12.5, 12.6, 12.6),  # has settled
        (1e-3, 1e-2, 0.1, 0.5, 0.8, 1),  # from near zero to the usual size
    ],
)
def test_healthy(factors):
    assert weight_growth(layers({"fc1.weight": grown(*factors)})) == []


def test_biases():
    assert weight_growth(layers({"fc1.bias": grown(1, 4, 8, 12, 16, 20)})) == []


def test_too_few_histograms():
    with pytest.raises(Missing):
        weight_growth(layers({"fc1.weight": grown(1, 10, 20)}))


def test_odd_values():
    assert weight_growth(layers({"fc1.weight": [np.array([np.nan])] * 8})) == []
