"""Short excursions of a loss above its level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tb_advisor.series import Floats, Series, rolling_median


@dataclass(frozen=True, eq=False)
class Spikes:
    """The spikes of one loss: the index of the highest point of each, in order.

    `level` is what the loss is measured against, of shape ``(n,)``, and `progress` how far the loss fell in the whole run.
    """

    loss: Series
    peaks: tuple[int, ...]
    level: Floats
    progress: float

    @property
    def steps(self) -> tuple[int, ...]:
        """The step of the highest point of each spike."""
        return tuple(int(self.loss.steps[peak]) for peak in self.peaks)

    @property
    def highest(self) -> int:
        """The index of the spike that rises furthest above its level."""
        return max(self.peaks, key=self.height)

    def height(self, peak: int) -> float:
        """How far a spike rises above its level."""
        return float(self.loss.values[peak] - self.level[peak])

    def before(self, peak: int) -> float:
        """The level just before a spike."""
        return _before(self.level, peak)


def find_spikes(
    loss: Series,
    *,
    window: int = 15,
    min_ratio: float = 1.5,
    min_deviations: float = 12.0,
    min_log_deviations: float = 4.0,
    min_progress: float = 0.3,
    max_recovery: float = 0.08,
    skip_share: float = 0.02,
) -> Spikes:
    """The spikes of a finite loss. The rule `loss-spikes` gives the thresholds and their reasons."""
    level = _level(loss.values, window)
    residual = loss.values - level
    spread = 1.4826 * float(np.median(np.abs(residual)))
    progress = loss.start - float(loss.smoothed().min())
    high = (
        (residual >= min_deviations * spread) & (residual >= min_progress * progress) & (loss.values >= min_ratio * level) & (residual > 0)
    )
    high[: max(3, round(skip_share * len(loss)))] = False
    longest = max(12, round(max_recovery * len(loss)))
    peaks = tuple(
        peak
        for peak in _peaks(high, loss.values)
        if residual[peak] >= min_deviations / 2 * _spread_nearby(residual, peak, 2 * window)
        and _log_deviations(loss.values, level, peak) >= min_log_deviations
        and _recovers(loss.values, level, peak, longest)
    )
    return Spikes(loss, peaks, level, progress)


def _level(values: Floats, window: int) -> Floats:
    """The median of the points around each point or of those just before it, whichever is lower: a slow recovery lifts
    the former.
    """
    around = rolling_median(values, window)
    behind = window // 2 + 1
    level: Floats = np.minimum(around, np.concatenate([around[:behind], around[:-behind]]))
    return level


def _log_deviations(values: Floats, level: Floats, peak: int) -> float:
    """How many scaled median absolute deviations a peak lies above its level in logarithms; infinite where the loss is not
    positive.
    """
    if values.min() <= 0 or level.min() <= 0:
        return np.inf
    ratios = np.log(values / level)
    return float(ratios[peak] / max(1.4826 * float(np.median(np.abs(ratios))), 1e-12))


def _spread_nearby(residual: Floats, peak: int, points: int) -> float:
    """The scaled median absolute residual of the points before a peak or of those after it, whichever is lower."""
    sides = (residual[max(0, peak - points) : peak], residual[peak + 1 : peak + 1 + points])
    return 1.4826 * min(float(np.median(np.abs(side))) for side in sides if len(side))


def _peaks(high: NDArray[np.bool_], values: Floats, gap: int = 3) -> Iterator[int]:
    """The highest point of each group of high points; points up to `gap` apart are one group."""
    indices = np.flatnonzero(high)
    if len(indices):
        for group in np.split(indices, np.flatnonzero(np.diff(indices) > gap) + 1):
            yield int(group[values[group].argmax()])


def _recovers(values: Floats, level: Floats, peak: int, longest: int) -> bool:
    before = _before(level, peak)
    after = values[peak + 1 : peak + 1 + longest]
    return bool(len(after) and (after <= before + 0.5 * (values[peak] - before)).any())


def _before(level: Floats, peak: int) -> float:
    return float(level[max(0, peak - 2)])
