import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.redundant_layers import redundant_layers
from tests.model_builders import conv, dense, entry, functional, model, sequential, sized

DROPOUT = entry("Dropout", "drop", rate=0.5)
RELU = entry("ReLU", "relu")
NORM = entry("BatchNormalization", "norm")


def test_two_linear_layers_with_nothing_between():
    (found,) = redundant_layers(model(sequential((20,), dense("a", 64, "relu"), dense("b", 64), dense("head", 10))))
    assert found.summary == "Nothing lies between the linear layers b and head: one could replace both."
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HIGH)
    assert [row[0] for row in found.exhibits[0].rows] == ["b", "head"]
    assert (found.exhibits[0].tab, found.exhibits[0].run) == ("graphs", "run")
    assert found.fixes[0] == "activation-between"


def test_several_pairs_are_one_diagnosis():
    (found,) = redundant_layers(model(sequential((20,), dense("a", 64), dense("b", 64), DROPOUT, dense("c", 10))))
    assert found.summary == "Nothing lies between 2 pairs of linear layers, a and b the first."


def test_two_convolutions():
    (found,) = redundant_layers(model(sequential((28, 28, 8), conv("a", 16), conv("b", 16, activation="relu"))))
    assert "a and b" in found.summary


def test_softmax_behind_softmax():
    (found,) = redundant_layers(model(sequential((20,), dense("a", 10, "softmax"), entry("Softmax", "probabilities"))))
    assert found.summary == "probabilities repeats the softmax of a before it."
    assert found.fixes == ("merge-layers",)


@pytest.mark.parametrize("kind", ["BatchNormalization", "Flatten", "Dropout"])
def test_a_layer_that_repeats(kind):
    (found,) = redundant_layers(model(sequential((8, 8, 2), entry(kind, "first"), entry(kind, "second"))))
    assert "second repeats the" in found.summary


@pytest.mark.parametrize(
    "layers",
    [
        [dense("a", 64, "relu"), dense("b", 10)],
        [dense("a", 64), RELU, dense("b", 10)],
        [dense("a", 64), NORM, dense("b", 10)],
        [dense("a", 4), dense("b", 64)],  # a bottleneck
        [dense("a", 64, {"class_name": "Custom"}), dense("b", 10)],
        [dense("a", 64), entry("Lambda", "sample"), dense("b", 10)],
        [dense("a", 64, "relu"), entry("ELU", "elu"), dense("b", 10)],
        [entry("Reshape", "r", target_shape=[4, 5]), entry("Reshape", "s", target_shape=[20])],
    ],
)
def test_healthy_rows_of_layers(layers):
    assert redundant_layers(model(sequential((20,), *layers))) == []


@pytest.mark.parametrize(
    "layers",
    [
        [conv("a", 16, activation="relu"), conv("b", 16)],
        [conv("a", 16, (1, 7)), conv("b", 16, (7, 1))],  # factorized
        [conv("a", 16, (3, 3)), conv("b", 16, (1, 1))],
        [conv("a", 16), NORM, entry("ReLU", "r"), conv("b", 16)],
        [entry("DepthwiseConv2D", "a", kernel_size=[3, 3]), conv("b", 32, (1, 1))],
        [conv("a", 16), entry("Flatten", "flatten"), dense("b", 10)],
    ],
)
def test_healthy_convolutions(layers):
    assert redundant_layers(model(sequential((28, 28, 8), *layers))) == []


def test_a_linear_layer_whose_output_is_taken_twice():
    layers = [
        entry("InputLayer", "x", batch_shape=[None, 20]),
        dense("a", 64, inbound=["x"]),
        dense("mean", 2, inbound=["a"]),
        dense("spread", 2, inbound=["a"]),
    ]
    assert redundant_layers(model(functional(*layers))) == []


def test_without_links_there_is_no_row():
    with pytest.raises(Missing, match="does not say how the layers follow each other"):
        redundant_layers(sized(a=100, b=100))
