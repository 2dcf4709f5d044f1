import math

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.losses import Loss
from tb_advisor.rules.chart_hides_points import chart_hides_points
from tests.builders import falling, series


def check(values, n=50_000):
    points = falling(n, noise=0.02)
    for index, value in values.items():
        points[index] = value
    return chart_hides_points((Loss(series(points), False, True),))


@pytest.mark.parametrize("value", [math.nan, math.inf, 9.0])
def test_one_point_that_matters_among_many_is_found(value):
    (found,) = check({40_000: value})
    assert (found.severity, found.onset_step) == (Severity.INFO, 40_000)
    assert found.summary == (
        "loss has 50,000 points, of which TensorBoard's chart draws 1,000: "
        "the one at step 40,000, which matters, is among them with a chance of 2%."
    )


def test_several_are_counted():
    (found,) = check({20_000: 9.0, 30_000: math.nan})
    assert found.values["chance"] == pytest.approx(1 - 0.98**2)
    assert [mark.start for mark in found.exhibits[0].marks] == [20_000, 30_000]


@pytest.mark.parametrize(
    ("reason", "values", "n"),
    [
        ("healthy", {}, 50_000),
        ("few points", {500: math.nan}, 1000),
        ("likely drawn", {1000: math.nan}, 1800),
        ("NaN to the end", dict.fromkeys(range(4000, 5000), math.nan), 5000),
        ("the last point", {4999: math.nan}, 5000),
    ],
)
def test_clear(reason, values, n):
    assert check(values, n) == []
