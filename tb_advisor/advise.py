"""The engine: jobs → evidence → rules → report."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from tb_advisor.budget import default_budget, share_to_keep
from tb_advisor.check import DEFAULTS, Cache, Checked, check_family, check_jobs
from tb_advisor.config import Config, read_config
from tb_advisor.logdir.jobs import JobFiles, LogdirError, find_families, find_jobs
from tb_advisor.message import Message
from tb_advisor.pool import batches_of, can_check, check_in_processes, workers_for
from tb_advisor.report import Note, Report
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


Watcher = Callable[[Progress, Callable[[], Report]], None]


def diagnose(
    logdir: str | os.PathLike[str],
    *,
    config: Config | str | os.PathLike[str] | None = None,
    rules: Sequence[Rule] | None = None,
    cache: Cache | None = None,
    watch: Watcher | None = None,
    workers: int | None = None,
    memory_bytes: int | None = None,
) -> Report:
    """Read every run and capture below `logdir` and check them all.

    `config` is a configuration or the file that holds one: pyproject.toml or tb_advisor.toml (docs/configuration.md); without it the
    defaults hold. `rules` replaces the default rules. `cache` is kept between calls, so that only jobs whose files changed are read and
    checked again. `watch` is called before the first and after each job with the progress, and a function that gives the
    report so far. `workers` processes do the work: as many as the log directory is worth where it is None, this one alone
    where it is 1. Where the points may take more than `memory_bytes` (None: a quarter of the machine's), jobs are checked
    one by one and only what charts need is kept of them; a capture that needs more is not read.

    Never raises because of what lies in the log directory; one that does not exist gives a report with a note. Raises
    `ConfigError` where the file of the configuration holds anything that is not understood.
    """
    if not isinstance(config, Config):
        config = DEFAULTS if config is None else read_config(config, rules or ())
    rules = config.applied_to(all_rules() if rules is None else rules)
    cache = Cache() if cache is None else cache
    report = Report(logdir=str(logdir), config=config.path or None, rules=tuple(rule.id for rule in rules))
    try:
        found = find_jobs(Path(logdir))
    except (LogdirError, OSError) as error:
        cache.forget_all_but([], rules, config)
        return replace(report, notes=(Note("", "", Message("{error}", error=str(error))),))
    done: list[Checked] = []
    progress = Progress(0, len(found), 0, sum(len(f.runs) for f in found), 0, sum(f.bytes for f in found))
    if watch:
        watch(progress, lambda: report)
    budget = default_budget() if memory_bytes is None else memory_bytes
    share = share_to_keep(found, budget)
    cache.forget_all_but(found, rules, config, share)
    outdated = cache.outdated(found)
    stale = [files for files in found if files.name in outdated]
    with closing(_check(stale, rules, config, cache, budget, share, workers)) as fresh:
        for files in found:
            if files.name in outdated:
                cache.keep(next(fresh), outdated[files.name])
            done.append(cache.jobs[files.name])
            progress = replace(
                progress,
                jobs=progress.jobs + 1,
                runs=progress.runs + len(files.runs),
                bytes=progress.bytes + files.bytes,
            )
            if watch:
                watch(progress, lambda: _with(report, done))
    families = find_families(checked.job for checked in done)
    over_families = [config.silenced(outcome) for family in families for outcome in check_family(rules, family, cache.jobs)]
    over_jobs = _with(report, done)
    return replace(over_jobs, outcomes=(*over_jobs.outcomes, *over_families))


def _check(
    found: Sequence[JobFiles],
    rules: tuple[Rule, ...],
    config: Config,
    cache: Cache,
    budget: int,
    share: float | None,
    workers: int | None,
) -> Generator[Checked, None, None]:
    """Check jobs in their order, in processes where that pays and they know the rules. Where points are kept, this process
    goes on in the files that have grown.
    """
    if not can_check(rules, config) or (share is None and any(files.name in cache.jobs for files in found)):
        workers = 1
    elif workers is None:
        workers = workers_for(found, budget)
    if workers == 1:
        yield from check_jobs(found, rules, cache.runs, config, share, budget)
        return
    batches = batches_of(found, workers)
    for batch, checked in zip(batches, check_in_processes(batches, rules, config, share, budget, workers), strict=True):
        yield from checked if checked is not None else check_jobs(batch, rules, cache.runs, config, share, budget)


def _with(report: Report, done: Sequence[Checked]) -> Report:
    """The report with these jobs in it."""
    return replace(
        report,
        jobs=tuple(checked.summary for checked in done),
        outcomes=tuple(outcome for checked in done for outcome in checked.outcomes),
        notes=tuple(Note(checked.job.name, run, note) for checked in done for run, note in checked.job.notes),
    )
