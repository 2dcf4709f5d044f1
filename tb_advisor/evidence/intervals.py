"""Sets of time as unions of intervals: how much of each window is covered."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Intervals = tuple[Floats, Floats]


def merged(starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """The union of intervals as disjoint ones in order of time: their starts and ends, both of shape ``(m,)``."""
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order]) if len(ends) else ends
    first = np.ones(len(starts), dtype=np.bool_)
    first[1:] = starts[1:] > reach[:-1]
    last = np.append(np.flatnonzero(first)[1:] - 1, len(starts) - 1) if len(starts) else np.empty(0, np.int64)
    return starts[first], reach[last]


def covered(starts: Floats, ends: Floats, edges: Floats) -> Floats:
    """How much of each window between neighbouring `edges` (shape ``(n + 1,)``, rising) the intervals cover; shape ``(n,)``."""
    starts, ends = merged(starts, ends)
    if not len(starts):
        return np.zeros(max(0, len(edges) - 1))
    times = np.column_stack((starts, ends)).ravel()
    done = np.cumsum(ends - starts)
    coverage = np.column_stack((done - (ends - starts), done)).ravel()
    return np.diff(np.interp(edges, times, coverage))


def joined(parts: Iterable[Intervals]) -> Intervals:
    """All intervals of several lists: their starts and ends, in the order of the lists."""
    parts = tuple(parts)
    if not parts:
        return np.empty(0), np.empty(0)
    return np.concatenate([starts for starts, _ in parts]), np.concatenate([ends for _, ends in parts])


def counted(starts: Floats, edges: Floats) -> Floats:
    """How many of `starts` lie in each window between neighbouring `edges` (shape ``(n + 1,)``, rising); shape ``(n,)``."""
    return np.diff(np.searchsorted(np.sort(starts), edges)).astype(np.float64)


def gaps(starts: Floats, ends: Floats, lo: float, hi: float) -> Intervals:
    """The parts of ``[lo, hi]`` that no interval covers, in order of time."""
    starts, ends = merged(starts, ends)
    opens, closes = np.maximum.accumulate(np.append(lo, ends)), np.append(starts, hi)
    opens, closes = np.clip(opens, lo, hi), np.clip(closes, lo, hi)
    kept = closes > opens
    return opens[kept], closes[kept]
