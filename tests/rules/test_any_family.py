"""Whatever the jobs of a family hold, a rule over them says something or that it cannot; it never fails."""

import math
import warnings
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from tb_advisor.evidence import Evidence
from tb_advisor.evidence.hparams import Hyperparameter
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.report import plain
from tb_advisor.rules import all_rules
from tests.rules.test_any_curve import STEPS, VALUES, curve
from tests.trial_builders import trial

ANY_NUMBER = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e308, -1e308, 5e-324]), st.floats(allow_nan=False, allow_infinity=False))
NAMES = st.sampled_from(["lr0.1", "lr1", "lr10", "lr1e-3", "lr=0", "lr=-1", "lr=inf", "lr=nan", "lr=x"])


def never_fails(trials):
    evidence = Evidence(trials=tuple(trials))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rule in all_rules():
            if rule.evidence == ("sweeps",):
                with suppress(Missing):
                    for diagnosis in rule(evidence["sweeps"]):
                        plain(diagnosis)
                        assert diagnosis.summary


@given(jobs=st.lists(st.tuples(NAMES, st.integers(0, 2), VALUES, VALUES, STEPS), min_size=2, max_size=6))
@settings(max_examples=100, deadline=None)
def test_no_rule_fails_on_any_curves(jobs):
    trials = []
    for index, (name, seed, train, val, steps) in enumerate(jobs):
        run = f"{name}_seed{seed}_{index}"
        curves = {tag: curve(run, tag, values, steps) for tag, values in {"loss": train, "val_loss": val, "val_acc": val}.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trials.append(Evidence(Job(run, {run: Run(run, curves, {}, "", (), 0, ())}, read_at=1e12))["trial"])
    never_fails(trials)


@given(
    jobs=st.lists(
        st.tuples(ANY_NUMBER, st.integers(0, 2), st.one_of(st.none(), ANY_NUMBER), ANY_NUMBER, ANY_NUMBER, st.booleans()),
        min_size=2,
        max_size=8,
    )
)
@settings(max_examples=200, deadline=None)
def test_no_rule_fails_on_any_settings(jobs):
    never_fails(
        trial(f"{i}", value, lr=rate, seed=seed, start=start, end=end, finished=finished, step_seconds=abs(rate), run_seconds=abs(start))
        for i, (rate, seed, value, start, end, finished) in enumerate(jobs)
    )


def test_values_that_are_no_finite_numbers_are_words():
    assert [Hyperparameter("lr", value, "").number for value in (math.nan, math.inf, "nan", True)] == [None] * 4
