import math

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.rules.non_finite_loss import non_finite_loss
from tests.builders import falling, series

NAN, INF = math.nan, math.inf


def test_a_loss_that_stays_nan_is_an_error_from_its_first_step_on():
    (found,) = non_finite_loss((series([2.0, 1.5, 1.0, 0.8] + [NAN] * 6, step=10),))
    assert (found.severity, found.onset_step, found.last_step) == (Severity.ERROR, 40, 90)
    assert found.summary == "loss became NaN at step 40 and never recovered; the last finite value was 0.8, the lowest 0.8."
    assert found.impact.share == pytest.approx(5 / 9)


def test_one_nan_among_many_points_is_a_warning():
    values = falling(1000)
    values[700] = NAN
    (found,) = non_finite_loss((series(values),))
    assert (found.severity, found.onset_step, found.last_step) == (Severity.WARNING, 700, 700)


@pytest.mark.parametrize(("value", "text"), [(INF, "+Inf"), (-INF, "-Inf")])
def test_infinite_counts_too(value, text):
    (found,) = non_finite_loss((series([1.0, value]),))
    assert f"became {text} at step 1" in found.summary


@pytest.mark.parametrize("n", [1, 50])
def test_nan_from_the_first_point(n):
    (found,) = non_finite_loss((series([NAN] * n),))
    assert found.summary == "loss is NaN from its first point, step 0, on."


def test_the_loss_that_broke_first_is_named_and_the_others_are_shown_with_it():
    validation = series([1.0, 1.0, NAN], tag="val_loss")
    training = series([1.0, NAN, NAN], tag="loss")
    (found,) = non_finite_loss((validation, training))
    assert found.summary.startswith("loss became NaN at step 1")
    assert found.exhibits[0].run_tags == (("run", "loss"), ("run", "val_loss"))


@pytest.mark.parametrize("values", [falling(100), [0.0] * 10, [1e30, 1e-30], [-5.0, 3.0], []])
def test_finite_losses_are_clear(values):
    assert non_finite_loss((series(values),)) == []


def test_a_training_that_started_again_after_the_nan_is_judged_from_there():
    broken = series([1.0, NAN, NAN, 1.0, 0.9, 0.8])
    broken.steps[:] = [0, 1, 2, 0, 1, 2]
    assert non_finite_loss((broken,)) == []


def test_of_losses_that_broke_together_the_main_one_is_named():
    """Keras writes the validation loss a moment before the training loss of the same epoch."""
    training = series([1.0, 0.5, NAN, NAN], seconds=10, tag="epoch_loss", run="train")
    validation = series([1.0, 0.6, NAN, NAN], seconds=9.9, tag="epoch_loss", run="validation")
    (found,) = non_finite_loss((training, validation))
    assert found.exhibits[0].run_tags[0] == ("train", "epoch_loss")
