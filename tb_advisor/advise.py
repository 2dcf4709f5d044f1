"""The engine: jobs → evidence → rules → report."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tb_advisor.diagnosis import Outcome, Status
from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Family, Job, LogdirError, RunCache, find_families, find_jobs, read_jobs
from tb_advisor.message import Message, Missing
from tb_advisor.report import Note, Report, summarize
from tb_advisor.rule import Rule
from tb_advisor.rules import all_rules


@dataclass(frozen=True)
class Progress:
    """How far reading and checking has come: jobs, runs and bytes, each done and in all."""

    jobs: int = 0
    jobs_total: int = 0
    runs: int = 0
    runs_total: int = 0
    bytes: int = 0
    bytes_total: int = 0


Watcher = Callable[[Progress, Report, "Job | None"], None]


def diagnose(
    logdir: str | os.PathLike[str],
    *,
    rules: Sequence[Rule] | None = None,
    cache: RunCache | None = None,
    watch: Watcher | None = None,
) -> Report:
    """Read every run and capture below `logdir` and check them all.

    `rules` replaces the default rules. `cache` keeps runs between calls, so that only those whose files changed are
    read again. `watch` is called before and after each job with the progress, the report so far and the job just read.
    Never raises because of what lies in the log directory; one that does not exist gives a report with a note.
    """
    rules = all_rules() if rules is None else rules
    cache = RunCache() if cache is None else cache
    report = Report(logdir=str(logdir), rules=tuple(rule.id for rule in rules))
    try:
        found = find_jobs(Path(logdir))
    except (LogdirError, OSError) as error:
        return replace(report, notes=(Note("", "", Message("{error}", error=str(error))),))
    cache.forget_all_but(run for files in found for run in files.runs)
    progress = Progress(0, len(found), 0, sum(len(f.runs) for f in found), 0, sum(f.bytes for f in found))
    jobs: list[Job] = []
    if watch:
        watch(progress, report, None)
    for files, job in zip(found, read_jobs(found, cache), strict=True):
        evidence = Evidence(job)
        outcomes = fold([check(rule, job.name, evidence) for rule in rules if not rule.of_family])
        jobs.append(job)
        report = replace(
            report,
            jobs=(*report.jobs, summarize(job, evidence)),
            outcomes=(*report.outcomes, *outcomes),
            notes=(*report.notes, *(Note(job.name, run, note) for run, note in job.notes)),
        )
        progress = replace(
            progress,
            jobs=progress.jobs + 1,
            runs=progress.runs + len(files.runs),
            bytes=progress.bytes + files.bytes,
        )
        if watch:
            watch(progress, report, job)
    families = find_families(jobs)
    over_families = [check_family(rule, family) for rule in rules if rule.of_family for family in families]
    return replace(report, outcomes=(*report.outcomes, *over_families))


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
