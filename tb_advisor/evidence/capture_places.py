"""Where in a run its profiler captures were recorded, and how long a step took there by what was logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.memory import learning_curve
from tb_advisor.evidence.roles import Assignment, Roles
from tb_advisor.evidence.trace_steps import StepTimes
from tb_advisor.series import Series

_LEAST_POINTS = 2
# A single logged time may be that of a step with an evaluation in it.
_NEAREST = 5
# Of what a throughput or a time counts where that is not the training step.
_OTHER_UNITS = frozenset(
    "sample samples example examples image images frame frames token tokens sequence sequences epoch epochs env fps sps".split()
)
_STEPS = frozenset("step steps it iter iters iteration iterations batch batches".split())
_MILLISECONDS = frozenset({"ms", "msec", "milliseconds", "millis"})


@dataclass(frozen=True, eq=False)
class CapturePlace:
    """A capture was recorded while `curve` went from its step `first` to `last`; its last one is `end`.

    `logged_s` is the time of a training step in seconds by the tag `logged_tag` near it, None where none is logged.
    """

    curve: Series
    first: int
    last: int
    end: int
    logged_s: float | None
    logged_tag: str


def capture_places(roles: Roles, step_times: tuple[StepTimes, ...]) -> Mapping[str, CapturePlace]:
    """The places of captures in the training loss, by the names of the captures: of those whose time is known and lies within its own."""
    curve = learning_curve(roles)
    if curve is None or len(curve) < _LEAST_POINTS or not np.isfinite(curve.wall_times).all():
        return {}
    found = {}
    for times in step_times:
        began = times.steps.trace.began
        if began is None or times.capture.name in found:
            continue
        moments = began + times.edges_ms[[0, -1]] / 1000
        clock = np.maximum.accumulate(curve.wall_times)
        if clock[0] <= moments[0] and moments[1] <= clock[-1]:
            first, last = (round(step) for step in np.interp(moments, clock, curve.steps.astype(np.float64)).tolist())
            logged = _logged(roles, float(moments.mean()))
            found[times.capture.name] = CapturePlace(curve, min(first, last), max(first, last), int(curve.steps[-1]), *logged)
    return found


def _logged(roles: Roles, moment: float) -> tuple[float | None, str]:
    """The time of a step near `moment` by the best series that counts steps, and its tag."""
    for a in (*roles.of("step_time", evaluation=False), *roles.of("throughput", evaluation=False)):
        series = a.series.surviving.finite
        series = series[series.values > 0]
        if len(series) < _LEAST_POINTS or not _STEPS & set(a.words) or _OTHER_UNITS & set(a.words):
            continue
        if series.wall_times[0] <= moment <= series.wall_times[-1]:
            nearest = np.argsort(np.abs(series.wall_times - moment), kind="stable")[:_NEAREST]
            return _seconds(a, float(np.median(series.values[nearest]))), a.series.tag
    return None, ""


def _seconds(a: Assignment, value: float) -> float:
    if a.role == "throughput":
        return 1 / value
    return value / 1000 if _MILLISECONDS & set(a.words) else value
