"""Did it work? Two sides, each one job or several, compared: what was found on them, and their key figures."""

from __future__ import annotations

import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from enum import Enum
from fnmatch import fnmatchcase
from statistics import fmean, median, variance

from tb_advisor.advise import diagnose
from tb_advisor.check import DEFAULTS, Cache
from tb_advisor.config import Config, read_config
from tb_advisor.diagnosis import Confidence, Diagnosis, Outcome, Severity, Status
from tb_advisor.evidence import Evidence
from tb_advisor.figures import BYTES, MILLISECONDS, PERCENT, SECONDS, SHARE, Figure, key_figures
from tb_advisor.message import Message
from tb_advisor.report import JobSummary, Json, Report, plain
from tb_advisor.version import __version__

SCHEMA_VERSION = 1

# A finding came or went where more than this share of a side's jobs gained or lost it: one seed of two or three is chance.
_SHARE_OF_SEEDS = 0.5
# By how much of the step's or the run's time the cost of a finding must change.
_LEAST_IMPACT = 0.1
# Two-sided 99% quantiles of Student's t for 1, 2, … degrees of freedom. Not 95%: half a dozen figures are compared at a time.
_T99 = (63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95)
_T99_BEYOND = 2.9
# With one job a side, the jitter of its own curve stands for chance: as many standard deviations must lie between the two.
_DEVIATIONS = 3.0
# Smaller changes matter to nobody: points of a share, or a part of the value. Another seed alone does twice that, so with one job
# a side, where the seeds' spread is not known, twice as much is asked.
_LEAST_POINTS = {SHARE: 0.01, PERCENT: 1.0}
_LEAST_PART = 0.05
_LEAST_PART_OF_COST = 0.1
_COSTS = frozenset({SECONDS, MILLISECONDS, BYTES})
_SPEEDS = frozenset({"steps per second", "throughput", "step time"})

# What a name has for the seed: seed=3, seed_3, rng-1, rep2.
_SEED = re.compile(r"(?<![A-Za-z])(?:random[_-]?|rng[_-]?)?(?:seed|rng|rep|repeat|replicate)[=_-]?\d+", re.IGNORECASE)


class ComparisonError(Exception):
    """What cannot be compared, and why."""


class NothingToRead(ComparisonError):
    """A side that holds neither a run nor a capture that can be read."""


class Verdict(Enum):
    """What became of a finding or a figure. `UNKNOWN`: one side does not tell, or neither direction is the better one."""

    NEW = "new"
    WORSE = "worse"
    FIXED = "fixed"
    BETTER = "better"
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown"

    @property
    def is_worse(self) -> bool:
        """Whether it is a change for the worse."""
        return self in (Verdict.NEW, Verdict.WORSE)


@dataclass(frozen=True)
class Side:
    """What is compared: a report, and the key figures of each of its jobs by name."""

    name: str
    report: Report
    figures: Mapping[str, tuple[Figure, ...]]


@dataclass(frozen=True)
class Finding:
    """What one rule found on the jobs of one side.

    `summary`, `severity` and `confidence` are those of the worst diagnosis of one job, of several jobs those in the middle. `jobs`
    is in how many of the `checked` jobs it would be shown. `folded_under` names the rule that explains it, `impact` is the median
    share (0–1) of the run's or step's time that it costs.
    """

    summary: Message
    severity: Severity
    confidence: Confidence
    jobs: int
    checked: int
    folded_under: str | None = None
    impact: float | None = None


@dataclass(frozen=True)
class DiagnosisChange:
    """What became of the findings of one rule. A side is None where nothing was found; `reason` says why one was not checked."""

    rule: str
    verdict: Verdict
    base: Finding | None
    new: Finding | None
    reason: Message | None = None


@dataclass(frozen=True)
class Level:
    """A key figure over the jobs of one side: the mean, and with several jobs their standard deviation. `step` with one job only."""

    value: float
    jobs: int
    deviation: float | None = None
    step: int | None = None


@dataclass(frozen=True)
class FigureChange:
    """One key figure of both sides, None where one does not have it.

    `change` is the difference of the values, `needed` what it must exceed to be more than chance, `beyond_noise` whether it does;
    both are None where the two are not compared.
    """

    kind: str
    tag: str
    unit: str
    higher_is_better: bool | None
    verdict: Verdict
    base: Level | None
    new: Level | None
    change: float | None = None
    needed: float | None = None
    beyond_noise: bool = False


@dataclass(frozen=True)
class Pair:
    """The jobs of one configuration on both sides."""

    name: str
    base_jobs: tuple[str, ...]
    new_jobs: tuple[str, ...]
    diagnoses: tuple[DiagnosisChange, ...]
    figures: tuple[FigureChange, ...]


