import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.double_precision import double_precision
from tests.model_builders import dense, entry, model, sequential, sized

POLICY = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float64"}}


def typed(*types):
    return model(sequential((20,), *(dense(f"d{i}", 8, dtype=each) for i, each in enumerate(types))))


@pytest.mark.parametrize("dtype", ["float64", POLICY])
def test_all_layers_in_float64(dtype):
    (found,) = double_precision(typed(dtype, dtype, dtype))
    assert found.summary == "3 of 3 layers compute in float64, d0 the first."
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert len(found.exhibits[0].rows) == 3


def test_half_of_them():
    assert double_precision(typed("float32", "float64"))[0].summary == "1 of 2 layers compute in float64, d1 the first."


@pytest.mark.parametrize(
    "types", [["float32"] * 3, ["mixed_float16"] * 2, ["float32", "float32", "float64"], [{"class_name": "?"}, "float32"]]
)
def test_healthy_types(types):
    assert double_precision(typed(*types)) == []


def test_an_input_in_float64_alone():
    assert double_precision(model(sequential((20,), entry("Rescaling", "r", dtype="float64"), dense("a", 8, dtype="float32")))) == []


def test_types_that_are_not_known():
    with pytest.raises(Missing, match="no types of numbers"):
        double_precision(sized(a=100))
