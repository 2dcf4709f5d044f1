import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.weights import trained_weights
from tb_advisor.rules.quantization_outliers import quantization_outliers
from tests.histogram_builders import RANDOM, layers, tf_buckets, torch_buckets

NORMAL = RANDOM.normal(0, 0.05, 20_000)
BOTH = pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])


def check(tensors, buckets=torch_buckets):
    return quantization_outliers(trained_weights(layers({tag: [values] for tag, values in tensors.items()}, buckets)))


@BOTH
def test_one_weight_is_far_larger(buckets):
    (found,) = check({"fc1.weight": np.append(NORMAL, 9.0), "fc2.weight": NORMAL}, buckets)
    assert found.summary.startswith("In fc1 the largest weight is 9, ")
    assert found.severity is Severity.INFO
    assert [exhibit.kind for exhibit in found.exhibits] == ["histogram", "table"]


def test_several_layers_and_confidence():
    (found,) = check({"fc1.weight": np.append(NORMAL, 9.0), "fc2.weight": np.append(NORMAL, -2.0)})
    assert found.summary.endswith("2 of 2 layers have such outliers.")
    assert found.confidence is Confidence.HIGH
    assert check({"fc2.weight": np.append(NORMAL, -2.0)})[0].confidence is Confidence.MEDIUM


@BOTH
@pytest.mark.parametrize(
    "values",
    [
        NORMAL,
        np.append(NORMAL, 0.8),
        RANDOM.laplace(0, 0.02, 20_000),
        RANDOM.standard_t(6, 20_000),
        np.where(np.arange(20_000) < 19_000, 0, NORMAL),  # sparse
    ],
)
def test_healthy_weights(buckets, values):
    assert check({"fc1.weight": values}, buckets) == []


def test_biases_and_embeddings_are_not_quantized_alike():
    assert check({"fc1.weight": NORMAL, "fc1.bias": np.append(NORMAL, 9.0), "embedding.weight": np.append(NORMAL, 9.0)}) == []


def test_a_small_layer_does_not_matter():
    assert check({"fc1.weight": np.append(NORMAL[:1000], 9.0), "fc2.weight": np.tile(NORMAL, 6)}) == []
