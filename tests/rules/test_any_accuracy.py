"""Whatever accuracies a log holds, no rule fails on them."""

import warnings
from contextlib import suppress

from hypothesis import given, settings

from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.rules import all_rules
from tests.rules.test_any_curve import STEPS, VALUES, curve


@given(losses=VALUES, train=VALUES, val=VALUES, steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_no_rule_fails_on_any_accuracy(losses, train, val, steps):
    named = (("loss", losses), ("val_loss", losses[::2]), ("acc", train), ("val_acc", val), ("val_mae", val))
    curves = [curve("run", tag, values, steps) for tag, values in named if values]
    evidence = Evidence(Job("run", {"run": Run("run", {c.tag: c for c in curves}, {}, "", (), 0, ())}, read_at=1e12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow in float64 arithmetic on 3e38 is no failure
        for rule in all_rules():
            with suppress(Missing):
                rule(*(evidence[name] for name in rule.evidence))
