"""Columns: what was read of one tag, stored compactly and growing with its file."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from tb_advisor.series import Buckets, Floats, Histograms, Series, Steps, Stored, as_array

# Fewer steps than this are not worth a range.
FEWEST_AS_RANGE = 64


class Column(list[tuple[int, Steps | range, Floats, Stored]]):
    """The points of one tag: pieces of (offset of the first point in the file, steps, wall times, values), in any order.
    Regular steps are stored as a range, values that are all float32 as such.
    """

    def series(self, run: str, tag: str) -> Series:
        """All points so far in writing order. The series shares this column's memory."""
        if len(self) > 1:
            offsets, parts, *others = zip(*sorted(self, key=itemgetter(0)), strict=True)
            self[:] = [(offsets[0], np.concatenate([as_array(part) for part in parts]), *map(np.concatenate, others))]
        offset, steps, wall_times, values = self[0]
        if len(steps) >= FEWEST_AS_RANGE and not isinstance(steps, range):
            steps = _as_range(steps)
            self[0] = offset, steps, wall_times, values
        return Series(steps, wall_times, values, run, tag)


class HistogramColumn(list[tuple[int, Steps, Floats, Steps, Buckets]]):
    """The histograms of one tag: pieces of (offset of the first in the file, steps, wall times, numbers of buckets,
    buckets), in any order; the buckets one after the other, shape ``(m, 3)``.
    """

    def histograms(self, run: str, tag: str) -> Histograms:
        """All histograms so far in writing order."""
        if len(self) > 1:
            offsets, *parts = zip(*sorted(self, key=itemgetter(0)), strict=True)
            self[:] = [(offsets[0], *map(np.concatenate, parts))]
        _, steps, wall_times, sizes, buckets = self[0]
        return Histograms(steps, wall_times, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), buckets, run, tag)


def _as_range(steps: Steps) -> Steps | range:
    """Regular steps as a range."""
    stride = int(steps[1]) - int(steps[0])
    regular = stride != 0 and bool((np.diff(steps) == stride).all())
    return range(int(steps[0]), int(steps[-1]) + (1 if stride > 0 else -1), stride) if regular else steps
