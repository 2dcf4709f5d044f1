"""One job: read it, run the rules on it, and remember what they said until its files change."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_advisor.diagnosis import Outcome, Status
from tb_advisor.evidence import Evidence
from tb_advisor.evidence.run_state import quiet_until
from tb_advisor.logdir.event_file import fingerprint
from tb_advisor.logdir.jobs import Family, Job, JobFiles, RunCache, read_jobs
from tb_advisor.message import Message, Missing
from tb_advisor.report import JobSummary, summarize
from tb_advisor.rule import Rule

Fingerprints = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Checked:
    """A job and what the rules said of it. That holds until its files change, or until `good_until` (seconds since the
    epoch): from then on a job that seemed to be running counts as finished.
    """

    job: Job
    summary: JobSummary
    outcomes: tuple[Outcome, ...]
    good_until: float


class Cache:
    """What one call of `diagnose` leaves to the next: what was read, and what the rules said of each job."""

    def __init__(self) -> None:
        self.runs = RunCache()
        self.jobs: dict[str, Checked] = {}
        self._fingerprints: dict[str, Fingerprints] = {}
        self._rules: tuple[Rule, ...] = ()

    def forget_all_but(self, found: Sequence[JobFiles], rules: tuple[Rule, ...]) -> None:
        """Drop the jobs that no longer exist, and what other rules said."""
        self.runs.forget_all_but(run for files in found for run in files.runs)
        names = {files.name for files in found} if rules == self._rules else set()
        self.jobs = {name: checked for name, checked in self.jobs.items() if name in names}
        self._rules = rules

    def outdated(self, found: Sequence[JobFiles]) -> Mapping[str, Fingerprints]:
        """The jobs that are new or changed or count as finished by now, with the fingerprints of their files."""
        now = time.time()
        seen = {files.name: [fingerprint(path) for path in files.paths] for files in found}
        return {
            name: fingerprints
            for name, fingerprints in seen.items()
            if name not in self.jobs or self._fingerprints[name] != fingerprints or now > self.jobs[name].good_until
        }

    def keep(self, checked: Checked, fingerprints: Fingerprints) -> None:
        """Remember a job whose files had these fingerprints before they were read."""
        self.jobs[checked.job.name] = checked
        self._fingerprints[checked.job.name] = fingerprints


def check_jobs(found: Sequence[JobFiles], rules: Sequence[Rule], runs: RunCache) -> Iterator[Checked]:
    """Read jobs through `runs` and check them, in their order."""
    for job in read_jobs(found, runs):
        evidence = Evidence(job)
        summary = summarize(job, evidence)
        outcomes = fold([check(rule, job.name, evidence) for rule in rules if not rule.of_family])
        yield Checked(job, summary, tuple(outcomes), math.inf if summary.finished else quiet_until(job))


def lean(checked: Checked) -> Checked:
    """The same without what was derived from its curves on the way: what is left is what was read."""
    job = checked.job
    runs = {name: replace(run, scalars={tag: series[:] for tag, series in run.scalars.items()}) for name, run in job.runs.items()}
    return replace(checked, job=replace(job, runs=runs))


def check(rule: Rule, job: str, evidence: Evidence) -> Outcome:
    """One rule on one job. A rule that fails ends as an outcome of its own; nothing else is affected."""
    return _outcome(rule, Outcome(rule.id, job, Status.CLEAR), lambda: [evidence[name] for name in rule.evidence])


def check_family(rule: Rule, family: Family) -> Outcome:
    """One rule on several jobs together."""
    clear = Outcome(rule.id, family.name, Status.CLEAR, jobs=tuple(job.name for job in family.jobs))
    return _outcome(rule, clear, lambda: [family])


def _outcome(rule: Rule, clear: Outcome, gather: Callable[[], list[object]]) -> Outcome:
    try:
        with np.errstate(all="ignore"):  # a log may hold 3e38; what overflows is compared like any other infinite value
            diagnoses = tuple(rule(*gather()))
    except Missing as missing:
        return replace(clear, status=Status.NOT_APPLICABLE, reason=missing.message)
    except Exception as error:  # the one broad except: a failing rule must not spoil the report
        reason = Message("{kind}: {error}", kind=type(error).__name__, error=str(error))
        return replace(clear, status=Status.ERROR, reason=reason)
    return replace(clear, status=Status.FOUND, diagnoses=diagnoses) if diagnoses else clear


def fold(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Fold what a shown finding explains under it, on one job. The folded diagnoses stay in the report."""
    cause = {
        consequence: outcome.rule
        for outcome in outcomes
        for diagnosis in outcome.diagnoses
        if diagnosis.shown
        for consequence in diagnosis.explains
    }
    return [
        replace(outcome, diagnoses=tuple(replace(d, folded_under=cause[outcome.rule]) for d in outcome.diagnoses))
        if outcome.rule in cause
        else outcome
        for outcome in outcomes
    ]
