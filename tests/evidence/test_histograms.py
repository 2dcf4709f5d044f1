import numpy as np
import pytest

from tb_advisor.evidence.histograms import (
    activation_histograms,
    gradient_histograms,
    held_from,
    layer_histograms,
    shown,
    weight_histograms,
    with_points,
)
from tb_advisor.message import Missing
from tests.histogram_builders import RANDOM, histograms, job_of, layers, tf_buckets, torch_buckets

NORMAL = RANDOM.normal(0, 1, 2000)
ONE = [[0.0, 1.0, 4.0]]


def named(*tags):
    return {each.histograms.tag: each for each in layer_histograms(job_of(*(histograms([ONE], tag) for tag in tags)))}


@pytest.mark.parametrize(
    ("tag", "kind", "layer"),
    [
        ("dense_1/kernel/histogram", "weight", "dense_1/kernel"),
        ("dense/kernel_0", "weight", "dense/kernel_0"),
        ("fc1.weight", "weight", "fc1"),
        ("weights/fc1.weight", "weight", "fc1"),
        ("lstm.weight_ih_l0", "weight", "lstm/weight_ih_l0"),
        ("params/layer1", "weight", "layer1"),
        ("layer1/weights/summaries/histogram", "weight", "layer1/summaries"),
        ("output/kernel", "weight", "output/kernel"),
        ("hidden.0.weight", "weight", "hidden/0"),
        ("layer1/b", "weight", "layer1/b"),
        ("fc1.weight.grad", "gradient", "fc1"),
        ("gradients/dense_1/kernel", "gradient", "dense_1/kernel"),
        ("activations/act1", "activation", "act1"),
        ("act.act2", "activation", "act2"),
        ("dnn/dnn/hiddenlayer_0_activation", "activation", "dnn/dnn/hiddenlayer_0_activation"),
        ("conv1/Relu", "activation", "conv1/Relu"),
        ("encoder.0.output", "activation", "encoder/0/output"),
        ("relu0_out", "activation", "relu0_out"),
        ("features/relu0", "activation", "features/relu0"),
        ("ReLU_0", "activation", "ReLU_0"),
        ("LeakyReLU1", "activation", "LeakyReLU1"),
        ("encoder.0.SiLU", "activation", "encoder/0/SiLU"),
        ("hidden0", "activation", "hidden0"),
        ("hidden0/weights", "weight", "hidden0"),
        ("layer3_relu", "activation", "layer3_relu"),
        ("outputs/layer0", "activation", "outputs/layer0"),
        ("fc0/tanh_output", "activation", "fc0/tanh_output"),
        ("backward/blocks.0.weight", "gradient", "backward/blocks/0"),
        ("backward/lstm_cell/kernel", "weight", "backward/lstm_cell/kernel"),
        ("backward_lstm/kernel", "weight", "backward_lstm/kernel"),
    ],
)
def test_kind_and_layer_of_names_in_the_wild(tag, kind, layer):
    (found,) = named(tag).values()
    assert (found.kind, found.layer) == (kind, layer)


@pytest.mark.parametrize(
    "tag", ["Environment/Cumulative Reward_hist", "layer1/Wx_plus_b/pre_activations", "Adam/m/dense/kernel", "updates/fc1.weight", "latent"]
)
def test_names_that_show_something_else(tag):
    with pytest.raises(Missing, match="no histograms of weights, gradients or activations"):
        named(tag)


@pytest.mark.parametrize(
    ("tag", "is_bias"),
    [
        ("fc1.bias", True),
        ("layer1/biases", True),
        ("bn1.weight", True),
        ("encoder.LayerNorm.weight", True),
        ("batch_normalization/gamma", True),
        ("blocks.0.norm2.weight", True),
        ("layer1/b", True),
        ("layer1/bias0", True),
        ("fc1.weight", False),
        ("dense/kernel_0", False),
        ("normal_init.weight", False),
    ],
)
def test_biases_and_scales(tag, is_bias):
    assert named(tag)[tag].is_bias is is_bias


@pytest.mark.parametrize(
    ("tag", "is_sparse"),
    [
        ("outputs/layer0", False),
        ("outputs/tanh_0", False),
        ("fc0/tanh_output", False),
        ("encoder.0.output", False),
        ("relu0_out", False),
        ("output", True),
        ("output/sigmoid", True),
        ("outputs/sigmoid", True),
        ("outputs/dense_3", True),  # the last layer may be one of these
        ("outputs/mask_1/relu_0", True),
        ("decoder/tanh_output", True),
        ("activations/softmax1", True),
        ("attn0/relu", True),
    ],
)
def test_outputs_of_layers_are_told_from_those_of_the_network(tag, is_sparse):
    assert named(tag)[tag].is_sparse_by_design is is_sparse


def test_layers_come_in_natural_order():
    assert list(named("head.weight", "fc10.weight", "fc2.weight", "conv1.weight")) == [
        "conv1.weight",
        "fc2.weight",
        "fc10.weight",
        "head.weight",
    ]


def test_each_kind_has_its_provider():
    found = layers({"fc1.weight": [NORMAL], "fc1.weight.grad": [NORMAL], "activations/act1": [NORMAL]})
    assert [each.kind for each in found] == ["activation", "weight", "gradient"]
    assert len(weight_histograms(found)) == len(gradient_histograms(found)) == len(activation_histograms(found)) == 1
    with pytest.raises(Missing, match="no histograms of gradients"):
        gradient_histograms(found[:2])


@pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])
def test_statistics_of_both_formats(buckets):
    (layer,) = layers({"fc1.weight": [NORMAL, 3 * NORMAL + 1]}, buckets)
    assert layer.sizes.tolist() == [2000, 2000]
    assert layer.std == pytest.approx([1, 3], rel=0.05)
    assert layer.mean == pytest.approx([0, 1], abs=0.15)
    assert layer.mean_abs[0] == pytest.approx(0.8, rel=0.05)
    assert layer.norm[0] == pytest.approx(np.linalg.norm(NORMAL), rel=0.05)
    assert layer.kurtosis[0] == pytest.approx(3, abs=0.4)
    assert (layer.lowest[0], layer.highest[0]) == (NORMAL.min(), NORMAL.max())
    assert layer.largest[0] == np.abs(NORMAL).max()


def test_kurtosis_tells_fresh_weights_from_trained_ones():
    uniform, trained = RANDOM.uniform(-1, 1, 2000), RANDOM.standard_t(4, 2000)
    (layer,) = layers({"fc1.weight": [uniform, trained]})
    assert layer.kurtosis[0] == pytest.approx(1.8, abs=0.1)
    assert layer.kurtosis[1] > 3.5


def test_a_constant_is_its_value_in_every_format():
    old, new, torch = [[-0.25, 0.75, 9.0]], tf_buckets([0.25] * 9), [[0.25, 0.25, 9.0]]
    (layer,) = layer_histograms(job_of(histograms([old, new, torch], "fc1.weight")))
    assert layer.std.tolist() == [0, 0, 0]
    assert layer.largest.tolist() == [0.25, 0.25, 0.25]


def test_nan_and_infinite_values_show_in_the_edges():
    broken = [[float("nan"), 1.0, 2.0], [1.0, 2.0, 1.0]]
    infinite = [[0.0, float("inf"), 2.0]]
    (layer,) = layer_histograms(job_of(histograms([ONE, broken, infinite], "fc1.weight")))
    assert layer.finite.tolist() == [True, False, False]
    assert np.isnan(layer.mean[1])


def test_empty_buckets_with_any_edges_count_nothing():
    (layer,) = layer_histograms(job_of(histograms([[[-np.inf, 0.0, 0.0], [0.0, 1.0, 4.0], [1.0, np.inf, 0.0]]], "fc1.weight")))
    assert (layer.mean[0], layer.finite[0], layer.highest[0]) == (0.5, True, 1)


def test_empty_histograms_are_left_out():
    (layer,) = layer_histograms(job_of(histograms([[], ONE, [[0.0, 0.0, 0.0]], ONE], "fc1.weight")))
    assert layer.histograms.steps.tolist() == [10, 30]


def test_what_a_restart_did_again_is_left_out():
    again = histograms([ONE] * 5, "fc1.weight")
    again.steps[:] = [0, 10, 20, 10, 20]
    (layer,) = layer_histograms(job_of(again))
    assert layer.histograms.steps.tolist() == [0, 10, 20]
    assert layer.histograms.wall_times.tolist()[1:] == again.wall_times[3:].tolist()


RELU = np.maximum(NORMAL, 0)
SPARSE = np.where(RANDOM.random(2000) < 0.95, 0, RANDOM.uniform(0, 3, 2000))


@pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])
@pytest.mark.parametrize(("values", "share"), [(RELU, 0.5), (SPARSE, 0.95), (np.zeros(50), 1.0), (NORMAL, 0.0), (RELU + 1, 0.0)])
def test_zeros(buckets, values, share):
    (layer,) = layers({"activations/act1": [values]}, buckets)
    assert layer.zeros[0] == pytest.approx(share, abs=0.03)


def test_small_values_beside_one_outlier_are_no_zeros():
    (layer,) = layers({"activations/act1": [[*RANDOM.exponential(1, 2000), 500.0]]}, tf_buckets)
    assert layer.zeros[0] == 0


def test_equal_histograms_at_the_end():
    (layer,) = layers({"fc1.weight": [NORMAL, NORMAL * 2, NORMAL, NORMAL, NORMAL]})
    assert layer.same_since == 2
    (layer,) = layers({"fc1.weight": [NORMAL, NORMAL, np.append(NORMAL[:-1], 9)]})
    assert layer.same_since == 2


@pytest.mark.parametrize("buckets", [torch_buckets, tf_buckets])
def test_shares_beyond_the_bounds_of_an_activation(buckets):
    outputs = np.tanh(6 * NORMAL)
    (layer,) = layers({"activations/act1": [outputs]}, buckets)
    beyond = layer.share_above(0.99, _atanh) + layer.share_below(-0.99, _atanh)
    assert beyond[0] == pytest.approx(float((np.abs(outputs) > 0.99).mean()), abs=0.05)


def _atanh(values):
    return np.arctanh(np.clip(values, -1 + 1e-9, 1 - 1e-9))


def test_held_from():
    assert held_from(np.array([0.1, 0.9, 0.95, 0.2, 0.9, 0.9, 0.9]), 0.9) == 1
    assert held_from(np.array([0.9, 0.9, 0.1, 0.1]), 0.9) is None
    assert held_from(np.array([1.0, 1.0]), 0.9) == 0
    assert held_from(np.array([np.nan, 1.0, 1.0]), 0.9) == 1


def test_enough_steps():
    found = layers({"fc1.weight": [NORMAL] * 3, "fc2.weight": [NORMAL] * 5})
    assert [each.layer for each in with_points(found, 4)] == ["fc2"]
    with pytest.raises(Missing, match=r"fc2.weight has 5 histograms; 6 at different steps are needed"):
        with_points(found, 6)


def test_a_sentence_names_only_a_few_layers():
    found = layers({f"fc{i}.weight": [NORMAL] for i in range(9)})
    assert shown(found) == ("fc0", "fc1", "fc2", "fc3", "…")
    assert shown(found[:5]) == ("fc0", "fc1", "fc2", "fc3", "fc4")
