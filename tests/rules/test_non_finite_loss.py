import math

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.evidence.losses import Loss
from tb_advisor.rules.non_finite_loss import non_finite_loss
from tests.builders import event_file, falling, series
from tests.dump_builders import dump_files, dump_of, health

NAN, INF = math.nan, math.inf


def training(values, tag="loss", main=True, **where):
    return Loss(series(values, tag=tag, **where), False, main)


def validation(values, tag="val_loss", **where):
    return Loss(series(values, tag=tag, **where), True, True)


def check(losses, **curves):
    return non_finite_loss(losses, Circumstances(**{name: (series(points),) for name, points in curves.items()}))


def test_a_training_loss_that_stays_nan_is_an_error_from_its_first_step_on():
    (found,) = check((training([2.0, 1.5, 1.0, 0.8] + [NAN] * 6, step=10),))
    assert (found.severity, found.onset_step, found.last_step) == (Severity.ERROR, 40, 90)
    assert found.summary == "Training loss (loss) became NaN at step 40 and never recovered; the last finite value was 0.8."
    assert found.impact.share == pytest.approx(5 / 9)
    assert "overfitting" in found.explains


def test_one_nan_among_many_points_is_a_warning_without_a_cost():
    values = falling(1000)
    values[700] = NAN
    (found,) = check((training(values),))
    assert (found.severity, found.onset_step, found.last_step, found.impact) == (Severity.WARNING, 700, 700, None)
    assert found.summary == "Training loss (loss) was NaN at step 700, once; it became finite again."
    assert str(found.exhibits[0].marks[0].label) == "Training loss (loss) NaN"
    assert found.explains == ()
    assert "terminate-on-nan" not in found.fixes


def test_several_are_counted():
    (found,) = check((training([1.0, NAN, 0.9, INF, 0.8]),))
    assert "was NaN at step 1 and in 2 points in all" in found.summary


@pytest.mark.parametrize(("value", "text"), [(INF, "+Inf"), (-INF, "-Inf")])
def test_infinite_counts_too(value, text):
    (found,) = check((training([1.0, value]),))
    assert f"became {text} at step 1" in found.summary


@pytest.mark.parametrize("n", [1, 50])
def test_nan_from_the_first_point(n):
    (found,) = check((training([NAN] * n),))
    assert found.summary == "Training loss (loss) is NaN from its first point, step 0, on."


def test_validation_that_broke_first_is_marked_beside_training_that_is_lost_later():
    (found,) = check((training([1.0, 0.5, 0.4, NAN, NAN]), validation([1.0, NAN, NAN, NAN, NAN])))
    assert (found.severity, found.onset_step) == (Severity.ERROR, 1)
    assert found.summary.startswith("Training loss (loss) became NaN at step 3")
    assert found.impact.share == pytest.approx(1 / 4)
    assert [(mark.start, str(mark.label)) for mark in found.exhibits[0].marks] == [
        (3, "Training loss (loss) NaN from step 3"),
        (1, "Validation loss (val_loss) NaN from step 1"),
    ]


@pytest.mark.parametrize(
    "losses",
    [
        (training(falling(20)), validation([1.0, *[NAN] * 19])),
        (training(falling(20)), training([1.0, *[NAN] * 19], tag="aux_loss", main=False)),
    ],
)
def test_a_run_whose_main_training_loss_stays_finite_is_not_lost(losses):
    (found,) = check(losses)
    assert (found.severity, found.impact, found.explains) == (Severity.WARNING, None, ())
    assert "became NaN at step 1 and never recovered" in found.summary


@pytest.mark.parametrize("values", [falling(100), [0.0] * 10, [1e30, 1e-30], [-5.0, 3.0], []])
def test_finite_losses_are_clear(values):
    assert check((training(values),)) == []


def test_what_came_before_is_said():
    (found,) = check(
        (training([1.0] * 20 + [2.0, 8.0, NAN, NAN]),),
        learning_rates=[1e-3] * 19 + [1.0] * 5,
        gradient_norms=[0.5] * 24,
    )
    assert found.summary.endswith(
        "the last finite value was 8. It had risen to 8 just before, 8 times its level. The learning rate had just risen from 0.001 to 1."
    )


def test_a_gradient_that_breaks_with_the_loss_is_no_cause():
    (found,) = check((training([1.0] * 20 + [NAN] * 4),), gradient_norms=[0.5] * 20 + [NAN] * 4)
    assert found.summary.endswith("the last finite value was 1.")
    (found,) = check((training([1.0] * 20 + [NAN] * 4),), gradient_norms=[0.5] * 19 + [INF] * 5)
    assert found.summary.endswith("The gradient norm was +Inf by then.")


def test_a_dump_of_the_debugger_names_the_operation(tmp_path):
    dump = dump_of(tmp_path, ("Log", "loss/kl/Log", health(nan=1)))
    (found,) = non_finite_loss((training([1.0] * 20 + [NAN] * 4),), Circumstances(), ((".", dump),))
    assert found.summary.endswith(
        "the last finite value was 1. In the debugger's dump the first NaN came out of Log in layer loss/kl, made by train.py:12."
    )
    assert [exhibit.kind for exhibit in found.exhibits] == ["series", "text"]
    assert found.fixes[:2] == ("safe-log", "stable-loss")
    assert "debugger-dump" not in found.fixes
    assert "non-finite-operation" in found.explains


def test_a_dump_in_which_all_is_finite_says_nothing(tmp_path):
    dump = dump_of(tmp_path, ("Log", "loss/kl/Log", health()))
    (found,) = non_finite_loss((training([1.0, NAN]),), Circumstances(), ((".", dump),))
    assert "debugger" not in found.summary
    assert "debugger-dump" in found.fixes


def test_the_dump_beside_a_job_is_joined_to_its_loss(tmp_path):
    event_file(tmp_path / "train", {"epoch_loss": [1.0, 0.5, NAN, NAN]})
    dump_files(tmp_path / "debug", [("Log", "loss/kl/Log", health(nan=1))])
    shown = [(outcome.rule, diagnosis) for outcome, diagnosis in diagnose(tmp_path).diagnoses if diagnosis.shown]
    assert [rule for rule, _ in shown] == ["non-finite-loss"]
    assert "first NaN came out of Log" in shown[0][1].summary


def test_a_dump_alone_is_read_too(tmp_path):
    dump_files(tmp_path, [("Log", "loss/kl/Log", health(nan=1))])
    report = diagnose(tmp_path)
    assert [outcome.rule for outcome, diagnosis in report.diagnoses if diagnosis.shown] == ["non-finite-operation"]
    assert "#debugger-v2" in str(report.as_json())
