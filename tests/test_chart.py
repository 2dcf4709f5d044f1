import json
import math

import numpy as np
import pytest

from tb_advisor.chart import bucket_indices, chart_points, heat_map
from tb_advisor.series import Histograms
from tests.builders import falling, series


def spiky(n=100_000):
    values = np.array(falling(n, noise=0.01))
    values[50_001] = 9.0
    values[70_003] = math.nan
    return series(values)


def test_a_one_step_spike_and_a_single_nan_are_always_drawn():
    chart = chart_points(spiky(), 800, [])
    assert 9.0 in chart["values"]
    assert chart["non_finite"] == [{"step": 70_003, "value": "NaN"}]
    assert len(chart["steps"]) < 900
    assert (chart["total"], chart["thinned"]) == (100_000, True)
    json.dumps(chart, allow_nan=False)


def test_marked_steps_are_never_thinned_away():
    chart = chart_points(spiky(), 100, [(12_345, 12_345), (30_000, 30_099)])
    assert {12_345, *range(30_000, 30_100)} <= set(chart["steps"])


def test_a_long_marked_range_keeps_its_ends():
    chart = chart_points(spiky(), 100, [(10_007, 90_011)])
    assert {10_007, 90_011} <= set(chart["steps"])
    assert len(chart["steps"]) < 200


def test_a_zoomed_range_shows_every_point_again():
    chart = chart_points(spiky(), 800, [], (50_000, 50_500))
    assert (chart["steps"][0], chart["steps"][-1], chart["thinned"]) == (50_000, 50_500, False)


@pytest.mark.parametrize("n", [0, 1, 2, 799, 800, 801, 5000])
def test_any_length(n):
    indices = bucket_indices(series(falling(n) if n else []), 800, [])
    assert len(indices) <= max(n, 0)
    assert (np.diff(indices) > 0).all()
    if n:
        assert (indices[0], indices[-1]) == (0, n - 1)


def test_a_series_of_nothing_but_nan():
    chart = chart_points(series([math.nan] * 5000), 100, [])
    assert set(chart["values"]) == {None}


def histograms(*buckets, tag="weights"):
    sizes = [len(one) for one in buckets]
    steps = np.arange(len(buckets)) * 10
    rows = np.array([row for one in buckets for row in one], float)
    return Histograms(steps, 1e9 + steps, np.concatenate([[0], np.cumsum(sizes)]), rows, "run", tag)


def test_a_heat_map_spreads_each_histogram_over_common_bins():
    heat = heat_map(histograms([(0, 1, 10), (1, 2, 30)], [(0, 4, 8)]), rows=4)
    assert heat["edges"] == [0, 1, 2, 3, 4]
    assert heat["shares"] == [[0.25, 0.75, 0, 0], [0.25, 0.25, 0.25, 0.25]]
    assert (heat["steps"], heat["total"]) == ([0, 10], 2)


def test_a_heat_map_of_many_histograms_keeps_the_first_and_the_last():
    heat = heat_map(histograms(*([(0, 1, 5)] for _ in range(1000))), columns=50)
    assert (len(heat["steps"]), heat["steps"][0], heat["steps"][-1], heat["total"]) == (50, 0, 9990, 1000)


def test_one_far_value_of_thousands_does_not_set_the_scale_and_is_not_lost():
    heat = heat_map(histograms([(0, 1, 5000), (1, 999, 0), (999, 1000, 1)]), rows=2)
    assert heat["edges"][-1] <= 1.01
    assert sum(heat["shares"][0]) == pytest.approx(1)


@pytest.mark.parametrize("buckets", [[(0.5, 0.5, 7)], [(0, 1, 0)], [(math.nan, 1, 3)], [(-0.5, 0.5, 3)]])
def test_odd_histograms_make_a_heat_map_too(buckets):
    json.dumps(heat_map(histograms(buckets)), allow_nan=False)
