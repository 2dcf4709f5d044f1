"""Whatever a log holds of its gradients, a rule says something or that it cannot; it never fails."""

import warnings
from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.rules.exploding_gradients import exploding_gradients
from tb_advisor.rules.gradient_clipping_saturation import gradient_clipping_saturation
from tb_advisor.rules.vanishing_gradients import vanishing_gradients
from tb_advisor.series import Histograms, Series

VALUES = st.one_of(
    st.lists(st.floats(width=32), max_size=40),
    st.lists(st.sampled_from([0.0, 1.0, 1e-9, 3e38, 1e308, -1.0, float("nan"), float("inf")]), max_size=40),
)
STEPS = st.one_of(st.just(list(range(40))), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=40, max_size=40))


@given(norm=VALUES, first=VALUES, last=VALUES, loss=VALUES, edges=st.lists(st.floats(), min_size=6, max_size=6), steps=STEPS)
@settings(max_examples=200, deadline=None)
def test_no_rule_fails_on_any_gradient(norm, first, last, loss, edges, steps):
    tags = {"grad_norm": norm, "grad_norm/fc1.weight": first, "grad_norm/fc2.weight": last, "loss": loss}
    scalars = {
        tag: Series(np.array(steps[: len(values)]), 1e9 + np.arange(len(values)), np.array(values), "run", tag)
        for tag, values in tags.items()
        if values
    }
    histograms = {
        tag: Histograms(
            np.array(steps[:3]), np.arange(3.0), np.arange(4), np.array([[*edges[i : i + 2], 1.0] for i in range(3)]), "run", tag
        )
        for tag in ("gradients/fc1.weight", "gradients/fc2.weight")
    }
    evidence = Evidence(Job("run", {"run": Run("run", scalars, {}, "", (), 0, (), histograms)}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow in float64 arithmetic on 1e308 is no failure
        for rule in (exploding_gradients, vanishing_gradients, gradient_clipping_saturation):
            with suppress(Missing):
                for found in rule(*(evidence[name] for name in rule.evidence)):
                    assert found.summary
