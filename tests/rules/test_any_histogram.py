"""Whatever histograms a log holds, a rule says something or that it cannot; it never fails."""

import warnings
from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.rules import all_rules
from tb_advisor.series import Histograms, Series

ODD = st.sampled_from([0.0, 1.0, -1.0, 0.99, 1e-300, 3e38, 1.7e308, -1.7e308, float("nan"), float("inf"), -float("inf")])
BUCKETS = st.lists(st.tuples(ODD, ODD, st.sampled_from([0.0, 1.0, 50.0, 1e300, -1.0])), max_size=4)
STEPS = st.one_of(st.none(), st.lists(st.sampled_from([-(2**63), 0, 1, 7, 2**63 - 1]), min_size=8, max_size=8))


def tensor(tag, rows, steps):
    numbers = np.arange(len(rows), dtype=np.int64) if steps is None else np.array(steps[: len(rows)], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(buckets) for buckets in rows])]).astype(np.int64)
    buckets = np.array([bucket for buckets in rows for bucket in buckets], dtype=np.float64).reshape(-1, 3)
    return Histograms(numbers, 1e9 + np.arange(len(rows), dtype=np.float64), offsets, buckets, "run", tag)


@given(rows=st.lists(BUCKETS, min_size=1, max_size=8), steps=STEPS, rate=ODD)
@settings(max_examples=200, deadline=None)
def test_no_rule_fails_on_any_histogram(rows, steps, rate):
    tags = ("fc1.weight", "fc1.weight.grad", "fc2.weight", "activations/act1")
    tensors = {tag: tensor(tag, rows, steps) for tag in tags}
    rates = Series(np.arange(3), 1e9 + np.arange(3.0), np.full(3, rate), "run", "lr")
    evidence = Evidence(Job("run", {"run": Run("run", {"lr": rates}, {}, "", (), 0, (), tensors)}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arithmetic on the largest doubles is no failure
        for rule in all_rules():
            with suppress(Missing):
                for found in rule(*(evidence[name] for name in rule.evidence)):
                    assert found.summary