@dataclass(frozen=True)
class Comparison:
    """What changed from `base` to `new`. `only_in_base` and `only_in_new` are jobs that have no counterpart."""

    base: str
    new: str
    pairs: tuple[Pair, ...]
    only_in_base: tuple[str, ...] = ()
    only_in_new: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many diagnoses of each verdict there are."""
        return Counter(change.verdict for pair in self.pairs for change in pair.diagnoses)

    @property
    def worse_figures(self) -> tuple[FigureChange, ...]:
        """The key figures that got worse by more than chance."""
        return tuple(change for pair in self.pairs for change in pair.figures if change.verdict.is_worse)

    @property
    def got_worse(self) -> bool:
        """Whether anything did: a diagnosis that is new or worse, or a key figure that is worse by more than chance."""
        return bool(self.worse_figures) or any(verdict.is_worse and count for verdict, count in self.counts.items())

    def as_json(self) -> dict[str, Json]:
        """The comparison as JSON-ready data: NaN and infinite numbers are the strings "NaN", "Infinity", "-Infinity"."""
        counts: dict[str, Json] = {verdict.value: self.counts.get(verdict, 0) for verdict in Verdict}
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "tb_advisor", "version": __version__},
            "got_worse": self.got_worse,
            "counts": counts,
            **{field.name: plain(getattr(self, field.name)) for field in fields(self)},
        }


def compare(
    base: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    logdir: str | os.PathLike[str] | None = None,
    config: Config | str | os.PathLike[str] | None = None,
    seeds: bool = False,
) -> Comparison:
    """Check two log directories and say what is fixed, new, worse, better and unchanged in `new`.

    With `logdir`, `base` and `new` name jobs in it: a job, one of its runs, a directory above jobs, or a pattern (``lr0.1_*``).
    `seeds` says that all jobs of a side are seeds of one configuration; else those are whose names differ in a seed only.
    Raises `ComparisonError` where a name is not found or no job has a counterpart, `NothingToRead` where a side holds nothing
    that can be read, and `ConfigError` like `diagnose`.
    """
    if not isinstance(config, Config):
        config = DEFAULTS if config is None else read_config(config)
    if logdir is None:
        return compare_sides(_read(base, config), _read(new, config), seeds=seeds)
    both = _read(logdir, config)
    return compare_sides(_part(both, os.fspath(base)), _part(both, os.fspath(new)), seeds=seeds)


def compare_sides(base: Side, new: Side, *, seeds: bool = False) -> Comparison:
    """Compare two sides that were read (see `compare`)."""
    old, now = (_groups(side, seeds) for side in (base, new))
    keys = [(key, key) for key in old if key in now]
    if len(old) == len(now) == 1:
        keys = list(zip(old, now, strict=True))
    if not keys:
        raise ComparisonError(
            f"no job has a counterpart: {_listed(old)} in {base.name}, {_listed(now)} in {new.name} "
            "(jobs are matched by name; --seeds takes all jobs of a side for seeds of one configuration)"
        )
    rules = list(dict.fromkeys((*base.report.rules, *new.report.rules)))
    return Comparison(
        base=base.name,
        new=new.name,
        pairs=tuple(_pair(_Group(base, old.pop(a)), _Group(new, now.pop(b)), rules) for a, b in keys),
        only_in_base=tuple(job for jobs in old.values() for job in jobs),
        only_in_new=tuple(job for jobs in now.values() for job in jobs),
    )


def _read(logdir: str | os.PathLike[str], config: Config) -> Side:
    cache = Cache()
    report = diagnose(logdir, config=config, cache=cache)
    figures = {name: key_figures(Evidence(checked.job, config.tag_roles)) for name, checked in cache.jobs.items()}
    return Side(os.fspath(logdir), report, figures)


def _part(side: Side, name: str) -> Side:
    """The jobs that `name` names. Below a directory, jobs are called by what lies below it."""
    inside = "" if name.strip("/") in ("", ".") else f"{name.strip('/')}/"
    jobs = side.report.jobs
    exact = {job.name: job.name for job in jobs if name in (job.name, *job.runs)}
    below = {job.name: job.name.removeprefix(inside) for job in jobs if inside and job.name.startswith(inside)}
    alike = {job.name: job.name for job in jobs if any(fnmatchcase(each, name) for each in (job.name, *job.runs))}
    names = exact or below or alike
    if not names:
        close = get_close_matches(name, [job.name for job in jobs], n=1)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        raise ComparisonError(f'no job or run "{name}" in {side.name}{hint}')
    return Side(
        name,
        replace(
            side.report,
            jobs=tuple(replace(job, name=names[job.name]) for job in jobs if job.name in names),
            outcomes=tuple(replace(o, job=names[o.job]) for o in side.report.outcomes if o.job in names and not o.jobs),
        ),
        {names[job]: figures for job, figures in side.figures.items() if job in names},
    )


def _groups(side: Side, seeds: bool) -> dict[str, list[str]]:
    """The jobs of a side that can be read, by the configuration of which they are seeds."""
    jobs = [job for job in side.report.jobs if _is_readable(job)]
    if not jobs:
        raise NothingToRead(f"neither a run nor a capture in {side.name} that can be read")
    groups: dict[str, list[str]] = defaultdict(list)
    for job in jobs:
        groups["" if seeds else _configuration(job.name)].append(job.name)
    return groups


def _is_readable(job: JobSummary) -> bool:
    return bool(job.events or job.captures)


def _configuration(job: str) -> str:
    """The name of a job without its seed."""
    return re.sub(r"[/_\-.]+", "/", _SEED.sub("", job)).strip("/")


def _listed(names: Iterable[str]) -> str:
    """The first few names."""
    names = [name or "." for name in names]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class _Group:
    """Jobs of one side that are seeds of one configuration."""

    def __init__(self, side: Side, jobs: Sequence[str]) -> None:
        self.jobs = tuple(jobs)
        self.figures = [side.figures.get(job, ()) for job in jobs]
        named = set(jobs)
        self._outcomes: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in side.report.outcomes:
            if outcome.job in named:
                self._outcomes[outcome.rule].append(outcome)

    def of(self, rule: str) -> list[Outcome]:
        """How the rule ended on each job where it could judge."""
        return [outcome for outcome in self._outcomes[rule] if outcome.status in (Status.CLEAR, Status.FOUND)]

    def why_not(self, rule: str) -> Message | None:
        """Why the rule could not judge."""
        return next((outcome.reason for outcome in self._outcomes[rule] if outcome.reason), None)


def _pair(base: _Group, new: _Group, rules: Sequence[str]) -> Pair:
    changes = [change for rule in rules if (change := _diagnosis_change(rule, base, new)) is not None]
    order = list(Verdict)
    name = new.jobs[0] if len(new.jobs) == 1 else _configuration(new.jobs[0]) or "."
    return Pair(
        name=name,
        base_jobs=base.jobs,
        new_jobs=new.jobs,
        diagnoses=tuple(sorted(changes, key=lambda change: (order.index(change.verdict), -_severity(change)))),
        figures=tuple(_figure_changes(base.figures, new.figures)),
    )


def _severity(change: DiagnosisChange) -> int:
    return max(finding.severity.rank for finding in (change.base, change.new) if finding)


def _diagnosis_change(rule: str, base: _Group, new: _Group) -> DiagnosisChange | None:
    """None where neither side shows anything of this rule."""
    if not any(diagnosis.shown for group in (base, new) for outcome in group.of(rule) for diagnosis in outcome.diagnoses):
        return None
    old_worst, new_worst = ([_worst(outcome) for outcome in group.of(rule)] for group in (base, new))
    old, now = _finding(old_worst), _finding(new_worst)
    if not (old_worst and new_worst):
        unchecked = base if not old_worst else new
        return DiagnosisChange(rule, Verdict.UNKNOWN, old, now, unchecked.why_not(rule) or Message("it was not checked"))
    return DiagnosisChange(rule, _verdict(old, now, len(old_worst), len(new_worst)), old, now)


def _worst(outcome: Outcome) -> Diagnosis | None:
    """The worst diagnosis of one job that the user has not silenced, folded ones included: they are still there."""
    return max((d for d in outcome.diagnoses if d.suppressed is None), key=_rank, default=None)


def _rank(diagnosis: Diagnosis | None) -> int:
    """0 for nothing, 1 for what default views leave out, 2 for a warning, 3 for an error."""
    if diagnosis is None:
        return 0
    return 1 if diagnosis.confidence is Confidence.LOW else 1 + diagnosis.severity.rank


def _finding(worst: Sequence[Diagnosis | None]) -> Finding | None:
    """What one side has, from the worst diagnosis of each of its jobs."""
    found = sorted((d for d in worst if d is not None), key=_rank, reverse=True)
    if not found:
        return None
    shown = [d for d in found if _rank(d) > 1]
    typical = (shown or found)[(len(shown or found) - 1) // 2]
    shares = [d.impact.share for d in found if d.impact and d.impact.share is not None]
    return Finding(
        summary=typical.message,
        severity=typical.severity,
        confidence=typical.confidence,
        jobs=len(shown),
        checked=len(worst),
        folded_under=typical.folded_under,
        impact=median(shares) if shares else None,
    )


def _verdict(base: Finding | None, new: Finding | None, base_jobs: int, new_jobs: int) -> Verdict:
    rise = (new.jobs if new else 0) / new_jobs - (base.jobs if base else 0) / base_jobs
    if rise > _SHARE_OF_SEEDS:
        return Verdict.WORSE if base else Verdict.NEW
    if rise < -_SHARE_OF_SEEDS:
        return Verdict.BETTER if new else Verdict.FIXED
    if not (base and new):
        return Verdict.UNCHANGED
    graver = new.severity.rank - base.severity.rank
    if graver == 0 and base.impact is not None and new.impact is not None and abs(new.impact - base.impact) >= _LEAST_IMPACT:
        graver = 1 if new.impact > base.impact else -1
    return Verdict.WORSE if graver > 0 else Verdict.BETTER if graver < 0 else Verdict.UNCHANGED


def _figure_changes(base: Sequence[tuple[Figure, ...]], new: Sequence[tuple[Figure, ...]]) -> Iterable[FigureChange]:
    """One change a kind of figure, in the order of `key_figures`."""
    kinds = list(dict.fromkeys(figure.kind for figures in (*base, *new) for figure in figures))
    validated = any(kind.startswith("best validation") for kind in kinds)
    for kind in kinds:
        old, now = (_by_tag(side, kind) for side in (base, new))
        tag = next((tag for tag in old if tag in now), None)
        olds = old[tag] if tag is not None else next(iter(old.values()), [])
        nows = now[tag] if tag is not None else next(iter(now.values()), [])
        yield _figure_change(olds, nows, judged=tag is not None and not (validated and (olds or nows)[0].of_training))


def _by_tag(side: Sequence[tuple[Figure, ...]], kind: str) -> dict[str, list[Figure]]:
    """The figures of one kind, one a job, under each tag that has one."""
    found: dict[str, list[Figure]] = defaultdict(list)
    for figures in side:
        for figure in figures:
            if figure.kind == kind:
                found[figure.tag].append(figure)
    return found


def _figure_change(base: Sequence[Figure], new: Sequence[Figure], *, judged: bool) -> FigureChange:
    """Compare the same figure of the jobs of both sides; one may be empty."""
    about = (new or base)[0]
    old, now = _level(base), _level(new)
    result = FigureChange(about.kind, about.tag, about.unit, about.higher_is_better, Verdict.UNKNOWN, old, now)
    if old is None or now is None or base[0].tag != new[0].tag or base[0].unit != new[0].unit:
        return result
    change, needed = now.value - old.value, _needed(base, new)
    result = replace(result, change=change, needed=needed, beyond_noise=abs(change) > needed)
    if not judged or about.higher_is_better is None:
        return result
    return replace(result, verdict=_figure_verdict(result, about.higher_is_better))


def _figure_verdict(change: FigureChange, higher_is_better: bool) -> Verdict:
    assert change.base and change.new and change.change is not None
    finite = math.isfinite(change.base.value), math.isfinite(change.new.value)
    if not all(finite):
        return Verdict.UNCHANGED if finite[0] == finite[1] else Verdict.BETTER if finite[1] else Verdict.WORSE
    if not change.beyond_noise:
        return Verdict.UNCHANGED
    return Verdict.BETTER if (change.change > 0) == higher_is_better else Verdict.WORSE


def _level(figures: Sequence[Figure]) -> Level | None:
    if not figures:
        return None
    if len(figures) == 1:
        return Level(figures[0].value, 1, step=figures[0].step)
    values = [figure.value for figure in figures]
    finite = all(map(math.isfinite, values))
    return Level(fmean(values) if finite else math.nan, len(values), math.sqrt(variance(values)) if finite else None)


def _needed(base: Sequence[Figure], new: Sequence[Figure]) -> float:
    """What the difference must exceed: what chance does (Student's t over the seeds; with one job a side the jitter of its curve),
    and what matters.
    """
    values = [[figure.value for figure in figures] for figures in (base, new)]
    freedom = sum(map(len, values)) - 2
    by_chance = 0.0
    if freedom == 0:
        by_chance = _DEVIATIONS * math.hypot(base[0].noise, new[0].noise)
    elif all(math.isfinite(value) for side in values for value in side):
        pooled = sum((len(side) - 1) * variance(side) for side in values if len(side) > 1) / freedom
        t = _T99[freedom - 1] if freedom <= len(_T99) else _T99_BEYOND
        by_chance = t * math.sqrt(pooled * sum(1 / len(side) for side in values))
    return max(by_chance, _what_matters(base[0], fmean(values[0])) * (1 if freedom else 2))


def _what_matters(figure: Figure, value: float) -> float:
    if figure.unit in _LEAST_POINTS:
        return _LEAST_POINTS[figure.unit]
    part = _LEAST_PART_OF_COST if figure.unit in _COSTS or figure.kind in _SPEEDS else _LEAST_PART
    return max(part * abs(value), figure.least)
