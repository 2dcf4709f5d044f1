"""What a run already does is not advised, what its evidence points at comes first, and its numbers are in the snippets."""

import math
from contextlib import suppress
from inspect import signature

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
from tb_advisor.evidence import Evidence
from tb_advisor.evidence.hparams import NAME, Hyperparameter
from tb_advisor.evidence.losses import Loss
from tb_advisor.evidence.restarts import Restart
from tb_advisor.fixes import all_fixes, conditions, orders, values
from tb_advisor.fixes.conditions import FOLLOWED
from tb_advisor.fixes.orders import ORDERS
from tb_advisor.fixes.values import VALUES as VALUES_OF_RUN
from tb_advisor.logdir.jobs import Job, Run, load
from tb_advisor.message import Message, Missing
from tb_advisor.rules import all_rules
from tests.builders import event_file, falling, series
from tests.rules.test_any_curve import VALUES, curve

RULES = {rule.id: rule for rule in all_rules()}


def at(step):
    return Diagnosis(Message("x"), Severity.WARNING, Confidence.HIGH, onset_step=step)


def losses(points):
    return (Loss(series(points), False, True),)


def settings(**named):
    return tuple(Hyperparameter(name, value, NAME) for name, value in named.items())


def test_the_tables_name_fixes_and_rules_that_exist():
    assert set(FOLLOWED) <= set(all_fixes())
    for order in ORDERS:
        assert set(order.first) <= set(RULES[order.rule].fixes), order


@pytest.mark.parametrize(
    ("rates", "decays", "warms_up"),
    [
        ([0.1] * 50, False, False),
        ([0.1 * 0.95**i for i in range(50)], True, False),
        ([*(0.01 * i for i in range(1, 11)), *(0.1 - 0.0025 * i for i in range(40))], True, True),
        ([*([0.001] * 30), *([0.1] * 20)], False, False),  # a jump in mid-run is no warm-up
        ([0.01 * i for i in range(50)], False, False),  # nor is a rate that never stops rising
    ],
)
def test_a_rate_that_decays_or_warms_up_is_told_from_one_that_does_not(rates, decays, warms_up):
    assert (conditions.rate_decays(series(rates)), conditions.rate_warms_up(series(rates))) == (decays, warms_up)


@pytest.mark.parametrize(("norms", "clipped"), [([1.0] * 15 + [0.3] * 10, True), ([1.0] * 5 + [0.3] * 20, False), ([0.0] * 30, False)])
def test_a_norm_at_its_ceiling_is_clipped(norms, clipped):
    assert conditions.norm_sits_at_ceiling(series(norms)) is clipped


@pytest.mark.parametrize(
    ("val", "at_best"),
    [
        ([1.0 + math.exp(-i / 5) for i in range(50)], False),  # within a percent of its best long before the end
        ([2.0 - 0.03 * i for i in range(50)], True),
        ([1.0, *([0.5] * 20)], False),
        ([2.0 - 0.03 * i for i in range(40)] + [1.5] * 10, False),
        ([1.0, 0.5, math.nan], False),
    ],
)
def test_a_run_that_ended_at_its_best_needs_no_early_stopping(val, at_best):
    assert conditions.ends_at_best(series(val)) is at_best


def test_a_run_that_stopped_at_its_first_nan_needs_no_stop():
    assert conditions.stops_at_nan(losses([1.0, 0.5, math.nan]))
    assert not conditions.stops_at_nan(losses([1.0, 0.5, *[math.nan] * 9]))


def test_hyperparameters_say_what_is_set():
    weight_decay, clips = FOLLOWED["weight-decay"][0], FOLLOWED["clip-gradients"][1]
    assert weight_decay(settings(weight_decay=0.01)) and not weight_decay(settings(weight_decay=0.0))
    assert clips(settings(max_grad_norm=1.0)) and not clips(settings(lr=0.1))
    assert FOLLOWED["mixed-precision"][1](settings(bf16=True)) and not FOLLOWED["mixed-precision"][1](settings(bf16=False))


def test_values_are_those_of_the_run():
    rates = (series([0.01, 0.3, 0.1]),)
    assert (values.rate(rates, ()), values.lower_rate(rates, ())) == (0.3, pytest.approx(0.03))
    assert values.rate((), settings(lr=0.02)) == 0.02 and values.rate((), ()) is None
    assert values.rate((series([0.0, 0.0]),), ()) is None
    assert values.best_step(series([3.0, 1.0, 2.0], step=10)) == 10
    assert values.patience(series([5.0, 4.0, 4.5, 4.5, 4.5, 4.5, 4.5, 3.0, 3.5])) == 7
    assert values.named_batch(settings(batch_size=64)) == 64 and values.named_batch(settings(batch_size=0.5)) is None


def test_the_rate_to_try_behind_a_jump_is_that_before_it():
    rates = series([*([0.002] * 50), *([3.0] * 50)])
    assert values.rate_before_rise(rates, at(50)) == 0.002
    assert values.rate_before_rise(rates, at(70)) is None and values.rate_before_rise(rates, at(None)) is None
    assert orders.rate_rose(rates, at(51)) and not orders.rate_rose(rates, at(30))


