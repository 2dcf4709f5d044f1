"""A job in a line, small enough to be kept and compared with its siblings: its settings, its best value, how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.hparams import Hyperparameter
from tb_advisor.evidence.losses import losses, train_loss, val_loss
from tb_advisor.evidence.metrics import metrics
from tb_advisor.evidence.returns import episode_return
from tb_advisor.evidence.roles import Roles
from tb_advisor.logdir.jobs import Job
from tb_advisor.logdir.names import read_name
from tb_advisor.message import Missing
from tb_advisor.series import Series

_FEWEST_STEPS = 5
_LEVELS = 20
_MOST_METRICS = 3


@dataclass(frozen=True)
class Best:
    """The best point of a curve that jobs are compared by.

    `measure` is the role and the tag of the curve; the order of `MEASURES` is that in which they are preferred. `jitter` is the
    curve's own noise from point to point; `seconds` is the wall time from the job's first event to the point.
    """

    measure: tuple[str, str]
    run: str
    higher_is_better: bool
    value: float
    step: int
    points: int
    jitter: float
    seconds: float

    @property
    def tag(self) -> str:
        """The tag of the curve."""
        return self.measure[1]

    @property
    def is_validation(self) -> bool:
        """Whether it was measured on data that the model was not trained on, or is the return of a policy."""
        return self.measure[0] in _VALIDATION


MEASURES = ("validation loss", "validation metric", "return", "training loss", "metric")
_VALIDATION = frozenset(MEASURES[:3])


@dataclass(frozen=True)
class Trial:
    """One job among others.

    `rest` are the words of the job's name that are no hyperparameters. `start`, `lowest` and `end` are levels of the training loss
    (of the validation loss where that alone is logged): its first finite value, the lowest and the last ones, None where there is
    none. `is_lost` says that it ends as NaN or infinite. `step_seconds` is the median wall time of a step.
    """

    job: str
    task: str
    hyperparameters: tuple[Hyperparameter, ...]
    rest: str
    bests: tuple[Best, ...]
    finished: bool
    is_lost: bool
    start: float | None
    lowest: float | None
    end: float | None
    points: int
    last_step: int
    seconds: float
    step_seconds: float

    def best(self, measure: tuple[str, str]) -> Best | None:
        """The best point by this measure, None where the job does not log it."""
        return next((best for best in self.bests if best.measure == measure), None)


def trial(job: Job, hyperparameters: tuple[Hyperparameter, ...], roles: Roles, task: str, finished: bool) -> Trial:
    """What others may know of this job. Never missing: what is not logged is None or empty."""
    began = min((float(s.wall_times[0]) for s in job.scalars if len(s)), default=0.0)
    curve = _level_curve(roles)
    finite = None if curve is None or not len(curve.finite) else curve.finite
    longest = max(job.scalars, key=len, default=None)
    return Trial(
        job=job.name,
        task=task,
        hyperparameters=hyperparameters,
        rest=read_name(job.name).rest,
        bests=tuple(_bests(job, roles, task, began)),
        finished=finished,
        is_lost=_is_lost(roles),
        start=None if finite is None else float(finite.values[0]),
        lowest=None if finite is None else float(finite.levels(min(_LEVELS, len(finite))).min()),
        end=None if finite is None else finite.end,
        points=0 if finite is None else len(finite),
        last_step=0 if longest is None or not len(longest) else int(longest.steps[-1]),
        seconds=max((float(s.wall_times[-1]) for s in job.scalars if len(s)), default=began) - began,
        step_seconds=0.0 if longest is None else _step_seconds(longest),
    )


def trials(trial: Trial) -> tuple[Trial, ...]:
    """The jobs of a family in a line each; for a job by itself only its own."""
    return (trial,)


def _bests(job: Job, roles: Roles, task: str, began: float) -> Iterator[Best]:
    found: list[tuple[str, Series, bool]] = []
    with suppress(Missing):
        found.append(("validation loss", val_loss(roles), False))
    if task == "supervised":
        with suppress(Missing):
            every = metrics(roles)
            found += [("validation metric", m.series, m.higher_is_better) for m in every if m.is_validation][:_MOST_METRICS]
            found += [("metric", m.series, m.higher_is_better) for m in every if not m.is_validation][:1]
    if task == "reinforcement-learning":
        with suppress(Missing):
            found.append(("return", episode_return(job, roles), True))
    with suppress(Missing):
        found.append(("training loss", train_loss(roles), False))
    for role, series, higher in sorted(found, key=lambda entry: MEASURES.index(entry[0])):
        if len(series.finite):
            yield _best(role, series.finite, higher, began)


def _best(role: str, series: Series, higher: bool, began: float) -> Best:
    """Of validation the best value that was measured, which is a checkpoint's; of training the best level of a twentieth of the run."""
    parts = len(series) if role.startswith("validation") else min(_LEVELS, len(series))
    values = series.levels(parts)
    part = int(values.argmax() if higher else values.argmin())
    at = (2 * part + 1) * len(series) // (2 * parts)  # the middle of the part
    return Best(
        measure=(role, series.tag),
        run=series.run,
        higher_is_better=higher,
        value=float(values[part]),
        step=int(series.steps[at]),
        points=len(series),
        jitter=series.noise,
        seconds=max(0.0, float(series.wall_times[at]) - began),
    )


def _level_curve(roles: Roles) -> Series | None:
    for curve in (train_loss, val_loss):
        with suppress(Missing):
            return curve(roles)
    return None


def _is_lost(roles: Roles) -> bool:
    with suppress(Missing):
        main = [loss.series.stored_values for loss in losses(roles) if loss.is_main and len(loss.series)]
        return any(not np.isfinite(values[-1]) for values in main)
    return False


def _step_seconds(series: Series) -> float:
    """The median wall time of a step, 0 where steps or wall times do not advance or are too few."""
    series = series.surviving
    advance, seconds = np.diff(series.steps.astype(np.float64)), np.diff(series.wall_times)
    whole = (advance > 0) & (seconds > 0) & np.isfinite(seconds)
    return float(np.median(seconds[whole] / advance[whole])) if whole.sum() >= _FEWEST_STEPS else 0.0
