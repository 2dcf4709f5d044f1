import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.adversarial import AdversarialLosses
from tb_advisor.message import Missing
from tb_advisor.rules.generator_collapse import generator_collapse
from tests.builders import series

NOISE = 1 + 0.05 * np.random.default_rng(0).standard_normal(100)


def check(generator, discriminator):
    return generator_collapse(AdversarialLosses(series(generator, tag="g_loss"), series(discriminator, tag="d_loss")))


def moved(start, end):
    return np.interp(np.arange(100), [0, 10, 50, 99], [start, start, end, end]) * NOISE


@pytest.mark.parametrize("d_end", [2.5, 6.0])
def test_every_sample_passes(d_end):
    (found,) = check(moved(0.7, 0.01), moved(1.39, d_end))
    assert found.confidence is Confidence.MEDIUM
    assert 40 <= found.onset_step <= 55
    assert found.summary.startswith("The generator's loss fell to 0.0")


@pytest.mark.parametrize(
    ("reason", "generator", "discriminator"),
    [
        ("a balance", 0.8 * NOISE, 1.3 * NOISE),
        ("the generator leads", moved(0.7, 0.3), moved(1.39, 1.8)),
        ("just above", moved(0.7, 0.08), moved(1.39, 3.0)),
        ("a balance of least squares", 0.3 * NOISE, 0.5 * NOISE),
        ("both fall", moved(0.7, 0.01), moved(1.39, 0.5)),
    ],
)
def test_clear(reason, generator, discriminator):
    assert check(generator, discriminator) == []


def test_few_points_are_said():
    with pytest.raises(Missing, match="20 are needed"):
        check([1.0] * 5, [1.0] * 5)