def test_the_ceiling_is_that_of_the_norms_before_the_trouble():
    norm = series([*range(1, 101), *([1e6] * 100)])
    assert values.clip_norm(norm, at(100)) == pytest.approx(90.1)
    assert values.clip_norm(norm, at(5)) is None  # too few norms before it


def test_nan_out_of_nothing_points_at_the_data_or_an_operation():
    assert orders.nan_out_of_nothing(losses([*falling(20), math.nan, math.nan]))
    assert orders.nan_out_of_nothing(losses([math.nan] * 5))
    assert not orders.nan_out_of_nothing(losses([1.0, 1.0, 50.0, 1e9, math.nan]))
    assert not orders.nan_out_of_nothing(losses(falling(20)))
    assert orders.infinite_out_of_nothing(losses([*falling(20), math.inf, math.nan]))


def test_a_spike_that_is_over_with_the_next_batch_was_the_batch():
    assert not orders.loss_stays_up(series([*([0.5] * 20), 90.0, 0.5, 0.6, 0.5]), at(20))
    assert orders.loss_stays_up(series([*([0.5] * 20), 6.0, 4.8, 3.3, 2.4, 1.0]), at(20))


def test_a_model_that_stands_still_has_the_same_validation_loss():
    assert orders.model_stands_still(series([2.3087, 2.3087, 2.3086]))
    assert orders.model_moves(series([2.303, 2.298, 2.291]))
    assert not orders.model_moves(series([2.303]))


def test_a_validation_loss_that_is_much_lower_is_a_leak():
    train = series([1.0] * 20)
    assert orders.validation_is_little_better(train, series([0.5] * 20))
    assert not orders.validation_is_little_better(train, series([0.01] * 20))
    assert not orders.validation_is_little_better(train, train)


def test_a_counter_that_was_reset_while_the_loss_went_on_is_resumed(tmp_path):
    event_file(tmp_path, {"loss": falling(50)})
    (job,) = load(tmp_path).jobs
    (run,) = job.runs

    def restart(after):
        return (Restart(run, "loss", 0, 49, 0, 1.0, 1.0, 1, before=0.51, after=after),)

    assert orders.goes_on_after_reset(job, restart(0.52))
    assert not orders.goes_on_after_reset(job, restart(1.9))


@given(train=VALUES, val=VALUES, rate=VALUES, norm=VALUES, onset=st.none() | st.integers(-(2**63), 2**63 - 1))
@hypothesis.settings(max_examples=100, deadline=None)
def test_no_curve_breaks_a_condition_an_order_or_a_value(train, val, rate, norm, onset):
    tags = {"loss": train, "val_loss": val, "lr": rate, "grad_norm": norm}
    scalars = {tag: curve("run", tag, points, None) for tag, points in tags.items() if points}
    evidence = Evidence(Job("run", {"run": Run("run", scalars, {}, "", (), 0, ())}, read_at=1e12))
    functions = [*(f for each in FOLLOWED.values() for f in each), *(order.condition for order in ORDERS)]
    for function in (*functions, *(f for value in VALUES_OF_RUN.values() for f in value.of)):
        with suppress(Missing), np.errstate(all="ignore"):
            found = function(*(at(onset) if name == "diagnosis" else evidence[name] for name in signature(function).parameters))
            assert found is None or isinstance(found, (bool, np.bool_)) or math.isfinite(found)


def test_the_report_fills_snippets_and_says_what_is_from_the_run(tmp_path):
    val = [2.0 - 0.1 * i for i in range(10)] + [1.0 + 0.1 * i for i in range(20)]
    event_file(tmp_path, {"train/loss": falling(30, end=0.01), "val/loss": val, "train/lr": [0.02] * 30, "train/grad_norm": [1.0] * 30})
    found = next(o for o in diagnose(tmp_path).as_json()["outcomes"] if o["rule"] == "overfitting")
    (overfitting,) = found["diagnoses"]
    stop, decay = overfitting["fixes"][:2]
    assert (stop["id"], stop["cost"], stop["figure"]) == ("early-stopping", "one line", "validation loss")
    assert "the checkpoint of step 10" in stop["code"]["pytorch"] and 'patience = float("inf"), 3' in stop["code"]["pytorch"]
    assert [(value["name"], value["value"]) for value in stop["from_run"]] == [("best_step", 10), ("patience", 3)]
    assert stop["from_run"][0]["text"] == "the step of the lowest validation loss"
    assert "lr=0.02, weight_decay" in decay["code"]["pytorch"]
    assert stop["source"]["url"].startswith("https://") and set(stop["urls"]) == set(stop["code"])


def test_what_the_run_already_does_is_not_advised(tmp_path):
    loss = [*falling(40, end=0.2), *([9.0] * 40)]
    constant, decaying = [0.1] * 80, [0.1 * 0.97**i for i in range(80)]
    named = {}
    for name, rates in (("constant", constant), ("decaying", decaying)):
        event_file(tmp_path / name, {"train/loss": loss, "lr": rates})
        report = diagnose(tmp_path / name)
        (found,) = [d for o, d in report.diagnoses if o.rule == "loss-divergence"]
        named[name] = found
    assert "log-learning-rate" not in named["constant"].fixes  # it is logged
    assert "log-gradient-norm" in named["constant"].fixes  # it is not
    assert named["constant"].fix_values["lower_rate"] == pytest.approx(0.01)
