import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.frozen_weights import frozen_weights
from tests.histogram_builders import RANDOM, layers, tf_buckets, torch_buckets

FRESH = RANDOM.uniform(-0.1, 0.1, 400)
TRAINED = RANDOM.standard_t(4, 400)


def still(n=10, values=FRESH):
    return [values] * n


def moving(n=10):
    return [FRESH + 0.001 * i * RANDOM.normal(0, 1, 400) for i in range(n)]


@pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])
def test_a_layer_left_out_of_the_optimizer(buckets):
    (found,) = frozen_weights(layers({"fc1.weight": still(), "fc2.weight": moving(), "head.weight": moving()}, buckets))
    assert found.summary == "The weights of fc1 stay exactly the same from step 0 to the end at step 90, while others change."
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.HIGH, 0)
    assert "loss-not-decreasing" not in found.explains


def test_two_of_three_layers():
    (found,) = frozen_weights(layers({"fc1.weight": still(), "fc2.weight": still(), "head.weight": moving()}))
    assert "The weights of 2 of 3 layers (fc1, fc2) stay exactly the same" in found.summary
    assert found.severity is Severity.WARNING


def test_all_layers_from_the_middle_on():
    stops = moving(4) + [moving(4)[-1]] * 8
    (found,) = frozen_weights(layers({"fc1.weight": stops, "head.weight": stops}))
    assert found.summary == "All 2 logged weight tensors stay exactly the same from step 40 to the end at step 110."
    assert "loss-not-decreasing" in found.explains


def test_a_backbone_in_fine_tuning_is_information():
    tensors = {f"layers.{i}.weight": still(values=TRAINED) for i in range(6)} | {"head.weight": moving()}
    (found,) = frozen_weights(layers(tensors))
    assert found.summary == "6 of 7 weight tensors are frozen from step 0 on, as in fine-tuning; the others learn."
    assert found.severity is Severity.INFO


def test_many_frozen_layers_with_fresh_weights_are_no_backbone():
    tensors = {f"layers.{i}.weight": still() for i in range(6)} | {"head.weight": moving()}
    assert frozen_weights(layers(tensors))[0].severity is Severity.WARNING


@pytest.mark.parametrize("names", [("backbone.fc1.weight", "head.weight"), ("fc1.weight", "fc1.lora_A.weight")])
def test_names_that_say_it_is_frozen(names):
    assert frozen_weights(layers({names[0]: still(), names[1]: moving()}))[0].severity is Severity.INFO


@pytest.mark.parametrize(("values", "severity"), [(FRESH, Severity.WARNING), (TRAINED, Severity.INFO)])
def test_an_embedding_table(values, severity):
    assert frozen_weights(layers({"embedding.weight": still(values=values), "head.weight": moving()}))[0].severity is severity


NORMAL = RANDOM.normal(0, 1, 4000)


@pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])
@pytest.mark.parametrize(
    ("values", "severity"),
    [
        (NORMAL, Severity.WARNING),
        (RANDOM.normal(0, 1, 960), Severity.WARNING),
        (0.02 * NORMAL, Severity.WARNING),
        (0.3 * NORMAL, Severity.INFO),  # no initializer's spread
        (NORMAL + 0.2, Severity.INFO),
        (RANDOM.standard_t(5, 4000) * np.sqrt(3 / 5), Severity.INFO),  # of spread 1, with the tails of a trained table
        (NORMAL * np.repeat(RANDOM.uniform(0.3, 1.7, 200), 20), Severity.INFO),  # rows moved by how often they are used
    ],
)
def test_an_embedding_table_drawn_from_a_normal_distribution(buckets, values, severity):
    found = frozen_weights(layers({"emb.weight": still(values=values), "head.weight": moving()}, buckets))
    assert found[0].severity is severity


def test_healthy():
    assert frozen_weights(layers({"fc1.weight": moving(), "head.weight": moving()})) == []


def test_one_weight_that_changes_a_little():
    values = [np.append(FRESH, 0.2 + 1e-7 * i) for i in range(10)]
    assert frozen_weights(layers({"fc1.weight": values})) == []


def test_a_run_that_has_converged():
    assert frozen_weights(layers({"fc1.weight": moving(6) + [moving(6)[-1]] * 5})) == []


@pytest.mark.parametrize("tag", ["fc1.bias", "bn1.weight", "batch_normalization/gamma", "layers.1.weight"])
def test_biases_and_scales(tag):
    assert frozen_weights(layers({tag: still(values=np.ones(64)), "fc1.weight": moving()})) == []


def test_too_few_histograms():
    with pytest.raises(Missing, match="has 3 histograms"):
        frozen_weights(layers({"fc1.weight": still(3)}))
