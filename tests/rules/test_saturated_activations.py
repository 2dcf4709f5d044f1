import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.saturated_activations import saturated_activations
from tests.histogram_builders import RANDOM, layers, tf_buckets, torch_buckets

BOTH = pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])


def tanh(spread, size=800):
    return np.tanh(spread * RANDOM.normal(0, 1, size))


def sigmoid(spread, size=800):
    return 1 / (1 + np.exp(-spread * RANDOM.normal(0, 1, size)))


@BOTH
@pytest.mark.parametrize("values", [tanh(20), sigmoid(40)])
def test_saturated_from_the_start(buckets, values):
    (found,) = saturated_activations(layers({"activations/act1": [values] * 8, "activations/act2": [tanh(0.7)] * 8}, buckets))
    assert found.summary.startswith("From step 0 on ")
    assert found.values["share"] == pytest.approx(0.9, abs=0.06)
    assert found.summary.endswith("of the outputs of act1 lie at the bounds of its activation.")
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.HIGH, 0)


@BOTH
def test_several_layers_that_saturate_later(buckets):
    later = [tanh(0.8)] * 4 + [tanh(10)] * 7
    (found,) = saturated_activations(layers({"activations/act1": later, "activations/act2": later}, buckets))
    assert found.summary.startswith("In 2 of 2 activation layers at least")
    assert found.summary.endswith("of the outputs lie at the bounds from step 40 on: act1, act2.")


@BOTH
@pytest.mark.parametrize("values", [tanh(0.3), tanh(1), tanh(2.5), sigmoid(1), sigmoid(4)])
def test_healthy(buckets, values):
    assert saturated_activations(layers({"activations/act1": [values] * 8}, buckets)) == []


@BOTH
def test_many_large_outputs_short_of_the_bound(buckets):
    """All beyond 0.92, where the last exponential bucket begins, few beyond 0.99."""
    values = np.append(np.tanh(RANDOM.uniform(1.2, 2.4, 800)), [-1.0, 1.0])
    assert saturated_activations(layers({"activations/act1": [values] * 8}, buckets)) == []


@BOTH
@pytest.mark.parametrize("largest", [0.02, 0.6, 1.0, 7.0])
def test_a_relu_is_not_bounded(buckets, largest):
    values = largest * np.append(np.maximum(0, RANDOM.normal(0, 0.2, 800)), 1.0).clip(0, 1)
    assert saturated_activations(layers({"activations/act1": [values] * 8}, buckets)) == []


@pytest.mark.parametrize("name", ["hidden0", "outputs/tanh_0", "fc0/tanh_output"])
def test_names_of_bounded_layers(name):
    assert f"of the outputs of {name} lie at the bounds" in saturated_activations(layers({name: [tanh(20)] * 8}))[0].summary


@pytest.mark.parametrize("name", ["output", "softmax", "probabilities", "attention", "update_gate", "output/sigmoid", "outputs/dense_3"])
def test_what_belongs_at_the_bounds(name):
    assert saturated_activations(layers({f"activations/{name}": [sigmoid(40)] * 8, "activations/act1": [tanh(1)] * 8})) == []


def test_saturated_only_at_the_end():
    assert saturated_activations(layers({"activations/act1": [tanh(1)] * 6 + [tanh(20)] * 4})) == []


def test_too_few_histograms():
    with pytest.raises(Missing, match="has 3 histograms"):
        saturated_activations(layers({"activations/act1": [tanh(20)] * 3}))
