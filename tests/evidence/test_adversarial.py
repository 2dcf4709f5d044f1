import pytest

from tb_advisor.message import Missing
from tests.builders import series
from tests.evidence.test_losses import evidence


def losses(**levels):
    return evidence(*(series([level] * 9, run="exp", tag=tag) for tag, level in levels.items()))["adversarial_losses"]


def test_the_total_of_each_side():
    found = losses(d_loss=1.4, d_loss_real=0.7, d_loss_fake=0.7, g_loss=0.7)
    assert (found.generator.tag, found.discriminator.tag) == ("g_loss", "d_loss")


def test_losses_below_zero_say_nothing():
    with pytest.raises(Missing, match="critic_loss takes values below zero"):
        losses(generator_loss=1.0, critic_loss=-2.0)


def test_other_tasks():
    with pytest.raises(Missing, match="no pair of adversarial losses"):
        losses(loss=1.0)
