import numpy as np
import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.message import Missing
from tb_advisor.rules.loss_divergence import loss_divergence
from tests.builders import falling, series


def check(loss, rate=()):
    return loss_divergence(loss, Circumstances(learning_rates=(series(rate, tag="lr"),) if len(rate) else ()))


def rising_from(values, peak, n=60):
    return [*values, *np.linspace(values[-1], peak, n)]


def test_a_loss_that_blows_up_in_mid_run_is_found_where_it_turns():
    (found,) = check(series(rising_from(falling(100), 50.0)))
    assert found.severity is Severity.ERROR
    assert 95 <= found.onset_step <= 115
    assert "rose to" in found.summary


def test_a_loss_that_loses_a_third_of_its_progress_is_found():
    (found,) = check(series(rising_from(falling(100, start=2.0, end=0.05), 0.9)))
    assert found.impact.share == pytest.approx(60 / 160, abs=0.1)


@pytest.mark.parametrize("end", [10.0, 1e3, 1e8])
def test_the_turn_does_not_depend_on_how_far_the_loss_rises(end):
    values = [*falling(500, end=0.1), *np.geomspace(0.1, end, 500)]
    (found,) = check(series(values))
    assert 480 <= found.onset_step <= 620


def test_the_turn_is_the_last_low_point_before_a_jump():
    (found,) = check(series([*falling(250, noise=0.05), *([2.5] * 250)]))
    assert 240 <= found.onset_step <= 249


def test_the_learning_rate_that_rose_at_the_turn_is_named():
    (found,) = check(series([*falling(250), *([2.5] * 250)]), [1e-3] * 249 + [0.3] * 251)
    assert found.summary.endswith("it rose to 2.5. The learning rate had just risen from 0.001 to 0.3.")


def test_an_early_excursion_does_not_move_the_turn():
    values = falling(400, end=0.1)
    values[40:60] = [9.0] * 20
    (found,) = check(series([*values, *([5.0] * 200)]))
    assert found.onset_step == 399


def test_zeros_in_a_diverged_loss_do_not_move_the_turn():
    (found,) = check(series([*falling(50, end=0.1), *([30.0, 0.0, 12.0, 40.0, 0.0] * 10)]))
    assert 49 <= found.onset_step <= 51


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", falling(200)),
        ("noisy", falling(200, noise=0.4)),
        ("just below twice its best", rising_from(falling(100, end=0.5), 0.9)),
        ("a small rise near zero", rising_from(falling(100, end=0.001), 0.01)),
        ("a spike that comes back", [*falling(100), 500.0, 300.0, *falling(60, start=0.5, end=0.4)]),
        ("a rise in the last points only", [*falling(100), 0.6, 9.0, 40.0]),
        ("a high first point", [1e6, *falling(100)]),
        ("flat", [2.3] * 100),
    ],
)
def test_clear(reason, values):
    assert check(series(values)) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="loss has 9 finite points; 10 are needed"):
        check(series([1.0] * 9))


def test_a_log_density_that_lost_all_of_its_progress_is_found():
    (found,) = check(series([*falling(100, start=1.5, end=-4.2, noise=0.1), *([2600.0, 3700.0, 1400.0] * 20)]))
    assert 95 <= found.onset_step <= 100


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", np.linspace(1, -9, 50)),
        ("half of its progress is lost", [*np.linspace(1, -9, 50), *np.linspace(-9, -4, 50)]),
        ("nothing but noise about zero", np.random.default_rng(2).standard_normal(200)),
        ("rising from the first point on", np.linspace(-9, 1, 50)),
    ],
)
def test_clear_below_zero(reason, values):
    assert check(series(values)) == []
