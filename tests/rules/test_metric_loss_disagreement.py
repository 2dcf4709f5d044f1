import numpy as np
import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.metric_loss_disagreement import metric_loss_disagreement
from tests.builders import falling, series


def check(loss, accuracy, step=1):
    return metric_loss_disagreement(series(loss, tag="val_loss"), series(accuracy, tag="val_acc", step=step))


RISE, FALL = [*np.linspace(0.5, 0.9, 10), *np.linspace(0.9, 0.7, 20)], [*np.linspace(2, 0.8, 10), *np.linspace(0.8, 1.4, 20)]


def test_an_accuracy_that_falls_with_the_loss_is_told():
    (found,) = check(np.linspace(2, 0.5, 30), RISE)
    assert found.severity is Severity.INFO
    assert found.summary.startswith("Validation accuracy fell from")


def test_a_loss_that_rises_with_the_accuracy_is_told():
    (found,) = check(FALL, np.linspace(0.5, 0.8, 30))
    assert found.summary.startswith("Validation loss rose from")


@pytest.mark.parametrize(
    ("reason", "loss", "accuracy"),
    [
        ("healthy", falling(30), [1 - value / 3 for value in falling(30)]),
        ("both get worse", FALL, RISE),
        ("the accuracy is noise", falling(30), 0.8 + 0.05 * np.random.default_rng(0).standard_normal(30)),
        ("both stay", [0.5] * 30, [0.9] * 30),
    ],
)
def test_clear(reason, loss, accuracy):
    assert check(loss, accuracy) == []


def test_different_axes_are_not_compared():
    assert check(np.linspace(2, 0.5, 30), RISE, step=2) == []


def test_too_few_evaluations_are_said():
    with pytest.raises(Missing, match="10 are needed"):
        check([1.0] * 4, [0.5] * 4)
