"""How fast a job works: logged throughput, logged step times, or the wall times of the events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.roles import Assignment, Roles
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing
from tb_advisor.series import Series

# Averages since the start of the training, which say nothing about the pace at one step (stable_baselines3/common/base_class.py
# `_dump_logs`; cleanrl/ppo.py): their own wall times do.
_RUNNING_AVERAGES = frozenset({"time/fps", "charts/SPS"})
_LEAST_LOGGED = 8
_LEAST_INTERVALS = 20
_LEAST_EVENTS = 40


@dataclass(frozen=True, eq=False)
class Pace:
    """How long a step takes over the run, and what says so.

    `times` has the time of a step as its values: seconds where `source` is ``wall_times``, the unit of the tag where it is
    ``step_time``, and one over the logged value where it is ``throughput``. Its run and tag are those of the series that it was
    derived from. All values are finite and above zero.
    """

    times: Series
    source: str


@dataclass(frozen=True, eq=False)
class Pause:
    """A time without events. It lies after point `at` of `curve`, begins at `start` (seconds since the epoch) and takes `seconds`.

    `usual` is the 95th percentile of the times between points of that curve, `as_long` how many are at least half as long, and
    `run_seconds` the time from its first point to its last.
    """

    curve: Series
    at: int
    start: float
    seconds: float
    usual: float
    as_long: int
    run_seconds: float


def pace(job: Job, roles: Roles) -> Pace:
    """The best source there is: a logged throughput or step time of the training, else the wall times of the longest scalar.

    Raises `Missing` where there is neither, and where wall times alone tell the pace of a job whose steps are no equal work.
    """
    logged = [p for a in roles.assignments if (p := _logged(a)) is not None]
    if logged:
        return max(logged, key=lambda p: (p.source == "throughput", len(p.times)))
    averaged = [a.series for a in roles.of("throughput", evaluation=False) if a.series.tag in _RUNNING_AVERAGES]
    if not averaged and roles.task == "reinforcement-learning":
        raise Missing("neither throughput nor step times are logged, and an episode that takes longer is no slower training")
    longest = max(averaged or job.scalars, key=len, default=None)
    times = _between_events(longest) if longest is not None else None
    if times is None or len(times) < _LEAST_INTERVALS:
        template = (
            "neither throughput nor step times (looked for steps per second, samples/sec, fps, step time), nor {least} events of one tag"
        )
        raise Missing(template, least=_LEAST_INTERVALS)
    return Pace(times, "wall_times")


def longest_pause(job: Job) -> Pause:
    """The longest time without any event between two events of the scalar that is logged most often.

    Raises `Missing` where that has too few points.
    """
    curve = max(job.scalars, key=len, default=None)
    times = np.empty(0) if curve is None else np.maximum.accumulate(curve.wall_times)
    if curve is None or len(times) < _LEAST_EVENTS or not np.isfinite(times).all() or times[-1] <= times[0]:
        raise Missing("no scalar has {least} points with wall times, so that a pause cannot be told from a gap", least=_LEAST_EVENTS)
    pauses = np.diff(times)
    at = int(pauses.argmax())
    start, end = _without_events(job, float(times[at]), float(times[at + 1]))
    return Pause(
        curve=curve,
        at=at,
        start=start,
        seconds=end - start,
        usual=float(np.quantile(pauses, 0.95)),
        as_long=int((pauses >= (end - start) / 2).sum()),
        run_seconds=float(times[-1] - times[0]),
    )


def _without_events(job: Job, start: float, end: float) -> tuple[float, float]:
    """The longest part of this time in which no scalar and no histogram was written."""
    written = [series.wall_times for series in job.scalars]
    written += [histograms.wall_times for run in job.runs.values() for histograms in run.histograms.values()]
    inside = [times[(times > start) & (times < end)] for times in written]
    events = np.sort(np.concatenate([[start, end], *inside]))
    longest = int(np.diff(events).argmax())
    return float(events[longest]), float(events[longest + 1])


def _logged(a: Assignment) -> Pace | None:
    """The pace that this series tells; None where it tells none: an evaluation's, an average since the start, a clock."""
    if a.evaluation or a.role not in ("throughput", "step_time") or a.series.tag in _RUNNING_AVERAGES:
        return None
    series = a.series.surviving.finite
    series = series[series.values > 1e-30]
    if len(series) < _LEAST_LOGGED:
        return None
    if a.role == "throughput":
        return Pace(Series(series.steps, series.wall_times, 1 / series.values, series.run, series.tag), a.role)
    if (np.diff(series.values) > 0).all():  # the time since the start
        return None
    return Pace(series, a.role)


def _between_events(series: Series) -> Series | None:
    """Seconds a step between neighbouring points of a series; None where its steps or wall times do not advance."""
    series = series.surviving
    steps, wall_times = series.steps.astype(np.float64), series.wall_times
    advance, seconds = np.diff(steps), np.diff(wall_times)
    whole = (advance > 0) & (seconds > 0) & np.isfinite(seconds)
    if not whole.any():
        return None
    return Series(series.steps[1:][whole], wall_times[1:][whole], seconds[whole] / advance[whole], series.run, series.tag)
