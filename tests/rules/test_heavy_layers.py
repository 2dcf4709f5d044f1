import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.heavy_layers import heavy_layers
from tests.model_builders import conv, dense, entry, model, sequential, sized


def flattened(units):
    return model(
        sequential(
            (64, 64, 3), conv("c1", 32, activation="relu"), entry("Flatten", "flat"), dense("hidden", units, "relu"), dense("head", 10)
        )
    )


def test_a_dense_layer_behind_a_flattened_image():
    (found,) = heavy_layers(flattened(64))
    assert found.summary == (
        "hidden holds 100% of the model's 8,390,218 parameters (8,388,672), behind a flattened input of 131,072 values."
    )
    assert (found.severity, found.confidence, found.fixes[0]) == (Severity.INFO, Confidence.HIGH, "global-pooling")
    assert found.exhibits[0].rows[0] == ("hidden", "Dense", "relu", "64", 8_388_672, "100.0%")


def test_a_wide_convolution():
    layers = [
        conv("wide", 1024, activation="relu"),
        entry("GlobalAveragePooling2D", "pool"),
        dense("hidden", 256, "relu"),
        dense("head", 10),
    ]
    (found,) = heavy_layers(model(sequential((8, 8, 256), *layers)))
    assert found.summary.startswith("wide holds 89.9%") and found.fixes[0] == "depthwise-separable"


def test_sizes_of_histograms_are_enough():
    (found,) = heavy_layers(sized(fc1=4_000_000, fc2=600_000, head=1_000))
    assert found.confidence is Confidence.MEDIUM
    assert found.exhibits[0].tab == ""


@pytest.mark.parametrize(
    "sizes",
    [
        {"a": 900_000, "b": 1_000, "c": 1_000},  # small
        {"a": 2_000_000, "b": 1_900_000, "c": 500_000},  # spread
        {"embedding": 9_000_000, "b": 100_000, "c": 1_000},
        {"wte": 9_000_000, "b": 100_000, "c": 1_000},
    ],
)
def test_healthy_models(sizes):
    assert heavy_layers(sized(**sizes)) == []


def test_an_embedding_of_keras():
    layers = [
        entry("Embedding", "table", input_dim=100_000, output_dim=64),
        entry("GlobalAveragePooling1D", "p"),
        dense("a", 64, "relu"),
        dense("b", 2),
    ]
    assert heavy_layers(model(sequential((20,), *layers))) == []


def test_sizes_that_are_not_known():
    with pytest.raises(Missing, match="the number of parameters of block is not in the log"):
        heavy_layers(model(sequential((20,), entry("Mine", "block"), dense("a", 9_000_000), dense("b", 2))))
    with pytest.raises(Missing, match="2 layers with parameters; 3 are needed"):
        heavy_layers(sized(a=9_000_000, b=10))
