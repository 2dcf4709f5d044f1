"""Columns: what was read of one tag, stored compactly and growing with its file."""

from __future__ import annotations

import numpy as np

from tb_advisor.series import Buckets, Floats, Histograms, Series, Steps, Stored


class Column:
    """The points of one tag in writing order. Regular steps are stored as a range, values that are all float32 as
    such.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[Steps, Floats, Stored]] = []
        self._steps: Steps | range = range(0)
        self._wall_times: Floats = np.empty(0)
        self._values: Stored = np.empty(0, np.float32)

    def add(self, steps: Steps, wall_times: Floats, values: Floats) -> None:
        """Append points. Copies what it keeps."""
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        is_narrow = np.array_equal(narrow, values, equal_nan=True)
        self._pieces.append((steps.copy(), wall_times.copy(), narrow if is_narrow else values.copy()))

    def series(self, run: str, tag: str) -> Series:
        """All points so far. The series shares this column's memory."""
        if self._pieces:
            before = (np.array(self._steps, np.int64), self._wall_times, self._values)
            steps, wall_times, values = zip(before, *self._pieces, strict=True)
            self._pieces = []
            self._steps = _as_range(np.concatenate(steps))
            self._wall_times = np.concatenate(wall_times)
            self._values = np.concatenate(values)
        return Series(self._steps, self._wall_times, self._values, run, tag)


class HistogramColumn:
    """The histograms of one tag in writing order, their buckets one after the other."""

    def __init__(self) -> None:
        self._steps: list[Steps] = []
        self._wall_times: list[Floats] = []
        self._sizes: list[Steps] = []
        self._buckets: list[Buckets] = []

    def add(self, steps: Steps, wall_times: Floats, sizes: Steps, buckets: Buckets) -> None:
        """Append histograms of `sizes` buckets; `buckets` has shape ``(sum(sizes), 3)``. Copies what it keeps."""
        for pieces, piece in ((self._steps, steps), (self._wall_times, wall_times), (self._sizes, sizes), (self._buckets, buckets)):
            pieces.append(piece.copy())

    def histograms(self, run: str, tag: str) -> Histograms:
        """All histograms so far."""
        sizes = np.concatenate(self._sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        steps, wall_times = np.concatenate(self._steps), np.concatenate(self._wall_times)
        return Histograms(steps, wall_times, offsets, np.concatenate(self._buckets), run, tag)


def _as_range(steps: Steps) -> Steps | range:
    if len(steps) < 3:
        return steps
    stride = int(steps[1]) - int(steps[0])
    regular = stride != 0 and bool((np.diff(steps) == stride).all())
    return range(int(steps[0]), int(steps[-1]) + (1 if stride > 0 else -1), stride) if regular else steps
