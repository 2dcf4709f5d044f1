import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.evidence.losses import Loss
from tb_advisor.message import Missing
from tb_advisor.rules.oscillating_loss import oscillating_loss
from tests.builders import falling, series


def check(train, val=(), **curves):
    losses = [Loss(series(train), False, True)]
    if len(val):
        losses.append(Loss(series(val, step=max(1, len(train) // len(val)), tag="val_loss"), True, True))
    around = {name: (series(points, tag=name),) for name, points in curves.items()}
    return oscillating_loss(losses[0].series, tuple(losses), Circumstances(**around))


def zigzag(n, level=0.5, size=0.2, fall=0.0):
    """A fall to `level` in a fifth of the run, then waves of `size` around it with a period of two and a half points."""
    points = np.arange(n)
    waves = 1 + size * np.sin(2 * np.pi * points / 2.5) * (points > n / 5)
    return (level * (1 - fall * points / n) + 2 * np.exp(-points / (n / 20))) * waves


def noisy(n, noise, **curve):
    return np.array(falling(n, **curve)) * (1 + noise * np.random.default_rng(1).standard_normal(n))


STEADY = zigzag(40, size=0.05, fall=0.45)


def test_waves_of_both_losses_are_found():
    (found,) = check(zigzag(40), zigzag(40, level=0.6))
    assert (found.onset_step, found.last_step, found.confidence) == (13, 39, Confidence.HIGH)
    assert found.summary.startswith("Training loss goes up and down by")


def test_waves_below_the_noise_of_batches_are_found_with_the_evaluations():
    waves = np.repeat(zigzag(40), 10) * (1 + 0.3 * np.random.default_rng(0).standard_normal(400))
    (found,) = check(waves, zigzag(40, level=0.6))
    assert found.onset_step == 133


def test_one_burst_in_the_first_third_is_no_progress():
    burst = zigzag(40)
    burst[13:15] = 40.0
    (found,) = check(burst, zigzag(40, level=0.6))
    assert found.confidence is Confidence.HIGH


def test_an_explosion_in_the_first_steps_is_no_level():
    (found,) = check([1.0, *([900.0] * 5), *zigzag(34)], zigzag(40, level=0.6))
    assert found.onset_step == 13


def test_a_fall_that_is_still_above_the_start_is_no_improvement():
    waves = 2 - zigzag(40, size=0.0) * 0.1 + 0.4 * (np.arange(40) % 2) - 0.01 * np.arange(40)
    (found,) = check([0.5, 0.6, 0.7, *waves[3:]], [0.5, 0.6, 0.7, *waves[3:]])
    assert found.last_step == 39


@pytest.mark.parametrize("val", [[], zigzag(10)])
def test_without_evaluations_the_confidence_is_low(val):
    (found,) = check(zigzag(40), val)
    assert found.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("reason", "train", "val"),
    [
        ("healthy", falling(40), falling(40)),
        ("small batches with a smooth validation loss", noisy(400, 0.5), falling(40)),
        ("a noisy validation set with a smooth training loss", falling(400), noisy(40, 0.3)),
        ("few evaluations that are smooth", zigzag(40), falling(10)),
        ("waves that still fall", zigzag(40, fall=0.9), zigzag(40, fall=0.9)),
        ("waves just below 6%", zigzag(40, size=0.025), zigzag(40)),
        ("a validation loss that still improves", zigzag(40), zigzag(40, level=0.6, fall=0.9)),
        ("a validation loss that improves less, but steadily", zigzag(40), zigzag(40, size=0.06, fall=0.35)),
        ("a validation loss that has converged", zigzag(40), zigzag(40, level=0.05)),
        ("a validation loss that settles", zigzag(40), [*zigzag(27), *([0.5] * 13)]),
        ("a training loss that falls steadily, of an overfitted model", STEADY, zigzag(40, level=1.5)),
        ("converged near zero", noisy(40, 0.3, end=0.01), noisy(40, 0.3, end=0.01)),
        ("flat", [2.3] * 40, [2.3] * 40),
        ("one spike", [*falling(20), 9.0, *falling(19, start=0.6)], [*falling(20), 9.0, *falling(19, start=0.6)]),
    ],
)
def test_clear(reason, train, val):
    assert check(train, val) == []


def test_warm_restarts_make_waves_by_design():
    assert check(zigzag(40), zigzag(40), learning_rates=[1e-3, 5e-4, 1e-6, 1e-6] * 10) == []


def test_a_curve_that_begins_with_a_restart_has_no_start():
    loss = series(zigzag(40))
    with pytest.raises(Missing, match="begins with a restart"):
        oscillating_loss(loss, (Loss(loss, False, True),), Circumstances(restarts=(1,)))


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="15 are needed"):
        check([1.0] * 14)
