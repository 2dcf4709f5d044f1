import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.returns import Policy
from tb_advisor.message import Missing
from tb_advisor.rules.policy_collapse import policy_collapse
from tests.builders import series

NOISE = np.random.default_rng(0).standard_normal(100)
FLAT, RISING, LOST = 20 + NOISE, np.linspace(20, 200, 100) + NOISE, np.interp(np.arange(100), [0, 30, 60, 99], [20, 200, 20, 20]) + NOISE
GONE = np.maximum(0.001, 0.69 * np.exp(-np.arange(100) / 8))
KEPT = np.linspace(0.69, 0.5, 100)


def check(returns, entropy=None, kl=None, clipped=None):
    def curve(values, tag):
        return None if values is None else series(values, tag=tag, step=1000)

    return policy_collapse(Policy(curve(entropy, "entropy"), curve(kl, "kl"), curve(clipped, "clip")), series(returns, tag="return"))


@pytest.mark.parametrize("returns", [FLAT, LOST])
def test_entropy_near_zero_without_a_return(returns):
    (found,) = check(returns, GONE)
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert 20_000 <= found.onset_step <= 30_000
    assert found.summary.startswith("The policy's entropy fell from")


def test_updates_that_are_too_large():
    (found,) = check(FLAT, KEPT, np.full(100, 0.3), np.full(100, 0.7))
    assert "median KL 0.3, 70% of the samples clipped" in found.summary


@pytest.mark.parametrize(
    ("reason", "case"),
    [
        ("a solved task needs no entropy", (RISING, GONE)),
        ("entropy is kept", (FLAT, KEPT)),
        ("near zero only at the end", (FLAT, np.linspace(0.69, 0.0, 100))),
        ("entropy of continuous actions", (FLAT, np.linspace(1.4, -2.0, 100))),
        ("just above", (FLAT, np.maximum(0.06, GONE))),
        ("usual updates", (FLAT, KEPT, np.full(100, 0.02), np.full(100, 0.15))),
        ("large updates that work", (RISING, KEPT, np.full(100, 0.3), np.full(100, 0.7))),
        ("zeros", (FLAT, np.zeros(100))),
    ],
)
def test_clear(reason, case):
    assert check(*case) == []


def test_few_points_are_said():
    with pytest.raises(Missing, match="fewer than 20 finite points"):
        check(FLAT, GONE[:5])
