"""Where a training was started again in the directory of an earlier one: steps that go back in writing order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tb_advisor.evidence.roles import words
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.series import Series

# Keras counts the batches of each call of `fit` from zero, and evaluations by the optimizer's own counter
# (keras/src/callbacks/tensorboard.py); epochs tell whether a training went on.
_KERAS_BATCH_TAGS = ("batch_", "evaluation_")
_LEAST_AFTER = 2
_LEAST_AGAIN = 3
_MOST_JUMPS = 0.2


@dataclass(frozen=True)
class Restart:
    """One place where the steps of a run go back, as its longest loss (or other curve) shows it.

    `last_step` was written before `next_step`, which is smaller; `first_step` is that of the curve. `seconds_between` is the wall
    time between the two, below zero where the later curve began before the earlier one ended; `seconds_repeated` is the wall time
    that the first pass over the repeated steps took. `tags` is how many curves of the run go back, and `before` and `after` are the
    values just before and after.
    """

    run: str
    tag: str
    first_step: int
    last_step: int
    next_step: int
    seconds_between: float
    seconds_repeated: float
    tags: int
    before: float
    after: float

    @property
    def repeated(self) -> int:
        """How many steps were done again."""
        return self.last_step - self.next_step + 1


def restarts(job: Job) -> tuple[Restart, ...]:
    """The restarts of the run that has most, in writing order; empty where steps only advance.

    A curve counts where at least half of the run's curves that were written after the jump go back, too: one evaluation that is logged
    at an earlier step is no restart. Where at least three points were done again, curves whose points lie further apart than that
    cannot tell and are not asked. Steps that go back every few points are in no order, which is no restart either.

    Raises `Missing` where no scalar is logged.
    """
    if not any(len(series) for series in job.scalars):
        raise Missing("no scalar is logged")
    found = [of_run for run in job.runs.values() if (of_run := _of_run(run))]
    return max(found, key=len, default=())


def _of_run(run: Run) -> tuple[Restart, ...]:
    curves = [s for s in run.scalars.values() if len(s) > _LEAST_AFTER]
    epochs = [s for s in curves if s.tag.startswith("epoch_")]
    if epochs:
        curves = [s for s in curves if not s.tag.startswith(_KERAS_BATCH_TAGS)]
    back = [s for s in curves if _goes_back(s)]
    if not back:
        return ()
    longest = max(back, key=lambda s: ("loss" in words(s.tag), len(s)))
    jumped_at = float(longest.segments[1].wall_times[0])
    asked = [s for s in curves if float(s.wall_times[-1]) >= jumped_at]
    again, steps_again = max(_done_again(a, b) for a, b in pairwise(longest.segments))
    if again >= _LEAST_AGAIN:
        asked = [s for s in asked if np.median(np.abs(np.diff(s.steps))) <= steps_again]
    if 2 * len(back) < len(asked):
        return ()
    return tuple(_restart(longest, index, len(back)) for index in range(1, len(longest.segments)))


def _done_again(before: Series, after: Series) -> tuple[int, int]:
    """How many points, and how many steps, of one segment the next one does again."""
    start = int(after.steps[0])
    return int((before.steps >= start).sum()), int(before.steps[-1]) - start + 1


def _goes_back(series: Series) -> bool:
    jumps = len(series.segments) - 1
    return 0 < jumps <= max(1.0, _MOST_JUMPS * len(series)) and len(series.segments[-1]) >= _LEAST_AFTER


def _restart(series: Series, index: int, tags: int) -> Restart:
    before, after = series.segments[index - 1], series.segments[index]
    start = int(after.steps[0])
    again = before.wall_times[before.steps >= start]
    return Restart(
        run=series.run,
        tag=series.tag,
        first_step=int(series.steps[0]),
        last_step=int(before.steps[-1]),
        next_step=start,
        seconds_between=float(after.wall_times[0] - before.wall_times[-1]),
        seconds_repeated=float(again[-1] - again[0]) if len(again) else 0.0,
        tags=tags,
        before=float(np.median(before.values[-3:])),
        after=float(np.median(after.values[:3])),
    )
