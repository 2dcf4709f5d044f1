"""Columns: what was read of one tag, stored compactly and growing with its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def add(self, steps: Steps, wall_times: Floats, values: Stored) -> None:
        """Append points. The arrays are kept as they are."""
        self._pieces.append((steps, wall_times, values))

    def series(self, run: str, tag: str) -> Series:
        """All points so far. The series shares this column's memory."""
        if self._pieces:
            before = [(np.array(self._steps, np.int64), self._wall_times, self._values)] if len(self._wall_times) else []
            steps, wall_times, values = zip(*before, *self._pieces, strict=True)
            self._pieces = []
            self._steps = _as_range(_joined(steps))
            self._wall_times, self._values = _joined(wall_times), _joined(values)
        return Series(self._steps, self._wall_times, self._values, run, tag)


class HistogramColumn:
    """The histograms of one tag in writing order, their buckets one after the other."""

    def __init__(self) -> None:
        self._steps: list[Steps] = []
        self._wall_times: list[Floats] = []
        self._sizes: list[Steps] = []
        self._buckets: list[Buckets] = []

    def add(self, steps: Steps, wall_times: Floats, sizes: Steps, buckets: Buckets) -> None:
        """Append histograms of `sizes` buckets; `buckets` has shape ``(sum(sizes), 3)``. The arrays are kept as they are."""
        self._steps.append(steps)
        self._wall_times.append(wall_times)
        self._sizes.append(sizes)
        self._buckets.append(buckets)

    def histograms(self, run: str, tag: str) -> Histograms:
        """All histograms so far."""
        sizes = np.concatenate(self._sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        steps, wall_times = np.concatenate(self._steps), np.concatenate(self._wall_times)
        return Histograms(steps, wall_times, offsets, np.concatenate(self._buckets), run, tag)


def _joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _as_range(steps: Steps) -> Steps | range:
    """Regular steps as a range, where there are enough of them to save something."""
    if len(steps) < 64:
        return steps
    stride = int(steps[1]) - int(steps[0])
    regular = stride != 0 and bool((np.diff(steps) == stride).all())
    return range(int(steps[0]), int(steps[-1]) + (1 if stride > 0 else -1), stride) if regular else steps
