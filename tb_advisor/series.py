"""One curve of a run, every point of it, and the few robust operations that rules share."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]
Buckets = NDArray[np.float64]
Stored = NDArray[np.float64] | NDArray[np.float32]


class Series:
    """The points of one tag of one run in the order in which they were written.

    `steps` is int64, `wall_times` float64 (seconds since the epoch), `values` float64; all of shape ``(n,)``. `run` and
    `tag` are TensorBoard's names, so that a rule can say where it looked. Regular steps are stored as a range, and
    values that are float32 as such: both are widened on each access.
    """

    def __init__(self, steps: Steps | range, wall_times: Floats, values: Stored, run: str = "", tag: str = "") -> None:
        self._steps = steps
        self.stored_values = values
        self.wall_times = wall_times
        self.run = run
        self.tag = tag
        self._smoothed: dict[int, Floats] = {}

    @property
    def steps(self) -> Steps:
        """The step of each point."""
        return as_array(self._steps)

    @property
    def values(self) -> Floats:
        """The value of each point."""
        return self.stored_values.astype(np.float64, copy=False)

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Series:
        steps = self._steps[index] if isinstance(index, slice) else self.steps[index]
        return Series(steps, self.wall_times[index], self.stored_values[index], self.run, self.tag)

    @cached_property
    def segments(self) -> tuple[Series, ...]:
        """The series split where its steps go backwards, which is where a training was restarted."""
        if isinstance(self._steps, range) and self._steps.step > 0:
            return (self,)
        cuts = np.flatnonzero(np.diff(self.steps) < 0) + 1
        edges = [0, *cuts.tolist(), len(self)]
        return tuple(self[a:b] for a, b in pairwise(edges))

    @cached_property
    def surviving(self) -> Series:
        """The curve as the training went on from its last restart: what a restart did again is taken out.

        A restart at step s replaces the earlier points with steps at or after s, as TensorBoard's purge of orphaned
        data does (`plugin_event_accumulator.py`). Steps of the result never decrease.
        """
        if len(self.segments) == 1:
            return self
        smallest_from = np.minimum.accumulate(self.steps[::-1])[::-1]
        keep = np.ones(len(self), dtype=np.bool_)
        end = 0
        for segment in self.segments[:-1]:
            start, end = end, end + len(segment)
            keep[start:end] = segment.steps < smallest_from[end]
        return self[keep]

    @cached_property
    def finite(self) -> Series:
        """The series without its NaN and infinite points."""
        finite = np.isfinite(self.stored_values)
        return self if finite.all() else self[finite]

    def smoothed(self, share: float = 0.05, least: int = 3) -> Floats:
        """Centred rolling median over `share` of the points (at least `least`, odd); shape ``(n,)``, read-only."""
        window = max(least, round(share * len(self)))
        if window not in self._smoothed:
            self._smoothed[window] = rolling_median(self.values, window)
            self._smoothed[window].flags.writeable = False
        return self._smoothed[window]

    @property
    def start(self) -> float:
        """Level at the beginning: median of the first 5% of the points, at least 3."""
        return float(np.median(self.values[: max(3, len(self) // 20)]))

    @property
    def end(self) -> float:
        """Level at the end: median of the last 10% of the points, at least 3."""
        return float(np.median(self.values[-max(3, len(self) // 10) :]))

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the point-to-point jitter, robust against trends and outliers.

        1.4826 × the median absolute second difference ÷ √6, the factor by which white noise grows in a second
        difference.
        """
        if len(self) < 4:
            return 0.0
        return float(1.4826 * np.median(np.abs(np.diff(self.values, 2))) / np.sqrt(6.0))

    def level(self, first: float, last: float) -> float:
        """Median of the points between two shares of the series: ``level(0.8, 1)`` is that of its last fifth."""
        begin = min(round(first * len(self)), len(self) - 1)
        return float(np.median(self.values[begin : max(begin + 1, round(last * len(self)))]))

    def progress_since(self, share: float) -> float:
        """How much of the way from `start` to `end` came after `share` of the points: 0.5 after the middle of a straight line.
        Zero where there was no way.
        """
        way = self.start - self.end
        return (self.level(share - 0.1, share + 0.1) - self.end) / way if way else 0.0

    @property
    def fall_at_end(self) -> float:
        """How far the last fifth lies below the fifth before it, in standard errors of the difference of two medians.

        Infinite where the curve falls without any jitter, zero where it does not move.
        """
        fall = self.level(0.6, 0.8) - self.level(0.8, 1)
        error = 1.25 * self.noise * float(np.sqrt(2 / max(1, len(self) // 5)))
        return fall / error if error else float(np.copysign(np.inf, fall)) if fall else 0.0

    def levels(self, count: int) -> Floats:
        """Medians of `count` equal parts of the series, one after the other; shape ``(count,)``. Needs `count` points."""
        edges = np.linspace(0, len(self), count + 1).astype(np.int64)
        values = self.values
        return np.array([np.median(values[a:b]) for a, b in pairwise(edges.tolist())])

    def share_rising(self, most: int = 30) -> float:
        """Of all pairs of points the share in which the later one is the higher: 1 for a rise, 0.5 for no trend, 0 for a fall.

        Over the medians of up to `most` equal parts, ties count half; Kendall's tau is twice this less one (Mann 1945). Needs a point.
        """
        return share_rising(self.levels(min(most, len(self))))

    def turn(self, most: int = 200) -> tuple[int, bool]:
        """Where the level begins to change: the index of the point, and whether it changes at once (a step) or goes on changing (a ramp).

        The better fit, in least squares over the smoothed curve, of a step and of a ramp that begin at one of up to `most`
        points. Its two points at either end count as the next one, since nothing smooths them. Takes finite values only, at
        least 3.
        """
        at = np.linspace(0, len(self) - 1, min(len(self), 5 * most)).astype(np.int64)
        smooth = self.smoothed()[np.clip(at, 2, len(self) - 3) if len(self) > 5 else at]
        scale = float(np.abs(smooth).max())
        if scale == 0:
            return 0, False
        curve = smooth / scale - np.mean(smooth / scale)
        starts = at[np.unique(np.linspace(1, len(at) - 2, min(len(at) - 2, most)).astype(np.int64))]
        beyond = np.maximum(0.0, at[None, :] - starts[:, None] + 0.0)
        gains = []
        for shape in (beyond, (at[None, :] >= starts[:, None]).astype(np.float64)):
            shape -= shape.mean(axis=1, keepdims=True)
            gains.append((shape @ curve) ** 2 / np.maximum((shape**2).sum(axis=1), 1e-30))
        ramp, step = gains
        at_once = bool(step.max() > ramp.max())
        return int(starts[(step if at_once else ramp).argmax()]), at_once

    def share_of_run(self, step: int) -> float:
        """How much of the run had passed at `step`, 0 to 1."""
        first, last = int(self._steps[0]), int(self._steps[-1])
        return (step - first) / (last - first) if last > first else 0.0

    def seconds_after(self, step: int) -> float:
        """Wall time between the first point at or after `step` and the end of the series."""
        index = min(int(np.searchsorted(self.steps, step)), len(self) - 1)
        return max(0.0, float(self.wall_times[-1] - self.wall_times[index]))

    def shares_axis_with(self, other: Series) -> bool:
        """Whether both count steps in the same unit: they end within a factor of two of each other."""
        a, b = int(self._steps[-1]) + 1, int(other._steps[-1]) + 1
        return a <= 2 * b and b <= 2 * a

    def at(self, other: Series) -> Floats:
        """This curve's values at the points of `other`, shape ``(len(other),)``: the last one written at or before
        each.

        Matched by step where both share an axis, else by wall time (an epoch axis beside an iteration axis).
        """
        if self.shares_axis_with(other):
            index = np.searchsorted(self.steps, other.steps, side="right") - 1
        else:
            index = np.searchsorted(np.maximum.accumulate(self.wall_times), other.wall_times, side="right") - 1
        return np.asarray(self.values[np.maximum(index, 0)])

    def level_at(self, other: Series) -> Floats:
        """This curve's level at the points of `other`, shape ``(len(other),)``: smoothed over the points between two of
        them where it has more than twice as many, which makes the losses of batches comparable with evaluations.
        """
        if len(self) <= 2 * len(other):
            return self.at(other)
        window = max(3, len(self) // (2 * len(other)))
        return Series(self.steps, self.wall_times, self.smoothed(share=window / len(self)), self.run, self.tag).at(other)

    def value_at(self, step: int) -> float:
        """The value last written at or before `step` (the first value where there is none)."""
        index = int(np.searchsorted(self.steps, step, side="right")) - 1
        return float(self.values[max(index, 0)])


@dataclass(frozen=True, eq=False)
class Histograms:
    """The histograms of one tag of one run in the order in which they were written.

    `steps` (int64) and `wall_times` (float64) have shape ``(n,)``. `buckets` holds the rows (left edge, right edge,
    count) of all histograms, float64 of shape ``(m, 3)``; histogram i has the rows ``offsets[i]`` to ``offsets[i +
    1]``.
    """

    steps: Steps
    wall_times: Floats
    offsets: Steps
    buckets: Buckets
    run: str = ""
    tag: str = ""

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: int) -> Buckets:
        """The buckets of one histogram, shape ``(k, 3)``."""
        return self.buckets[self.offsets[index] : self.offsets[index + 1]]


def as_array(steps: Steps | range) -> Steps:
    """Steps as int64 of shape ``(n,)``."""
    return np.arange(steps.start, steps.stop, steps.step, dtype=np.int64) if isinstance(steps, range) else steps


def share_rising(values: Floats) -> float:
    """Of all pairs of values the share in which the later one is the higher; ties count half, and so does a single value."""
    earlier, later = np.triu_indices(len(values), 1)
    return float(0.5 + 0.5 * np.mean(np.sign(values[later] - values[earlier]))) if len(values) > 1 else 0.5


def joined(parts: Sequence[Series]) -> Series:
    """The points of several series of one tag, one after the other."""
    return Series(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.wall_times for part in parts]),
        np.concatenate([part.stored_values for part in parts]),
        parts[0].run,
        parts[0].tag,
    )


def joined_histograms(parts: Sequence[Histograms]) -> Histograms:
    """The histograms of several files, one after the other."""
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    return Histograms(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.wall_times for part in parts]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.buckets for part in parts]),
        parts[0].run,
        parts[0].tag,
    )


