import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.adversarial import AdversarialLosses
from tb_advisor.message import Missing
from tb_advisor.rules.discriminator_wins import discriminator_wins
from tests.builders import series

NOISE = 1 + 0.05 * np.random.default_rng(0).standard_normal(100)


def check(generator, discriminator):
    return discriminator_wins(AdversarialLosses(series(generator, tag="g_loss"), series(discriminator, tag="d_loss")))


def rising(to):
    return np.linspace(0.7, to, 100) * NOISE


def falling(to):
    return np.interp(np.arange(100), [0, 10, 50, 99], [1.39, 1.39, to, to]) * NOISE


def test_the_discriminator_tells_all_samples():
    (found,) = check(rising(12), falling(0.01))
    assert found.confidence is Confidence.HIGH
    assert 40 <= found.onset_step <= 55
    assert found.summary.startswith("The discriminator's loss fell to 0.0")


def test_a_milder_case():
    assert check(rising(5), falling(0.08))[0].confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("reason", "generator", "discriminator"),
    [
        ("a balance", 0.8 * NOISE, 1.3 * NOISE),
        ("the discriminator leads", rising(2.5), falling(0.4)),
        ("just above", rising(5), falling(0.15)),
        ("the generator keeps up", 0.8 * NOISE, falling(0.01)),
        ("the generator recovers", np.interp(np.arange(100), [0, 70, 99], [0.7, 12, 3.5]), falling(0.05)),
        ("small from the start", rising(12), 0.05 * NOISE),
    ],
)
def test_clear(reason, generator, discriminator):
    assert check(generator, discriminator) == []


def test_few_points_are_said():
    with pytest.raises(Missing, match="g_loss has 5 finite points; 20 are needed"):
        check([1.0] * 5, [1.0] * 5)
