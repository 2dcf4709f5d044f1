import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.losses import Loss
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Missing
from tb_advisor.rules.unfinished_training import unfinished_training
from tests.builders import falling, series


def check(loss, val=None, finished=True, first=0, accuracy=None):
    losses = [] if val is None else [Loss(series(val, tag="val_loss"), is_validation=True, is_main=True)]
    return unfinished_training(
        series(loss, first=first, tag="train_loss"),
        tuple(losses),
        Accuracies(None if accuracy is None else series(accuracy), None),
        finished,
    )


def test_a_straight_fall_is_a_warning():
    (found,) = check(np.linspace(2.3, 1.6, 50), np.linspace(2.3, 1.7, 10))
    assert (found.severity, found.confidence, found.onset_step) == (Severity.WARNING, Confidence.HIGH, 25)
    assert found.summary == "Training loss still fell at the end (1.63, 71.2% of its start): 48.9% of its fall came in the second half."


def test_a_loss_that_creeps_is_told():
    (found,) = check(0.8 + 0.13 * np.exp(-np.linspace(0, 1, 30)))
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.MEDIUM)


def test_less_must_be_left_where_the_fall_is_straighter():
    assert len(check(0.65 + 0.35 * (1 - np.linspace(0, 1, 60) ** 0.7))) == 1
    (found,) = check(0.5 + 0.5 * (1 - np.linspace(0, 1, 60) ** 0.9))
    assert found.severity is Severity.WARNING
    assert check(0.5 + 0.5 * (1 - np.linspace(0, 1, 60) ** 0.6)) == []


def test_a_task_that_is_solved_needs_no_more_training():
    assert check(np.linspace(0.42, 0.26, 12), accuracy=np.linspace(0.91, 0.97, 12)) == []


def test_a_resumed_run_starts_near_its_floor():
    (found,) = check(np.linspace(2.3, 2.1, 50), first=10_000)
    assert found.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("reason", "loss", "val"),
    [
        ("healthy", falling(50), falling(10)),
        ("a language model with a high floor", falling(50, start=2.6, end=2.0), None),
        ("fine-tuning with a high floor", 1.97 + 0.6 * np.exp(-np.linspace(0, 2.2, 50)), None),
        ("a setback that is made up for", [*np.linspace(3.1, 2.45, 30), *np.linspace(2.75, 2.2, 70)], None),
        ("nothing moves", np.linspace(2.3, 2.29, 50), None),
        ("a straight fall that is almost done", np.linspace(2.3, 0.2, 50), None),
        ("noise", 2.0 + 0.1 * np.random.default_rng(0).standard_normal(50), None),
        ("validation got worse long ago", np.linspace(2.3, 1.6, 50), [2.3, 2.2, 2.1, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6]),
        ("rising", np.linspace(1.0, 2.0, 50), None),
    ],
)
def test_clear(reason, loss, val):
    assert check(loss, val) == []


def test_a_run_that_goes_on_is_not_judged():
    assert check(np.linspace(2.3, 1.6, 50), finished=False) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="10 are needed"):
        check([2.0, 1.9, 1.8])
