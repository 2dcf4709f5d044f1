import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.weights import trained_weights
from tb_advisor.rules.prunable_weights import prunable_weights
from tests.histogram_builders import RANDOM, layers, tf_buckets, torch_buckets

NORMAL = RANDOM.normal(0, 0.05, 20_000)
BOTH = pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])


def sparse(share, values=NORMAL):
    return np.where(np.arange(len(values)) < share * len(values), 0, values)


def check(tensors, buckets=torch_buckets):
    return prunable_weights(trained_weights(layers({tag: [values] for tag, values in tensors.items()}, buckets)))


@BOTH
def test_most_weights_are_zero(buckets):
    (found,) = check({"fc1.weight": sparse(0.9), "fc2.weight": NORMAL}, buckets)
    assert found.summary.startswith("4") and found.summary.endswith(
        "of the 40,000 weights are almost zero, in 1 of 2 layers; fc1 has the most."
    )
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HIGH)
    assert [exhibit.kind for exhibit in found.exhibits] == ["histogram", "table"]
    assert found.exhibits[1].rows[0][:2] == ("fc1", 20_000)


@BOTH
def test_small_weights_count_like_zeros(buckets):
    (found,) = check({"fc1.weight": np.where(np.arange(20_000) < 13_000, NORMAL / 50_000, NORMAL)}, buckets)
    assert found.confidence is Confidence.MEDIUM


@BOTH
@pytest.mark.parametrize(
    "values", [NORMAL, sparse(0.4), RANDOM.laplace(0, 0.02, 20_000), RANDOM.standard_t(3, 20_000), np.append(NORMAL, 50.0)]
)
def test_healthy_weights(buckets, values):
    assert check({"fc1.weight": values}, buckets) == []


def test_a_sparse_layer_that_does_not_matter():
    assert check({"fc1.weight": sparse(0.9, NORMAL[:1500]), "fc2.weight": NORMAL}) == []


def test_a_layer_that_is_all_zero_is_another_fault():
    assert check({"fc1.weight": NORMAL, "fc2.weight": np.zeros(20_000)}) == []
