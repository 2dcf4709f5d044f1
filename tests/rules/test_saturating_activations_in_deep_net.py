import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.saturating_activations_in_deep_net import saturating_activations_in_deep_net as check
from tests.model_builders import conv, dense, entry, functional, model, sequential, sized


def row(count, activation):
    return [dense(f"d{i}", 32, activation) for i in range(count)]


def test_five_sigmoids_in_a_row():
    (found,) = check(model(sequential((20,), *row(5, "sigmoid"), dense("head", 10))))
    assert found.summary == "5 layers in a row end in sigmoid, from d0 to d4."
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HIGH)
    assert [each[0] for each in found.exhibits[0].rows] == ["d0", "d1", "d2", "d3", "d4"]


def test_tanh_saturates_later():
    (found,) = check(model(sequential((20,), *row(4, "tanh"), dense("head", 10))))
    assert found.confidence is Confidence.MEDIUM


def test_activations_of_their_own_and_what_passes_values_on():
    layers = []
    for i in range(4):
        layers += [conv(f"c{i}", 8), entry("Activation", f"a{i}", activation="sigmoid"), entry("Dropout", f"d{i}")]
    (found,) = check(model(sequential((28, 28, 1), *layers, entry("Flatten", "f"), dense("head", 10))))
    assert found.summary == "4 layers in a row end in sigmoid, from a0 to a3."


def test_the_output_layer_does_not_count():
    assert check(model(sequential((20,), *row(3, "sigmoid"), dense("head", 1, "sigmoid")))) == []
    assert check(model(sequential((20,), *row(3, "tanh"), dense("head", 1), entry("Activation", "out", activation="sigmoid")))) == []


@pytest.mark.parametrize(
    "layers",
    [
        row(3, "tanh"),
        row(6, "relu"),
        [*row(2, "tanh"), dense("relu", 32, "relu"), *row(3, "tanh")],
        [*row(2, "tanh"), entry("BatchNormalization", "norm"), *row(3, "tanh")],
        [entry("LSTM", f"l{i}", units=8, activation="tanh", return_sequences=True) for i in range(6)],
    ],
)
def test_healthy_depths(layers):
    assert check(model(sequential((20, 20), *layers, dense("head", 10)))) == []


def test_residual_links_carry_the_gradient():
    layers, last = [entry("InputLayer", "x", batch_shape=[None, 32])], "x"
    for i in range(8):
        layers += [dense(f"d{i}", 32, "tanh", [last]), entry("Add", f"sum{i}", [last, f"d{i}"])]
        last = f"sum{i}"
    assert check(model(functional(*layers, dense("head", 10, inbound=[last])))) == []


def test_without_links_there_is_no_row():
    with pytest.raises(Missing, match="does not say how the layers follow each other"):
        check(sized(a=100))
