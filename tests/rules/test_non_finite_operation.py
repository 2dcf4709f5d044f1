import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.non_finite_operation import non_finite_operation
from tests.dump_builders import dump_of, health

GOOD, NAN, HIGH = health(), health(nan=2), health(high=1)


def test_nan_is_a_warning_that_names_operation_layer_and_line(tmp_path):
    dump = dump_of(tmp_path, ("MatMul", "model/dense/MatMul", GOOD), ("Log", "loss/kl/Log", NAN, "model/dense/MatMul:0"))
    (found,) = non_finite_operation(((".", dump),))
    assert found.summary == "In the debugger's dump the first NaN came out of Log in layer loss/kl, made by train.py:12."
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert found.exhibits[0].lines == (
        "first NaN: Log loss/kl/Log",
        "  layer: loss/kl",
        "  inputs: model/dense/MatMul:0",
        "  run 1 of this operation in the dump",
        "  /home/me/train.py:12 in <module>: line 12",
    )
    assert found.exhibits[0].tab == "debugger-v2"


def test_the_tab_shows_a_dump_only_in_the_log_directory_itself(tmp_path):
    (found,) = non_finite_operation((("debug", dump_of(tmp_path, ("Log", "loss/Log", NAN))),))
    assert found.exhibits[0].tab == ""


def test_infinite_values_alone_are_an_information(tmp_path):
    (found,) = non_finite_operation(((".", dump_of(tmp_path, ("Exp", "model/Exp", HIGH))),))
    assert found.severity is Severity.INFO


def test_an_overflow_is_the_cause_of_the_nan_that_follows(tmp_path):
    (found,) = non_finite_operation(((".", dump_of(tmp_path, ("MatMul", "a/MatMul", HIGH), ("Sub", "b/Sub", NAN))),))
    assert "the first +Inf came out of MatMul in layer a" in found.summary
    assert found.severity is Severity.WARNING
    assert [line for line in found.exhibits[0].lines if line.startswith("first")] == ["first +Inf: MatMul a/MatMul", "first NaN: Sub b/Sub"]


@pytest.mark.parametrize(
    ("operation", "fix"),
    [("IteratorGetNext", "clean-rows"), ("Log", "safe-log"), ("SqrtGrad", "safe-log"), ("MatMul", "lower-learning-rate")],
)
def test_the_first_fix_follows_the_operation(tmp_path, operation, fix):
    (found,) = non_finite_operation(((".", dump_of(tmp_path, (operation, "op", NAN))),))
    assert found.fixes[0] == fix


def test_without_a_line_of_the_user_the_library_is_named(tmp_path):
    stack = (("/venv/lib/python3.11/site-packages/keras/src/layers/layer.py", 40, "call"),)
    (found,) = non_finite_operation(((".", dump_of(tmp_path, ("Log", "Log", NAN), stack=stack)),))
    assert found.summary == "In the debugger's dump the first NaN came out of Log, made by layer.py:40."
    assert found.exhibits[0].lines[-1] == "  /venv/lib/python3.11/site-packages/keras/src/layers/layer.py:40 in call: line 40"


@pytest.mark.parametrize("operations", [[("MatMul", "a/MatMul", GOOD)], [("Const", "mask", HIGH)], [("SelectV2", "mask", health(low=4))]])
def test_finite_values_and_masks(tmp_path, operations):
    assert non_finite_operation(((".", dump_of(tmp_path, *operations)),)) == []


def test_no_dump_and_a_dump_without_values(tmp_path):
    with pytest.raises(Missing, match="no dump of TensorFlow's debugger"):
        non_finite_operation(())
    with pytest.raises(Missing, match="holds no values of tensors"):
        non_finite_operation(((".", dump_of(tmp_path, ("Log", "a", [1.0]), mode=5)),))
