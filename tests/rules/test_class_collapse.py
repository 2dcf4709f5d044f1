import math

import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Missing
from tb_advisor.rules.class_collapse import class_collapse
from tests.builders import falling, series

CHANCE = [math.log(10) + 0.02 * (-1) ** i for i in range(12)]
PRIOR = falling(12, start=0.7, end=0.5)


def check(train, val, accuracy, train_accuracy=None):
    logged = None if train_accuracy is None else series(train_accuracy)
    val_accuracy = series(accuracy, tag="val_acc")
    return class_collapse(series(train, tag="loss"), series(val, tag="val_loss"), val_accuracy, Accuracies(logged, val_accuracy))


def test_one_class_of_ten_is_found():
    (found,) = check(CHANCE, CHANCE, [0.093] * 12)
    assert found.confidence is Confidence.HIGH
    assert found.summary == "Validation accuracy stays near 9.3%, and the loss (2.28) is that of a guess among 10 classes or worse."


def test_another_class_each_time_is_found():
    (found,) = check([2.3, 40.0, *CHANCE], [2.8, 2.6, *CHANCE[2:]], [0.09, 0.11, 0.1, 0.12, 0.08, 0.1, 0.11, 0.09, 0.1, 0.1, 0.12, 0.1])
    assert found.confidence is Confidence.MEDIUM


def test_first_losses_far_above_those_of_a_guess_do_not_hide_it():
    loss = [3.2, 2.5, 1.6, 1.24, 1.14, 1.1, 1.11]
    assert len(check(loss, [2.5, *loss[2:], 1.1], [0.331, 0.331, 0.319, 0.331, 0.331, 0.35, 0.319])) == 1


def test_always_the_majority_is_found():
    (found,) = check(PRIOR, PRIOR, [0.4, *([0.858] * 11)], [0.83] * 12)
    assert (found.onset_step, found.confidence) == (1, Confidence.MEDIUM)
    assert found.summary.startswith("Validation accuracy is 85.8% in 91.7% of the evaluations")


def test_first_weights_that_are_not_small_do_not_hide_it():
    loss = [1.87, 3e4, 2.2, *([1.81, 1.97, 1.86, 2.1] * 3)]
    (found,) = check(loss, [57.9, 2.17, *loss[3:]], [0.148, 0.182, *([0.16, 0.142, 0.192, 0.156] * 3)])
    assert found.summary.endswith("is that of a guess among 6 classes or worse.")


@pytest.mark.parametrize(
    ("reason", "train", "val", "accuracy", "train_accuracy"),
    [
        ("healthy", falling(12, 2.3, 0.1), falling(12, 2.3, 0.2), np.linspace(0.3, 0.95, 12), None),
        ("a small validation set, solved at once", falling(12, 0.7, 0.02), falling(12, 0.5, 0.02), [1.0] * 12, [1.0] * 12),
        ("a small validation set with one hard example", falling(12, 1.1, 0.01), falling(12, 1.0, 0.1), [0.8, *([0.956] * 11)], [1.0] * 12),
        (
            "underfitting below the loss of a guess",
            falling(12, 1.1, 0.95),
            falling(12, 1.1, 1.0),
            [0.36, 0.39, 0.38, 0.39] * 3,
            [0.44] * 12,
        ),
        ("a little learned of six classes", falling(12, 1.85, 1.65), falling(12, 1.85, 1.71), [0.19, 0.2, 0.22, 0.21] * 3, None),
        ("a learning rate of zero", [0.7] * 12, [0.5] * 12, [0.858] * 12, [0.85] * 12),
        ("a metric of another thing", falling(12), falling(12), [0.0] * 12, None),
        ("stuck late", PRIOR, PRIOR, [0.3, 0.4, 0.5, 0.6, *([0.858] * 8)], None),
        ("learns late", [*CHANCE[:8], 1.5, 0.8, 0.4, 0.3], [*CHANCE[:8], 1.5, 0.8, 0.4, 0.3], [*([0.1] * 8), 0.5, 0.7, 0.9, 0.9], None),
    ],
)
def test_clear(reason, train, val, accuracy, train_accuracy):
    assert check(train, val, accuracy, train_accuracy) == []


def test_too_few_evaluations_are_said():
    with pytest.raises(Missing, match="5 are needed"):
        check(CHANCE, CHANCE, [0.1] * 4)
