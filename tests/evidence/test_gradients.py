import numpy as np
import pytest

from tb_advisor.evidence.gradients import gradient_norm, gradients, layer_gradients
from tb_advisor.evidence.roles import roles
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.series import Histograms, Series
from tests.builders import series


def job(scalars=(), histograms=()):
    curves = {tag: series(values, run="run", tag=tag) for tag, values in dict(scalars).items()}
    shown = {tag: histogram(tag, sizes) for tag, sizes in dict(histograms).items()}
    return Job("run", {"run": Run("run", curves, {}, "", (), 0, (), shown)})


def histogram(tag, sizes):
    """A histogram a step of two values, -size and size, in buckets as wide as the size."""
    rows = np.array([row for size in sizes for row in ((-size, 0.0, 1.0), (0.0, size, 1.0))])
    steps = np.arange(len(sizes), dtype=np.int64)
    return Histograms(steps, 1e9 + steps, 2 * np.arange(len(sizes) + 1, dtype=np.int64), rows, "run", tag)


def found(scalars=(), histograms=()):
    logged = job(scalars, histograms)
    return gradients(logged, roles(logged))


@pytest.mark.parametrize(
    ("tags", "main"),
    [
        (["grad_norm/fc1.weight", "grad_norm"], "grad_norm"),
        (["grad_norm_after_clip", "grad_norm_before_clip"], "grad_norm_before_clip"),
        (["grad_2.0_norm/fc1.weight", "grad_2.0_norm_total"], "grad_2.0_norm_total"),
        (["gradients/global_norm", "loss"], "gradients/global_norm"),
    ],
)
def test_the_norm_of_the_whole_model_is_told_from_those_of_layers(tags, main):
    assert gradient_norm(found({tag: [1.0, 2.0] for tag in tags})).tag == main


@pytest.mark.parametrize(
    ("tag", "layer"),
    [
        ("grad_norm/dense_1/kernel", "dense_1/kernel"),
        ("grad_norm/fc1.weight", "fc1"),
        ("grad_2.0_norm/encoder.0.weight", "encoder/0"),
        ("fc1.weight.grad_norm", "fc1"),
    ],
)
def test_a_layer_is_named_by_what_its_tag_says_of_it(tag, layer):
    (each,) = found({tag: [1.0, 2.0]}).layers
    assert (each.layer, each.of_histograms) == (layer, False)
    assert each.size.values.tolist() == each.largest.values.tolist() == [1.0, 2.0]


def test_a_histogram_of_a_gradient_gives_its_mean_and_its_largest_value():
    (each,) = found(histograms={"gradients/fc1.weight": [2.0, 4.0], "weights/fc1.weight": [1.0, 1.0]}).layers
    assert (each.layer, each.of_histograms) == ("fc1", True)
    assert each.size.values.tolist() == [1.0, 2.0]
    assert each.largest.values.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "name", ["fc1.bias", "batch_normalization/gamma", "norm1.weight", "bn2.weight", "embedding/embeddings", "wte.weight"]
)
def test_biases_normalisations_and_embeddings_are_no_kernels(name):
    logged = found({"grad_norm": [1.0], f"grad_norm/{name}": [1.0]}, {f"gradients/{name}": [1.0]})
    assert logged.layers == ()


def test_the_networks_of_a_gan_are_no_layers_of_one_model():
    curves = {"loss/g/total": [1.0], "loss/d/total": [1.0], "grad_norm_g": [1.0], "grad_norm_d": [1.0]}
    with pytest.raises(Missing, match="no gradient norm"):
        found(curves)


def test_what_a_restart_did_again_is_taken_out():
    norm = Series(np.array([0, 1, 2, 1, 2]), np.arange(5.0), np.array([1.0, 2.0, 90.0, 3.0, 4.0]), "run", "grad_norm")
    logged = Job("run", {"run": Run("run", {"grad_norm": norm}, {}, "", (), 0, ())})
    assert gradient_norm(gradients(logged, roles(logged))).values.tolist() == [1.0, 3.0, 4.0]


def test_what_is_missing_is_said():
    with pytest.raises(Missing, match="no gradient norm and no histograms of gradients"):
        found({"loss": [1.0]})
    with pytest.raises(Missing, match="norm of the whole model"):
        gradient_norm(found({"grad_norm/fc1.weight": [1.0]}))
    with pytest.raises(Missing, match="fewer than two layers"):
        layer_gradients(found({"grad_norm/fc1.weight": [1.0], "grad_norm": [1.0]}))


def test_the_training_loss_stands_beside_where_its_level_says_something():
    assert found({"grad_norm": [1.0], "loss": [2.0, 1.0]}).loss.tag == "loss"
    assert found({"grad_norm": [1.0], "train/policy_loss": [2.0], "rollout/ep_rew_mean": [1.0]}).loss is None