def rolling_median(values: Floats, window: int) -> Floats:
    """Centred rolling median of `values` with an odd `window`; at the ends the window shrinks symmetrically.

    Shape ``(n,)``, NaN where a window holds a NaN. Time is O(n · window) in NumPy; windows above 501 points are computed
    on block medians and interpolated.
    """
    n = len(values)
    half = min(window // 2, (n - 1) // 2)
    if half < 1:
        return np.array(values)
    if half > 250:
        return _rolling_median_of_blocks(values, half)
    result = np.empty(n)
    result[:half] = _growing_medians(values[: 2 * half - 1])
    result[n - half :] = _growing_medians(values[n - 2 * half + 1 :][::-1])[::-1]
    windows = np.lib.stride_tricks.sliding_window_view(values, 2 * half + 1)
    rows = (1 << 18) // (2 * half + 1)  # 2 MB at a time: what fits a cache
    for first in range(0, len(windows), rows):
        block = windows[first : first + rows]
        # np.median of an odd number of values is this too, and takes eight times as long.
        result[half + first : half + first + len(block)] = np.partition(block, half, axis=1)[:, half]
    bad = np.isnan(values)
    if bad.any():
        seen = np.concatenate([[0], np.cumsum(bad)])
        reach = np.minimum(np.minimum(np.arange(n), np.arange(n)[::-1]), half)
        result[seen[np.arange(n) + reach + 1] > seen[np.arange(n) - reach]] = np.nan
    return result


def _growing_medians(values: Floats) -> list[float]:
    """The medians of the first value, the first three, the first five, …"""
    sorted_so_far: list[float] = []
    medians = []
    for count, value in enumerate(values.tolist()):
        insort(sorted_so_far, value)
        if count % 2 == 0:
            medians.append(sorted_so_far[count // 2])
    return medians


def _rolling_median_of_blocks(values: Floats, half: int) -> Floats:
    block = max(1, half // 50)
    edges = np.arange(0, len(values), block)
    centres = np.minimum(edges + (block - 1) / 2, len(values) - 1)
    whole = len(values) // block * block
    medians = np.median(values[:whole].reshape(-1, block), axis=1)
    if whole < len(values):
        medians = np.append(medians, np.median(values[whole:]))
    return np.interp(np.arange(len(values)), centres, rolling_median(medians, 2 * (half // block) + 1))
