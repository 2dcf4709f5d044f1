"""All jobs beyond a value of a hyperparameter failed.

## Why it matters

Every job in that region is wasted, and a search that goes on there wastes more. Where the border lies also says how much
room there is: the best learning rate is often close below the one at which training breaks.

## How it is found

A job failed where its loss ended as NaN or infinite, where it diverged (it ends at twice its start or of what is usual
among its siblings, or at three times its best with 30% of the progress lost), or where it ended where it had started
while a sibling learned. For each hyperparameter with numbers, upwards and downwards: all jobs beyond a value failed,
`min_jobs` (2) or more, at least half of them by NaN or divergence; of the other jobs at most `max_failed_elsewhere` (25%)
failed, and `min_jobs` trained. Of several such hyperparameters the one that explains most failures is named, the learning
rate before others.

## When it is wrong

Two hyperparameters that were changed together: either may be the cause. Few jobs: one more seed may train.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tb_advisor.diagnosis import Confidence, Diagnosis, SeriesExhibit, Severity, TableExhibit
from tb_advisor.evidence.sweeps import DIVERGED, LOST, STUCK, Sweep
from tb_advisor.evidence.trials import Trial
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_UPWARDS = (
    "All {failed} jobs with {name} of {border} or more failed ({nan} NaN, {diverged} diverged, {stuck} without progress);"
    " of {others} below it {trained} trained, up to {name} {highest}."
)
_DOWNWARDS = (
    "All {failed} jobs with {name} of {border} or less failed ({nan} NaN, {diverged} diverged, {stuck} without progress);"
    " of {others} above it {trained} trained, down to {name} {highest}."
)


@dataclass(frozen=True)
class _Region:
    """The jobs from `border` on, all failed, and the `others`, of which the outermost that trained has the value `trained_at`."""

    name: str
    is_upwards: bool
    border: float
    jobs: Sequence[Trial]
    others: Sequence[Trial]
    trained_at: float


@rule(category="sweeps", fixes=("narrow-search", "warm-up", "clip-gradients"))
def unstable_region(sweeps: tuple[Sweep, ...], *, min_jobs: int = 2, max_failed_elsewhere: float = 0.25) -> Iterator[Diagnosis]:
    """One diagnosis a group of comparable jobs: the hyperparameter that explains most failures."""
    if not any(len(sweep.levels(name)) > 1 for sweep in sweeps for name in sweep.tuned):
        raise Missing("no hyperparameter was tried with several numbers in jobs that can be compared")
    for sweep in sweeps:
        regions = [_region(sweep, name, up, min_jobs, max_failed_elsewhere) for name in sweep.tuned for up in (True, False)]
        found = [region for region in regions if region is not None]
        if found:
            yield _diagnosis(sweep, max(found, key=lambda region: len(region.jobs)))


def _region(sweep: Sweep, name: str, is_upwards: bool, min_jobs: int, max_failed_elsewhere: float) -> _Region | None:
    levels = sweep.levels(name)[:: 1 if is_upwards else -1]
    failed_from = len(levels)
    while failed_from and all(map(sweep.failed, levels[failed_from - 1][1])):
        failed_from -= 1
    jobs = [trial for _, trials in levels[failed_from:] for trial in trials]
    others = [trial for _, trials in levels[:failed_from] for trial in trials]
    broken = sum(sweep.status(trial) in (LOST, DIVERGED) for trial in jobs)
    failed_elsewhere = sum(map(sweep.failed, others))
    if len(jobs) < min_jobs or not others or 2 * broken < len(jobs) or len(others) - failed_elsewhere < min_jobs:
        return None
    if failed_elsewhere > max_failed_elsewhere * len(others):
        return None
    return _Region(name, is_upwards, levels[failed_from][0], jobs, others, levels[failed_from - 1][0])


def _diagnosis(sweep: Sweep, region: _Region) -> Diagnosis:
    ended = Counter(map(sweep.status, region.jobs))
    trained = [trial for trial in region.others if not sweep.failed(trial)]
    return Diagnosis(
        Message(
            _UPWARDS if region.is_upwards else _DOWNWARDS,
            failed=len(region.jobs),
            name=region.name,
            border=region.border,
            nan=ended[LOST],
            diverged=ended[DIVERGED],
            stuck=ended[STUCK],
            others=len(region.others),
            trained=len(trained),
            highest=region.trained_at,
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if min(len(region.jobs), len(trained)) >= 3 else Confidence.MEDIUM,
        exhibits=(
            TableExhibit(Message("Jobs by {name}", name=region.name), *sweep.table([*region.jobs, *region.others])),
            SeriesExhibit(sweep.curves([*region.jobs[:4], *region.others])),
        ),
    )
