import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.poor_initialization import poor_initialization
from tests.histogram_builders import RANDOM, layers, tf_buckets, torch_buckets

BOTH = pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])


def normal(std, size):
    return [RANDOM.normal(0, std, size)] * 6


@BOTH
def test_far_too_large(buckets):
    (found,) = poor_initialization(layers({"fc1.weight": normal(3, 2000), "fc2.weight": normal(3, 1000)}, buckets))
    assert "The first weights of 2 of 2 layers (fc1, fc2) have a far too large spread: a standard deviation of " in found.summary
    assert found.summary.endswith("in fc1, where 2,000 weights usually have about 0.15.")
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.HIGH, 0)
    assert "saturated-activations" in found.explains


@BOTH
def test_far_too_small(buckets):
    (found,) = poor_initialization(layers({"fc1.weight": normal(0.004, 2000), "fc2.weight": normal(0.004, 1000)}, buckets))
    assert "have a far too small spread" in found.summary


@BOTH
@pytest.mark.parametrize("value", [0.0, 0.05, 1.0])
def test_all_the_same(buckets, value):
    (found,) = poor_initialization(layers({"fc1.weight": [np.full(600, value)] * 6, "head.weight": [np.full(60, value)] * 6}, buckets))
    assert "The first weights of 2 of 2 layers (fc1, head) are constant" in found.summary
    assert found.confidence is Confidence.HIGH


def test_a_single_layer():
    (found,) = poor_initialization(layers({"fc1.weight": [np.zeros(600)] * 6}))
    assert found.summary == "The first weights of fc1 are all 0."


def test_a_few_zero_layers_have_low_confidence():
    tensors = {"fc1.weight": normal(0.1, 1000), "fc2.weight": normal(0.1, 1000), "head.weight": [np.zeros(100)] * 6}
    assert poor_initialization(layers(tensors))[0].confidence is Confidence.LOW


@BOTH
@pytest.mark.parametrize(
    ("fan_in", "fan_out"), [(64, 64), (2, 512), (512, 2), (4096, 10), (25088, 10), (10000, 1), (1, 256), (784, 128), (576, 128)]
)
@pytest.mark.parametrize("initializer", ["he_normal", "glorot_uniform", "torch"])
def test_usual_initializers_of_unusual_shapes(buckets, fan_in, fan_out, initializer):
    size = fan_in * fan_out
    values = {
        "he_normal": lambda: RANDOM.normal(0, (2 / fan_in) ** 0.5, size),
        "glorot_uniform": lambda: RANDOM.uniform(-1, 1, size) * (6 / (fan_in + fan_out)) ** 0.5,
        "torch": lambda: RANDOM.uniform(-1, 1, size) * fan_in**-0.5,
    }[initializer]()
    assert poor_initialization(layers({"fc1.weight": [values], "fc2.weight": normal(0.18, 1024)}, buckets)) == []


@pytest.mark.parametrize(
    ("tag", "values"),
    [
        ("fc1.bias", np.zeros(100)),
        ("bn1.weight", np.zeros(100)),
        ("downsample.1.weight", np.ones(100)),
        ("act.weight", np.full(100, 0.25)),
        ("lora_B.weight", np.zeros(100)),
        ("embedding.weight", RANDOM.normal(0, 1, 20000)),
        ("scale", np.zeros(1)),
    ],
)
def test_tensors_that_follow_other_laws(tag, values):
    found = poor_initialization(layers({tag: [values] * 6, "fc1.weight": normal(0.1, 1000), "fc2.weight": normal(0.1, 1000)}))
    assert found == []


def test_a_resumed_run_does_not_show_the_beginning():
    with pytest.raises(Missing, match="the first histogram of weights is of step 10,000"):
        poor_initialization(layers({"fc1.weight": normal(3, 1000)}, first=10_000))


def test_only_biases():
    with pytest.raises(Missing, match="no histogram of a weight matrix"):
        poor_initialization(layers({"fc1.bias": [np.zeros(10)] * 6}))
