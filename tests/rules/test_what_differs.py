import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.what_differs import what_differs
from tests.trial_builders import grid, sweeps, trial


def test_one_hyperparameter_differs_from_the_nearest_sibling():
    jobs = [
        trial("far", 0.4, lr=0.01, bs=32),
        trial("near", 0.5, lr=0.3, bs=32),
        trial("other", 0.5, lr=1, bs=64),
        trial("bad", None, lr=1, bs=32),
    ]
    (found,) = what_differs(sweeps(*jobs))
    assert found.summary == "bad failed (NaN) with lr 1; its nearest sibling that trained, near, has 0.3."
    assert found.confidence is Confidence.HIGH
    assert found.exhibits[0].rows == (("bad", "NaN", "near", "lr 1 / 0.3"),)


def test_several_hyperparameters_differ():
    (found,) = what_differs(sweeps(trial("good", 0.5, lr=0.1, bs=32), trial("bad", 9.0, lr=1, bs=64, end=9.0)))
    assert found.summary == ("bad failed (diverged); its nearest sibling that trained, good, differs in lr, bs: 0.1, 32 instead of 1, 64.")
    assert found.confidence is Confidence.LOW


def test_only_the_seed_differs():
    (found,) = what_differs(grid({0.1: [0.5, 0.5], 1.0: [0.6, None]}))
    assert found.summary == (
        "lr1.0-seed1 failed (NaN), lr1.0-seed0 trained; the only difference is seed: chance decides, or something that is not logged."
    )
    assert found.confidence is Confidence.MEDIUM


def test_the_length_of_the_training_is_no_cause():
    (found,) = what_differs(sweeps(trial("a", 0.5, lr=0.1, epochs=5), trial("b", None, lr=0.1, epochs=4)))
    assert found.summary == "b failed (NaN), a trained; the only difference is epochs: chance decides, or something that is not logged."


def test_nothing_that_is_known_differs():
    (found,) = what_differs(sweeps(trial("run1", 0.5, lr=0.1), trial("run2", None, lr=0.1)))
    assert found.summary == "run2 failed (NaN), run1 trained with the same hyperparameters."


def test_the_job_with_the_fewest_differences_is_named_and_the_others_listed():
    (found,) = what_differs(grid({0.1: [0.5, 0.6], 1.0: [None, None], 10.0: [None, None]}))
    assert found.values["job"] == "lr1.0-seed0"
    assert [row[0] for row in found.exhibits[0].rows] == ["lr1.0-seed0", "lr10.0-seed0"]


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("all trained", grid({0.1: [0.5], 1.0: [0.6]})),
        ("too much differs", sweeps(trial("a", 0.5, lr=1, bs=1, wd=1, depth=1), trial("b", None, lr=2, bs=2, wd=2, depth=2))),
        ("a job that still runs is no failure", sweeps(trial("a", 0.5, lr=1), trial("b", 1.5, lr=2, finished=False))),
    ],
)
def test_clear(reason, found):
    assert what_differs(found) == []


def test_no_sibling_trained():
    with pytest.raises(Missing, match="no job that can be compared ended well"):
        what_differs(sweeps(trial("a", 8.0, lr=1, end=9.0), trial("b", 8.0, lr=2, end=9.0)))
