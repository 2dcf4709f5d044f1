"""A job is much worse or much slower than others with the same configuration.

## Why it matters

The same hyperparameters should give the same result, up to chance. Where they do not, something else differs that no
hyperparameter names: data, code, a library, a device that throttles. A search that takes such a job at its word judges
the configuration by an accident.

## How it is found

Jobs with the same hyperparameters but for the seed are compared, from `min_siblings` (2) others on; jobs that failed or
still run are left out. A job is worse where its best value lies behind the mean of the others by more than
`min_noise_ratio` (2) times what chance explains in 95 of 100 pairs, measured without this job, and by more than its own
siblings' spread explains. It is slower where the median wall time of a step is `min_slowdown` (2) times the median of
theirs or more, while theirs lie within `max_spread` (1.5) of each other, and the job lost `min_seconds` (60 s) or more by
that: short jobs on a shared machine differ for no reason.

## When it is wrong

A configuration at the border of what trains gives good and bad runs by chance alone; more seeds show it. Other work on
the machine explains a slow job.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, SeriesExhibit, Severity, TableExhibit
from tb_advisor.evidence.sweeps import Sweep, noise_of
from tb_advisor.evidence.trials import Trial
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule


@rule(category="sweeps", fixes=("compare-environments", "more-seeds", "check-machine"))
def worse_than_sibling(
    sweeps: tuple[Sweep, ...],
    *,
    min_siblings: int = 2,
    min_noise_ratio: float = 2.0,
    min_slowdown: float = 2.0,
    max_spread: float = 1.5,
    min_seconds: float = 60.0,
) -> Iterator[Diagnosis]:
    """Of each configuration the worst job and the slowest one."""
    repeated = [(sweep, ended) for sweep in sweeps for group in sweep.configurations if len(ended := sweep.ended(group)) > min_siblings]
    if not repeated:
        raise Missing("no {count} jobs that ended have the same hyperparameters", count=min_siblings + 1)
    for sweep, group in repeated:
        *others, worst = group
        if (found := _worse(sweep, worst, others, min_noise_ratio)) is not None:
            yield found
        slowest = max(group, key=lambda trial: trial.step_seconds)
        others = [other for other in group if other is not slowest]
        if (found := _slower(sweep, slowest, others, min_slowdown, max_spread, min_seconds)) is not None:
            yield found


def _worse(sweep: Sweep, trial: Trial, others: list[Trial], min_noise_ratio: float) -> Diagnosis | None:
    costs = [sweep.cost(other) for other in others]
    usual = float(np.mean(costs))
    behind = sweep.cost(trial) - usual
    own = noise_of([costs])
    needed = own.least_difference(1, len(others)) if own else 0.0
    best = sweep.best(trial)
    if best is None or behind <= min_noise_ratio * needed or (noise := sweep.noise_without(trial)) is None:
        return None
    needed = max(needed, noise.least_difference(1, len(others)))
    if behind <= min_noise_ratio * needed:
        return None
    return Diagnosis(
        Message(
            "{job} reached {tag} {value}, {count} others with the same hyperparameters {usual} on average; chance explains {needed}.",
            job=trial.job,
            tag=sweep.tag,
            value=best.value,
            count=len(others),
            usual=abs(usual),
            needed=needed,
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if behind >= 2 * min_noise_ratio * needed and noise.freedom >= 4 else Confidence.MEDIUM,
        exhibits=_exhibits(sweep, trial, others),
        fixes=("compare-environments", "more-seeds"),
    )


def _slower(
    sweep: Sweep, trial: Trial, others: list[Trial], min_slowdown: float, max_spread: float, min_seconds: float
) -> Diagnosis | None:
    theirs = [other.step_seconds for other in others]
    if not trial.step_seconds or min(theirs) <= 0 or max(theirs) > max_spread * min(theirs):
        return None
    slowdown = trial.step_seconds / median(theirs)
    lost = (1 - 1 / slowdown) * trial.seconds
    if slowdown < min_slowdown or lost < min_seconds:
        return None
    return Diagnosis(
        Message(
            "{job} takes {seconds:duration} a step, {slowdown} times as long as {count} others with the same hyperparameters.",
            job=trial.job,
            seconds=trial.step_seconds,
            slowdown=slowdown,
            count=len(others),
        ),
        severity=Severity.INFO,
        confidence=Confidence.MEDIUM,
        impact=Impact("time", Message("{lost:duration} of {whole:duration}.", lost=lost, whole=trial.seconds), lost / trial.seconds),
        exhibits=_exhibits(sweep, trial, others),
        fixes=("check-machine", "compare-environments"),
    )


def _exhibits(sweep: Sweep, trial: Trial, others: list[Trial]) -> tuple[TableExhibit, SeriesExhibit]:
    title = Message("Jobs with the same hyperparameters")
    return TableExhibit(title, *sweep.table([trial, *others])), SeriesExhibit(sweep.curves([trial, *others]))
