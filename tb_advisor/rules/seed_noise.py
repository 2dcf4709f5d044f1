"""Jobs that differ only by chance end at different values, and by how much.

## Why it matters

Two jobs with other hyperparameters differ by chance too. A difference that is no larger than what another seed makes
says nothing about the hyperparameters, and a search that follows it follows noise.

## How it is found

Jobs with the same hyperparameters but for the seed (or with all the same, run again) are grouped. Jobs that failed, that
still run, and copies of one job are left out. The standard deviation of the best value is pooled over the better half of
the groups, for among them choices are made, and must have at least two degrees of freedom (three jobs of one group, or
two groups of two). Two single jobs differ by more than t × √2 × that in 5 of 100 cases (Student's t for so few jobs):
differences below it mean nothing. It is said wherever it can be measured, for it is the scale of all other figures.
Confidence is high from `min_freedom` (4) degrees of freedom on, where a standard deviation is known within a half.

## When it is wrong

Something that no hyperparameter names was changed between the jobs: code, data. The differences are larger then.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, SeriesExhibit, Severity, TableExhibit
from tb_advisor.evidence.sweeps import Noise, Sweep
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_BY_SEED = "{tag} of {count} jobs that differ only by seed varies by {deviation} (standard deviation; {lowest} to {highest} in {repeats})"
_REPEATED = (
    "{tag} of {count} jobs with the same hyperparameters varies by {deviation} (standard deviation; {lowest} to {highest} in {repeats})"
)


@rule(category="sweeps", fixes=("more-seeds", "larger-validation-set"))
def seed_noise(sweeps: tuple[Sweep, ...], *, min_freedom: int = 4) -> Iterator[Diagnosis]:
    """One diagnosis a group of comparable jobs in which some were run more than once."""
    noisy = [(sweep, sweep.noise) for sweep in sweeps if sweep.noise is not None]
    if not noisy:
        raise Missing("no three jobs differ only by their seed, so that the effect of chance is not known")
    for sweep, noise in noisy:
        yield Diagnosis(
            _message(sweep, noise) + _undecided(sweep, noise),
            severity=Severity.INFO,
            confidence=Confidence.HIGH if noise.freedom >= min_freedom else Confidence.MEDIUM,
            exhibits=(
                TableExhibit(Message("Jobs, best first"), *sweep.table(sweep.ranked)),
                SeriesExhibit(sweep.curves(noise.repeats)),
            ),
        )


def _message(sweep: Sweep, noise: Noise) -> Message:
    values = [best.value for trial in noise.repeats if (best := sweep.best(trial)) is not None]
    return Message(
        _BY_SEED if noise.by_seed else _REPEATED,
        tag=sweep.tag,
        count=noise.jobs,
        deviation=noise.deviation,
        lowest=min(values),
        highest=max(values),
        repeats=len(noise.repeats),
    ) + Message(": a difference below {least} between two jobs means nothing.", least=noise.least_difference())


def _undecided(sweep: Sweep, noise: Noise) -> Message:
    """How many configurations cannot be told from the best one."""
    means = sorted((float(np.mean([sweep.cost(t) for t in g])), len(g)) for group in sweep.configurations if (g := sweep.ended(group)))
    if len(means) < 2:
        return Message("")
    (best, jobs), others = means[0], means[1:]
    alike = sum(mean - best <= noise.least_difference(jobs, its_jobs) for mean, its_jobs in others)
    if not alike:
        return Message(" The best of {configurations} configurations is ahead by more than that.", configurations=len(means))
    return Message(" Of {configurations} configurations, {alike} cannot be told from the best one.", configurations=len(means), alike=alike)
