"""Whatever a log holds, a rule says something or that it cannot; it never fails."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Status
from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.report import summarize
from tb_advisor.rules import all_rules
from tb_advisor.series import Series
from tests.builders import event_file

VALUES = st.one_of(
    st.lists(st.floats(width=32), max_size=60),
    st.lists(st.sampled_from([0.0, 1.0, 0.5, 3e38, -3e38, 1e-45, float("nan"), float("inf")]), max_size=60),
    st.builds(lambda n, low, high: list(np.linspace(low, high, n)), st.integers(1, 60), st.floats(0, 10), st.floats(0, 10)),
)
STEPS = st.one_of(st.none(), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=60, max_size=60))


def curve(run, tag, values, steps):
    points = np.array(values, dtype=np.float64)
    numbers = np.arange(len(points), dtype=np.int64) if steps is None else np.array(steps[: len(points)], dtype=np.int64)
    return Series(numbers, 1e9 + np.arange(len(points), dtype=np.float64), points, run, tag)


@given(train=VALUES, val=VALUES, memory=VALUES, rate=VALUES, norm=VALUES, steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_no_rule_fails_on_any_curve(train, val, memory, rate, norm, steps):
    tags = {"loss": train, "val_loss": val, "memory_mb": memory, "samples_per_sec": memory, "lr": rate, "grad_norm": norm}
    never_fails(tags, steps)


@given(loss=VALUES, train=VALUES, val=VALUES, steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_no_rule_fails_on_any_metric(loss, train, val, steps):
    never_fails({"loss": loss, "val_loss": loss[::2], "acc": train, "val_acc": val, "val_mae": val}, steps)


@given(returns=VALUES, entropy=VALUES, update=VALUES, steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_no_rule_fails_on_any_curve_of_reinforcement_learning(returns, entropy, update, steps):
    tags = {
        "rollout/ep_rew_mean": returns,
        "entropy_loss": entropy,
        "approx_kl": update,
        "clip_fraction": update,
        "explained_variance": entropy,
    }
    never_fails(tags, steps)


@given(generator=VALUES, discriminator=VALUES, time=VALUES, steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_no_rule_fails_on_any_curve_of_adversarial_training(generator, discriminator, time, steps):
    never_fails({"g_loss": generator, "d_loss": discriminator, "step_time": time}, steps)


def never_fails(tags, steps):
    curves = [curve("run", tag, values, steps) for tag, values in tags.items() if values]
    job = Job("run", {"run": Run("run", {c.tag: c for c in curves}, {}, "", (), 0, ())}, read_at=1e12)
    evidence = Evidence(job)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow in float64 arithmetic on 3e38 is no failure
        summarize(job, evidence)
        for rule in all_rules():
            with suppress(Missing):
                rule(*(evidence[name] for name in rule.evidence))


@pytest.mark.parametrize("seed", range(8))
def test_no_flipped_byte_breaks_the_report(tmp_path, seed):
    generator = np.random.default_rng(seed)
    path = event_file(tmp_path, {"loss": list(generator.normal(1, 0.1, 200)), "val_loss": list(generator.normal(1, 0.1, 50))})
    data = bytearray(path.read_bytes())
    for position in generator.integers(0, len(data), 30):
        data[position] ^= 1 << int(generator.integers(0, 8))
    path.write_bytes(bytes(data[: int(generator.integers(1, len(data)))]))
    report = diagnose(tmp_path)
    assert not [outcome for outcome in report.outcomes if outcome.status is Status.ERROR]
    report.as_json()
