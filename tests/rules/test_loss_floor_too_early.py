import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Missing
from tb_advisor.rules.loss_floor_too_early import loss_floor_too_early
from tests.builders import falling, series

AT_ONCE = [2.3, 1.0, 0.3, 0.05, *([0.01] * 96)]


def check(loss, train, val=None):
    accuracy = series(train, tag="acc")
    return loss_floor_too_early(series(loss, tag="loss"), accuracy, Accuracies(accuracy, None if val is None else series(val)))


def test_a_task_that_is_solved_at_once_is_found():
    (found,) = check(AT_ONCE, [0.3, 0.8, *([1.0] * 98)], [1.0] * 20)
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.MEDIUM, 3)
    assert found.summary == "Training loss fell below 5% of its start by step 3 (3.03% of the run); accuracy is 100% since."


def test_an_easy_task_is_less_sure():
    (found,) = check(AT_ONCE, [0.3, 0.8, *([1.0] * 98)], [0.997] * 20)
    assert found.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("reason", "loss", "train", "val"),
    [
        ("healthy", falling(100, start=2.3, end=0.01), np.linspace(0.1, 1, 100), None),
        ("overfitting at once", AT_ONCE, [1.0] * 100, [0.8] * 20),
        ("an inflated first loss", AT_ONCE, [0.9] * 100, [0.9] * 20),
        ("the loss comes back", [*AT_ONCE[:60], *([0.5] * 40)], [1.0] * 100, None),
        ("constant", [1.0] * 100, [1.0] * 100, None),
    ],
)
def test_clear(reason, loss, train, val):
    assert check(loss, train, val) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="20 are needed"):
        check([1.0, 0.0], [1.0, 1.0])
