import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.metrics import Accuracies, Metric
from tb_advisor.message import Missing
from tb_advisor.rules.underfitting import underfitting
from tests.builders import falling, series

PLATEAU = falling(40, start=2.3, end=1.6)
LOW = list(np.linspace(0.1, 0.3, 40))
GOOD = list(np.linspace(0.1, 0.97, 40))


def check(loss, train=None, val=None, metrics=(), finished=True):
    accuracies = Accuracies(*(None if values is None else series(values, tag="acc") for values in (train, val)))
    return underfitting(series(loss, tag="train_loss"), accuracies, metrics, finished)


def test_a_plateau_far_from_the_training_data_is_found():
    (found,) = check(PLATEAU, LOW, LOW)
    assert found.confidence is Confidence.HIGH
    assert found.summary == "Training and validation accuracy end at 29.2% and 29.2%, and the training loss at 1.61, 72.4% of its start."
    assert found.fixes[:2] == ("less-regularization", "larger-model")


def test_a_loss_that_still_falls_asks_for_more_training_first():
    (found,) = check(np.linspace(2.3, 1.8, 40), LOW, LOW)
    assert found.fixes == ()
    assert found.explains == ("unfinished-training",)


def test_a_loss_that_falls_ever_more_slowly_may_need_another_rate_or_model():
    (found,) = check(1.6 + 0.7 * np.exp(-np.arange(40) / 16), LOW, LOW)
    assert found.fixes[:2] == ("tune-learning-rate", "larger-model")


def test_a_penalty_that_leaves_nothing_but_a_guess_is_found():
    (found,) = check([14.0, 8.0, 4.0, 2.6, *([2.303] * 12)], [0.1] * 16, [0.26, *([0.1] * 15)])
    assert found.confidence is Confidence.MEDIUM


def test_a_regression_that_explains_little_is_found():
    error = Metric(series([0.8] * 10), True, False, frozenset({"mae"}))
    (found,) = check(np.linspace(0.93, 0.82, 20), metrics=(error,))
    assert found.confidence is Confidence.MEDIUM
    assert found.summary.endswith("the model explains little more than a constant would.")
    assert check(falling(20, start=0.93, end=0.6), metrics=(error,)) == []


@pytest.mark.parametrize(
    ("reason", "loss", "accuracy", "is_of_regression"),
    [
        ("clicks", falling(40, start=0.69, end=0.58), [0.62, *([0.67] * 9)], False),
        ("wrong labels among four", falling(40, start=1.4, end=0.95, noise=0.05), np.linspace(0.3, 0.62, 10), False),
        ("prices", falling(40, start=0.93, end=0.82, noise=0.05), None, True),
    ],
)
def test_what_may_be_the_noise_in_the_data_is_uncertain(reason, loss, accuracy, is_of_regression):
    error = Metric(series([0.8] * 10), True, False, frozenset({"mae"}))
    (found,) = check(loss, accuracy, accuracy, (error,) if is_of_regression else ())
    assert found.confidence is Confidence.LOW


def test_a_flat_loss_hardly_better_than_a_guess_is_no_noise():
    (found,) = check(falling(40, start=1.1, end=0.97, noise=0.03), [0.36, *([0.42] * 9)], [0.35, *([0.4] * 9)])
    assert found.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    ("reason", "loss", "train", "val"),
    [
        ("healthy", falling(40, start=2.3, end=0.1), GOOD, GOOD),
        ("label smoothing keeps the loss high", falling(40, start=2.1, end=1.2), GOOD, GOOD),
        ("overfitting: only validation is low", falling(40, start=2.3, end=0.01), GOOD, LOW),
        ("heavy augmentation: only training is low", PLATEAU, LOW, GOOD),
        ("many classes on their way", falling(40, start=6.9, end=2.2), LOW, LOW),
        ("what comes next in a text", falling(40, start=3.2, end=2.05), [0.31] * 40, [0.3] * 40),
        ("a language model that is fine-tuned", falling(36, start=2.3, end=2.05), [0.365, 0.38, 0.39, 0.4], [0.34] * 4),
        ("nothing moves", [2.3] * 40, [0.1] * 40, [0.1] * 40),
        ("diverged", [*np.linspace(2.3, 2.0, 20), *np.linspace(2.0, 6.0, 20)], LOW, LOW),
        ("was good before it broke", [*np.linspace(2.3, 0.3, 30), *([2.2] * 10)], [*GOOD[:35], 0.1, 0.1, 0.1, 0.1, 0.1], None),
        ("an accuracy of another thing than the loss", falling(40, start=0.3, end=0.05), [0.0] * 40, [0.0] * 40),
        ("just above 70%", PLATEAU, np.linspace(0.1, 0.73, 40), None),
    ],
)
def test_clear(reason, loss, train, val):
    assert check(loss, train, val) == []


def test_a_run_that_goes_on_is_not_judged():
    assert check(PLATEAU, LOW, LOW, finished=False) == []


def test_without_an_anchor_nothing_is_said():
    with pytest.raises(Missing, match="no accuracy and no metric of a regression"):
        check(PLATEAU)
    with pytest.raises(Missing, match="10 are needed"):
        check(PLATEAU[:5], LOW, LOW)
