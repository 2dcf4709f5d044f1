import numpy as np
import pytest

from tb_advisor.series import Series
from tests.builders import FIRST_SECOND, series
from tests.evidence.test_losses import evidence


def curve(tag, *parts, run="exp", gap=60.0):
    """A curve whose steps run through each (first, last) part, a second a step and `gap` seconds between parts."""
    steps = np.concatenate([np.arange(first, last + 1, dtype=np.int64) for first, last in parts])
    seconds = np.arange(len(steps)) + np.repeat(gap * np.arange(len(parts)), [last - first + 1 for first, last in parts])
    return Series(steps, FIRST_SECOND + seconds, np.ones(len(steps)), run, tag)


def restarts(*curves):
    return evidence(*curves)["restarts"]


def test_a_curve_that_goes_back():
    (found,) = restarts(curve("loss", (0, 99), (60, 150)))
    assert (found.first_step, found.last_step, found.next_step, found.repeated, found.tags) == (0, 99, 60, 40, 1)
    assert (found.seconds_between, found.seconds_repeated) == (61, 39)


def epochs(tag):
    return Series(np.arange(15, 191, 16), FIRST_SECOND + 16.0 * np.arange(11), np.ones(11), "exp", tag)


def test_curves_of_epochs_cannot_tell_that_a_few_steps_were_done_again():
    (found,) = restarts(curve("loss", (0, 95), (92, 187), gap=1.0), *map(epochs, ("val_loss", "accuracy", "val_accuracy")))
    assert (found.last_step, found.next_step, found.tags) == (95, 92, 1)


def test_every_restart_of_the_run_that_has_most():
    found = restarts(curve("loss", (0, 99), (60, 150), (100, 200)), curve("loss", (0, 99), (60, 200), run="exp/validation"))
    assert [(r.run, r.last_step, r.next_step) for r in found] == [("exp", 99, 60), ("exp", 150, 100)]


def test_the_loss_is_named_where_it_is_among_them():
    (found,) = restarts(curve("epoch", (0, 99), (0, 99)), curve("loss", (0, 9), (0, 9)))
    assert (found.tag, found.tags) == ("loss", 2)


@pytest.mark.parametrize(
    ("reason", "curves"),
    [
        ("a second file that goes on", [curve("loss", (0, 99), (100, 150))]),
        ("a value that is logged again at the best step", [curve("loss", (0, 99)), curve("accuracy", (0, 99), (40, 40))]),
        ("one curve of many, on an axis of its own", [curve(tag, (0, 99)) for tag in "abc"] + [curve("test", (0, 90), (0, 5), gap=0)]),
        ("a writer that is a step late", [curve("load", (0, 95), (95, 187), gap=0), *map(epochs, ("loss", "val_loss", "accuracy"))]),
        ("a step that repeats", [Series(np.zeros(50, np.int64), np.arange(50.0), np.ones(50), "exp", "loss")]),
        ("workers in no order", [series([1.0] * 60, run="exp")[np.array([1, 0, 3, 2] * 15)]]),
        (
            "a second fit with its initial epoch: batches start again",
            [curve("epoch_loss", (0, 9), (10, 19)), curve("batch_loss", (0, 99), (0, 99)), curve("batch_accuracy", (0, 99), (0, 99))],
        ),
    ],
)
def test_no_restart(reason, curves):
    assert restarts(*curves) == ()


def test_epochs_that_start_again_are_a_restart_although_iterations_go_on():
    curves = [curve("epoch_loss", (0, 5), (0, 11)), curve("evaluation_loss_vs_iterations", (0, 100), (101, 300))]
    assert [r.tag for r in restarts(*curves)] == ["epoch_loss"]
