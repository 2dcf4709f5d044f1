import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.overfitting import overfitting
from tests.builders import falling, series

TRAIN = [2.0 * 0.85**i + 0.01 for i in range(30)]


def valley(best_at, rise, n=30, best=0.6):
    """A validation loss that falls to `best` at `best_at` and then rises by `rise` of it."""
    return [*np.linspace(1.5, best, best_at + 1), *np.linspace(best, best * (1 + rise), n - best_at)[1:]]


def check(val, train=TRAIN):
    return overfitting(series(train, tag="train_loss"), series(val, tag="val_loss", seconds=60))


def test_a_clear_rise_is_found_from_the_best_step_on():
    (found,) = check(valley(10, 0.6))
    assert (found.onset_step, found.last_step, found.confidence) == (10, 29, Confidence.HIGH)
    assert found.summary.startswith("Validation loss was lowest at step 10 (0.6); it has risen 56.8% since, while training loss fell")
    assert str(found.impact.text) == "65.5% of the run (19 min) came after the best checkpoint."


def test_a_small_rise_is_found_with_less_confidence():
    (found,) = check(valley(12, 0.2))
    assert found.confidence is Confidence.MEDIUM


def test_axes_of_different_units_are_matched_by_wall_time():
    train = series(falling(3000, end=0.01), seconds=1, tag="train_loss")
    (found,) = overfitting(train, series(valley(10, 0.6), seconds=100, tag="val_loss"))
    assert found.exhibits[0].run_tags == (("run", "val_loss"),)


@pytest.mark.parametrize(
    ("reason", "val", "train"),
    [
        ("healthy", falling(30), TRAIN),
        ("a plateau", [*np.linspace(1.5, 0.6, 15), *([0.6] * 15)], TRAIN),
        ("just below 15%", valley(12, 0.14), TRAIN),
        ("one bad evaluation at the end", [*falling(29), 2.0], TRAIN),
        ("noise as large as the rise", [*np.linspace(1.5, 0.8, 6), 0.5, 1.1, 0.7, 1.2, 0.6, 1.1, 0.5, 1.2, 0.7, 0.6], TRAIN[:16]),
        ("near zero", [0.5, 0.1, 0.01, 0.011, 0.02, 0.025, 0.03, 0.03], TRAIN[:8]),
        ("best near the end", valley(26, 0.4), TRAIN),
        ("training rises too: divergence", valley(10, 0.6), [*TRAIN[:11], *np.linspace(0.4, 3.0, 19)]),
    ],
)
def test_clear(reason, val, train):
    assert check(val, train) == []


@pytest.mark.parametrize("evaluations", [20, 60, 200])
@pytest.mark.parametrize("plateau", [True, False])
def test_noisy_evaluations_of_a_healthy_run_are_clear(evaluations, plateau):
    """The lowest of many noisy evaluations is a lucky one, and the end lies above it for that reason alone."""
    progress = np.arange(evaluations) / evaluations
    train = 1.5 * np.exp(-5 * progress) + 0.5 * (1 - 0.25 * progress)
    level = 1.5 * np.exp(-5 * progress) + 0.55 if plateau else train
    found = []
    for seed in range(40):
        noise = 1 + 0.12 * np.random.default_rng(seed).standard_normal(evaluations)
        found += check(level * noise, train)
    assert found == []


def test_too_few_evaluations_are_said():
    with pytest.raises(Missing, match="val_loss has 4 finite points; 5 are needed"):
        check([1.0, 0.5, 0.8, 1.0])
