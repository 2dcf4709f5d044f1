"""What a chart needs of a series: few enough points to draw, and none of those that matter left out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tb_advisor.report import Json, plain
from tb_advisor.series import Buckets, Floats, Histograms, Series

# A marked range with more points than this is thinned like the rest; its two ends always stay.
MOST_MARKED_POINTS = 500


def chart_points(series: Series, points: int, keep: Iterable[tuple[int, int]], span: tuple[int, int] | None = None) -> dict[str, Json]:
    """The points of `series` for a chart about `points` wide, as JSON-ready columns.

    Each bucket gives its first, last, smallest and largest point; the points within the `keep` ranges of steps (both
    ends included) and the ends of every stretch of NaN or infinite values are never dropped. `span` limits the chart to
    a range of steps.
    """
    if span is not None:
        series = series[(series.steps >= span[0]) & (series.steps <= span[1])]
    kept = series[bucket_indices(series, points, keep)]
    finite = np.isfinite(kept.values)
    return {
        "run": series.run,
        "tag": series.tag,
        "total": len(series),
        "steps": kept.steps.tolist(),
        "values": [value if ok else None for value, ok in zip(kept.values.tolist(), finite.tolist(), strict=True)],
        "wall_times": plain(kept.wall_times.tolist()),
        "non_finite": [
            {"step": step, "value": plain(value)}
            for step, value in zip(kept.steps[~finite].tolist(), kept.values[~finite].tolist(), strict=True)
        ],
        "thinned": len(kept) < len(series),
    }


def heat_map(histograms: Histograms, columns: int = 160, rows: int = 48) -> dict[str, Json]:
    """How the values of a tensor are spread, over steps: for each of at most `columns` histograms (the first and the last
    among them) the share of its values in each of `rows` equal bins, as JSON-ready lists.

    The bins span all values but the outer 0.1% of the shown histograms together, which count in the outermost bins.
    Within a bucket values are taken as evenly spread.
    """
    chosen = np.unique(np.linspace(0, len(histograms) - 1, min(columns, len(histograms))).round().astype(np.intp))
    shown = [buckets[np.isfinite(buckets).all(axis=1)] for buckets in (histograms[int(i)] for i in chosen)]
    low, high = _span(np.concatenate(shown))
    edges = np.linspace(low, high, rows + 1)
    return {
        "run": histograms.run,
        "tag": histograms.tag,
        "total": len(histograms),
        "steps": histograms.steps[chosen].tolist(),
        "edges": edges.tolist(),
        "shares": [_spread(buckets, edges).round(4).tolist() for buckets in shown],
    }


def _span(buckets: Buckets) -> tuple[float, float]:
    """The range that holds the values of these buckets but for 0.1% at either side."""
    buckets = buckets[buckets[:, 2] > 0]
    if not len(buckets):
        return -1.0, 1.0
    by_left, by_right = buckets[buckets[:, 0].argsort()], buckets[buckets[:, 1].argsort()[::-1]]
    tail = 0.001 * buckets[:, 2].sum()
    low = float(by_left[np.searchsorted(by_left[:, 2].cumsum(), tail), 0])
    high = float(by_right[np.searchsorted(by_right[:, 2].cumsum(), tail), 1])
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _spread(buckets: Buckets, edges: Floats) -> Floats:
    """The share of the values in each bin, shape ``(len(edges) - 1,)``."""
    total = buckets[:, 2].sum()
    if not total:
        return np.zeros(len(edges) - 1)
    places = np.append(buckets[:1, 0], buckets[:, 1])
    below = np.interp(edges, places, np.append(0.0, buckets[:, 2].cumsum()))
    below[0], below[-1] = 0.0, total
    return np.asarray(np.diff(below) / total)


def bucket_indices(series: Series, points: int, keep: Iterable[tuple[int, int]]) -> NDArray[np.intp]:
    """Sorted indices of the points to draw, shape ``(m,)``."""
    n = len(series)
    if n <= points:
        return np.arange(n)
    chosen = [_extremes(series, points), _edges_of_non_finite(series)]
    for start, end in keep:
        inside = np.flatnonzero((series.steps >= start) & (series.steps <= end))
        chosen.append(inside if len(inside) <= MOST_MARKED_POINTS else inside[[0, -1]])
    return np.unique(np.concatenate(chosen))


def _extremes(series: Series, points: int) -> NDArray[np.intp]:
    starts = np.unique(np.linspace(0, len(series), max(1, points // 4), endpoint=False).astype(np.intp))
    values = series.values
    finite = np.isfinite(values)
    low = _first_smallest(np.where(finite, values, np.inf), starts)
    high = _first_smallest(np.where(finite, -values, np.inf), starts)
    return np.concatenate([starts, low, high, np.append(starts[1:], len(series)) - 1])


def _first_smallest(values: Floats, starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where the smallest value of each bucket stands first. A bucket ends where the next one starts."""
    smallest = np.minimum.reduceat(values, starts)
    places = np.flatnonzero(values == np.repeat(smallest, np.diff(starts, append=len(values))))
    return places[np.searchsorted(places, starts)]


def _edges_of_non_finite(series: Series) -> NDArray[np.intp]:
    bad = ~np.isfinite(series.values)
    edges = np.diff(np.concatenate([[False], bad, [False]]).astype(np.int8))
    return np.concatenate([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1])
