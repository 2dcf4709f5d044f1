"""Sets of time as unions of intervals: how much of each window is covered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
