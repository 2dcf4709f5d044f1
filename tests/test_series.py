import numpy as np
import pytest

from tb_advisor.series import Series, rolling_median
from tests.builders import falling, series


def at_steps(steps, values=None):
    steps = np.array(steps, dtype=np.int64)
    values = np.arange(len(steps), dtype=np.float64) if values is None else np.array(values, dtype=np.float64)
    return Series(steps, np.arange(len(steps), dtype=np.float64), values)


def test_segments_split_where_steps_go_back():
    segments = at_steps([0, 1, 2, 1, 2, 3]).segments
    assert [segment.steps.tolist() for segment in segments] == [[0, 1, 2], [1, 2, 3]]


def test_repeated_steps_are_one_segment():
    assert len(at_steps([0, 0, 0, 1, 1, 1]).segments) == 1


@pytest.mark.parametrize(
    ("steps", "values"),
    [
        ([0, 1, 2, 1, 2, 3], [0, 3, 4, 5]),  # resumed from step 1
        ([0, 1, 2, 0, 1], [3, 4]),  # started again
        ([0, 1, 2, 3, 2, 1, 2], [0, 5, 6]),  # resumed twice
        ([5, 6, 7], [0, 1, 2]),
    ],
)
def test_what_a_restart_did_again_does_not_survive(steps, values):
    assert at_steps(steps).surviving.values.tolist() == values


def test_steps_of_the_surviving_curve_never_go_back():
    assert (np.diff(at_steps([0, 1, 2, 3, 1, 2, 0, 1, 2, 3, 4]).surviving.steps) >= 0).all()


def test_rolling_median_ignores_a_spike():
    assert rolling_median(np.array([1.0, 1, 1, 9, 1, 1, 1]), 3).tolist() == [1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("points", "window"), [(1, 3), (2, 3), (7, 5), (40, 15), (40, 99), (700, 35)])
def test_a_rolling_median_is_the_median_of_each_window(points, window):
    values = np.random.default_rng(points).normal(0, 1, points)
    values[points // 2 :][:2] = [np.inf, np.nan][: points - points // 2]
    reach = [min(i, points - 1 - i, window // 2) for i in range(points)]
    expected = [np.median(values[i - r : i + r + 1]) for i, r in enumerate(reach)]
    assert np.array_equal(rolling_median(values, window), expected, equal_nan=True)


def test_a_wide_rolling_median_follows_the_trend():
    values = np.linspace(10, 0, 20_000)
    assert np.abs(rolling_median(values, 1001) - values)[600:-600].max() < 0.02


def test_noise_is_that_of_the_jitter_not_of_the_trend():
    assert series(falling(4000, noise=0.1)).noise == pytest.approx(0.1, rel=0.1)
    assert series(falling(4000)).noise < 1e-5


def test_curves_on_different_axes_are_matched_by_wall_time():
    per_iteration = series(range(1000), step=10, seconds=1)
    per_epoch = series([0.0, 0.0], first=0, seconds=500)
    assert per_iteration.at(per_epoch).tolist() == [0, 500]


def test_curves_on_one_axis_are_matched_by_step():
    often, seldom = series(range(100)), series([0.0, 0.0, 0.0], step=49)
    assert often.at(seldom).tolist() == [0, 49, 98]


def test_levels_are_medians_of_shares_of_the_points():
    line = series(range(101))
    assert (line.level(0.8, 1), line.level(0.4, 0.6), series([3.0]).level(0.8, 1)) == (90.5, 50.0, 3.0)


def test_the_share_of_pairs_that_rise_tells_a_trend_from_waves():
    assert series(falling(100)).share_rising() == 0
    assert series([1.0, 2.0] * 50).share_rising(100) == pytest.approx(0.5, abs=0.01)
    assert series([1.0, 2.0, 3.0, 0.0]).share_rising() == 0.5
    assert series([1.0]).share_rising() == 0.5


def test_progress_since_the_middle_tells_a_line_from_a_curve_that_levels_off():
    assert 0.45 < series(np.linspace(2, 1, 100)).progress_since(0.5) < 0.52
    assert series(falling(100)).progress_since(0.5) < 0.1
    assert series([1.0] * 10).progress_since(0.5) == 0


def test_a_fall_at_the_end_is_measured_against_the_jitter():
    assert 0 < series(np.array([20, 19, 18, 19, 17, 16, 17, 15, 14, 15])).fall_at_end < 2
    assert abs(series(falling(100, noise=0.1)).fall_at_end) < 3
    assert series(np.geomspace(2, 1, 100)).fall_at_end > 50
    assert series([1.0] * 10).fall_at_end == 0
    assert series([4.0] * 8 + [3.0] * 2).fall_at_end == np.inf


def test_losses_of_batches_are_smoothed_between_evaluations():
    batches = series([1.0, 3.0] * 50)
    level = batches.level_at(series([0.0] * 4, step=25, first=24))
    assert set(level.tolist()) <= {1.0, 2.0, 3.0} and len(level) == 4
    epochs = series([4.0, 3.0, 2.0, 1.0])
    assert epochs.level_at(series([0.0] * 4)).tolist() == [4.0, 3.0, 2.0, 1.0]


def test_levels_are_medians_of_equal_parts():
    assert series([1, 1, 9, 2, 2, 2, 3, 4, 3]).levels(3).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("values", "turn"),
    [
        ([1.0] * 20 + [3.0] * 30, (20, True)),
        ([1.0] * 20 + [1.0 + 0.1 * i for i in range(30)], (19, False)),
        ([0.0] * 50, (0, False)),
    ],
)
def test_a_level_turns_at_once_or_steadily(values, turn):
    noise = 0.02 * np.random.default_rng(0).standard_normal(len(values)) if any(values) else 0
    index, at_once = series(np.array(values) + noise).turn()
    assert at_once is turn[1]
    assert abs(index - turn[0]) <= 1
