import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.dead_units import dead_units
from tests.histogram_builders import RANDOM, layers, tf_buckets, torch_buckets

BOTH = pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])


def relu(zeros, size=600):
    """Outputs of a ReLU layer with this share of zeros."""
    return np.where(np.arange(size) < zeros * size, 0.0, np.abs(RANDOM.normal(0, 1, size)))


@BOTH
def test_dead_from_the_start(buckets):
    acts = {"activations/act1": [relu(1)] * 8, "activations/act2": [relu(0.5)] * 8}
    (found,) = dead_units(layers(acts, buckets))
    assert found.summary == "From step 0 on all outputs of act1 are zero."
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.HIGH, 0)
    assert [exhibit.kind for exhibit in found.exhibits] == ["histogram", "table"]


@BOTH
def test_several_layers_that_die_are_one_diagnosis(buckets):
    dies = [relu(0.5)] * 3 + [relu(0.96) for _ in range(7)]
    (found,) = dead_units(layers({"act.act1": dies, "act.act2": [relu(0.6)] * 4 + [relu(1)] * 6, "act.act3": [relu(0.5)] * 10}, buckets))
    assert found.summary.startswith("In 2 of 3 activation layers at least 9")
    assert found.summary.endswith("of the outputs are zero from step 30 on: act1, act2.")
    assert found.onset_step == 30


@pytest.mark.parametrize("name", ["relu0_out", "features/relu0", "ReLU_0", "outputs/layer0", "layer3_relu"])
def test_names_of_relu_layers(name):
    assert dead_units(layers({name: [relu(1)] * 8}))[0].summary == f"From step 0 on all outputs of {name} are zero."
    assert dead_units(layers({name: [relu(0.5)] * 8})) == []


def test_all_layers_are_dead():
    (found,) = dead_units(layers({"activations/act1": [relu(1)] * 8, "activations/act2": [relu(1)] * 8}))
    assert found.summary == "In 2 of 2 activation layers all outputs are zero from step 0 on: act1, act2."


def test_one_exception_does_not_hide_it():
    assert dead_units(layers({"activations/act1": [relu(0.97)] * 5 + [relu(0.5)] + [relu(0.97)] * 4}))[0].onset_step == 0


def test_nearly_dead_has_medium_confidence():
    assert dead_units(layers({"activations/act1": [relu(0.92)] * 8}))[0].confidence is Confidence.MEDIUM


@BOTH
@pytest.mark.parametrize("share", [0.3, 0.75, 0.85])
def test_healthy_relu(buckets, share):
    assert dead_units(layers({"activations/act1": [relu(share) for _ in range(8)]}, buckets)) == []


def test_an_outlier_makes_buckets_wide_not_units_dead():
    values = np.append(RANDOM.exponential(1, 999), 400.0)
    assert dead_units(layers({"activations/act1": [values] * 8}, tf_buckets)) == []


@pytest.mark.parametrize(
    "values",
    [
        np.where(np.arange(500) < 480, -0.01, 1.0),  # LeakyReLU
        np.where(np.arange(500) < 480, 0.01, 0.99),  # sigmoid
        np.full(500, 2.0),
    ],
)
def test_other_activations(values):
    assert dead_units(layers({"activations/act1": [values] * 8})) == []


def test_dead_only_at_the_end_of_the_run():
    assert dead_units(layers({"activations/act1": [relu(0.5)] * 6 + [relu(1)] * 4})) == []


def test_dead_for_a_while():
    assert dead_units(layers({"activations/act1": [relu(1)] * 6 + [relu(0.5)] * 4})) == []


@pytest.mark.parametrize("name", ["attention_probs", "dropout", "mask", "softmax", "output"])
def test_what_is_sparse_by_design(name):
    assert dead_units(layers({f"activations/{name}": [relu(0.97)] * 8})) == []


def test_hooks_call_every_activation_output():
    assert dead_units(layers({"layers.0.output": [relu(1)] * 8}))


def test_too_few_histograms():
    with pytest.raises(Missing, match="has 3 histograms; 4 at different steps are needed"):
        dead_units(layers({"activations/act1": [relu(1)] * 3}))
