import numpy as np
import pytest

from tb_advisor.evidence.weights import trained_weights
from tb_advisor.message import Missing
from tests.histogram_builders import RANDOM, layers, tf_buckets, torch_buckets

NORMAL = RANDOM.normal(0, 0.05, 20_000)
SPARSE = np.where(RANDOM.random(20_000) < 0.8, 0, NORMAL)
BOTH = pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])


def weights(values, buckets=torch_buckets, tag="fc1.weight"):
    (found,) = trained_weights(layers({tag: [NORMAL, values]}, buckets))
    return found


@BOTH
def test_normal_weights(buckets):
    found = weights(NORMAL, buckets)
    assert found.near_zero < 0.02
    assert 1.2 < found.outlier_ratio < 2.5
    assert (found.layer, found.count, found.step) == ("fc1", 20_000, 10)


@BOTH
def test_sparse_weights(buckets):
    found = weights(SPARSE, buckets)
    assert found.near_zero == pytest.approx(0.8, abs=0.03)
    assert found.outlier_ratio < 2.5


@BOTH
@pytest.mark.parametrize("values", [NORMAL**3, RANDOM.laplace(0, 0.02, 20_000), RANDOM.uniform(-0.1, 0.1, 20_000), np.abs(NORMAL)])
def test_other_distributions_are_not_near_zero(buckets, values):
    assert weights(values, buckets).near_zero < 0.25


@BOTH
def test_an_outlier_does_not_make_all_others_small(buckets):
    found = weights(np.append(NORMAL, 5.0), buckets)
    assert found.near_zero < 0.02
    assert found.outlier_ratio > 10


def test_what_is_left_out():
    constant, broken = np.zeros(2000), np.append(NORMAL, np.nan)
    kept = {"fc1.weight": [NORMAL], "fc1.bias": [NORMAL], "embedding.weight": [NORMAL], "fc2.weight": [NORMAL[:900]]}
    found = trained_weights(layers({**kept, "fc3.weight": [constant], "fc4.weight": [broken]}))
    assert [each.layer for each in found] == ["fc1"]
    with pytest.raises(Missing, match="no histogram of a kernel with 1,000 weights or more"):
        trained_weights(layers({"fc3.weight": [constant]}))
