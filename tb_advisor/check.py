"""One job: read it, run the rules on it, and remember what they said until its files change."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tb_advisor.budget import event_bytes
from tb_advisor.chart import bucket_indices
from tb_advisor.config import Config
from tb_advisor.diagnosis import Diagnosis, HistogramExhibit, Outcome, SeriesExhibit, Severity, Status
from tb_advisor.evidence import Evidence
from tb_advisor.evidence.run_state import quiet_until
from tb_advisor.evidence.trials import Trial
from tb_advisor.fixes.advice import advised
from tb_advisor.logdir.event_file import Fingerprint
from tb_advisor.logdir.jobs import Family, Job, JobFiles, RunCache, read_jobs
from tb_advisor.message import Message, Missing
from tb_advisor.report import JobSummary, summarize
from tb_advisor.rule import Rule
from tb_advisor.series import Series, Steps

Fingerprints = tuple[Fingerprint, ...]

# Of a series whose points are too many for memory. A point takes a step, a wall time, a value and a weight.
_MOST_POINTS, _LEAST_POINTS = 5000, 800
_THINNED_BYTES = 32

DEFAULTS = Config()


@dataclass(frozen=True)
class Curve:
    """A series for charts. Where it was thinned, `weights` says of how many points each of its points is left; it has the
    shape of the series.
    """

    series: Series
    weights: Steps | None = None

    def points_within(self, span: tuple[int, int] | None) -> int:
        """How many points the log has within a range of steps, both ends included."""
        weights = np.ones(len(self.series), np.int64) if self.weights is None else self.weights
        if span is not None:
            weights = weights[(self.series.steps >= span[0]) & (self.series.steps <= span[1])]
        return int(weights.sum())


@dataclass(frozen=True)
class Checked:
    """A job and what the rules said of it. That holds until its files change, or until `good_until` (seconds since the
    epoch): from then on a job that seemed to be running counts as finished. `trial` is what rules over several jobs see of
    it. `weights` are those of the curves by run and tag, where only what charts need was kept.
    """

    job: Job
    summary: JobSummary
    outcomes: tuple[Outcome, ...]
    good_until: float
    trial: Trial
    weights: Mapping[tuple[str, str], Steps] = field(default_factory=dict)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Every scalar series of the job."""
        return tuple(Curve(series, self.weights.get((series.run, series.tag))) for series in self.job.scalars)


class Cache:
    """What one call of `diagnose` leaves to the next: what was read, and what the rules said of each job."""

    def __init__(self) -> None:
        self.runs = RunCache()
        self.jobs: dict[str, Checked] = {}
        self._fingerprints: dict[str, Fingerprints] = {}
        self._settings: tuple[tuple[Rule, ...], Config] = (), DEFAULTS

    def forget_all_but(
        self, found: Sequence[JobFiles], rules: tuple[Rule, ...], config: Config = DEFAULTS, share: float | None = None
    ) -> None:
        """Drop the jobs that no longer exist, what other rules or the same ones with another configuration said, and with a `share`
        all points that charts do not need.
        """
        self.runs.forget_all_but(run for files in found for run in files.runs if share is None)
        names = {files.name for files in found} if (rules, config) == self._settings else set()
        self.jobs = {name: checked for name, checked in self.jobs.items() if name in names}
        self._settings = rules, config
        for files in found:
            if share is not None and files.name in self.jobs and not self.jobs[files.name].weights:
                self.jobs[files.name] = thinned(self.jobs[files.name], share * event_bytes(files))

    def outdated(self, found: Sequence[JobFiles]) -> Mapping[str, Fingerprints]:
        """The jobs that are new or changed or count as finished by now, with the fingerprints of their files."""
        now = time.time()
        seen = {files.name: files.fingerprints for files in found}
        return {
            name: fingerprints
            for name, fingerprints in seen.items()
            if name not in self.jobs or self._fingerprints[name] != fingerprints or now > self.jobs[name].good_until
        }

    def keep(self, checked: Checked, fingerprints: Fingerprints) -> None:
        """Remember a job whose files had these fingerprints before they were read."""
        self.jobs[checked.job.name] = checked
        self._fingerprints[checked.job.name] = fingerprints


def check_jobs(
    found: Sequence[JobFiles],
    rules: Sequence[Rule],
    runs: RunCache,
    config: Config = DEFAULTS,
    share: float | None = None,
    memory_bytes: int | None = None,
) -> Iterator[Checked]:
    """Read jobs through `runs` and check them, in their order. The rules have the thresholds of `config` already. Reading a capture may
    take `memory_bytes`, where that is given.

    With a `share` (of `budget.share_to_keep`) one job at a time is in memory, and then what charts need of it.
    """
    if share is not None:
        for files in found:
            (checked,) = check_jobs([files], rules, runs, config, None, memory_bytes)
            runs.forget_all_but(())
            yield thinned(checked, share * event_bytes(files))
        return
    for job in read_jobs(found, runs):
        evidence = Evidence(job, config.tag_roles, memory_bytes=memory_bytes)
        summary = summarize(job, evidence)
        outcomes = fold([check(rule, job.name, evidence) for rule in rules if not rule.of_family])
        silenced = tuple(config.silenced(outcome) for outcome in outcomes)
        yield Checked(job, summary, silenced, math.inf if summary.finished else quiet_until(job), evidence["trial"])


def lean(checked: Checked) -> Checked:
    """The same without what was derived from its curves on the way: what is left is what was read."""
    job = checked.job
    runs = {name: replace(run, scalars={tag: series[:] for tag, series in run.scalars.items()}) for name, run in job.runs.items()}
    return replace(checked, job=replace(job, runs=runs))


def thinned(checked: Checked, room: float) -> Checked:
    """What charts need: of each series as many points as fit in `room` bytes together, within limits, and all that the
    diagnoses mark.
    """
    marks: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    shown: set[tuple[str, str]] = set()
    for exhibit in (e for outcome in checked.outcomes for diagnosis in outcome.diagnoses for e in diagnosis.exhibits):
        if isinstance(exhibit, HistogramExhibit):
            shown.add((exhibit.run, exhibit.tag))
        elif isinstance(exhibit, SeriesExhibit):
            for run_tag in exhibit.run_tags:
                marks[run_tag] += [(mark.start, mark.end) for mark in exhibit.marks]
    most = int(room / _THINNED_BYTES / max(1, len(checked.job.scalars)))
    runs, weights = {}, {}
    for name, run in checked.job.runs.items():
        scalars = {}
        for tag, series in run.scalars.items():
            kept = bucket_indices(series, min(_MOST_POINTS, max(_LEAST_POINTS, most)), marks[name, tag])
            scalars[tag] = series[kept]
            weights[name, tag] = np.diff(kept, append=len(series))
        histograms = {tag: its for tag, its in run.histograms.items() if (name, tag) in shown}
        runs[name] = replace(run, scalars=scalars, histograms=histograms, stored={})
    return replace(checked, job=replace(checked.job, runs=runs), weights=weights)


def check(rule: Rule, job: str, evidence: Evidence) -> Outcome:
    """One rule on one job, with what to try there. A rule that fails ends as an outcome of its own; nothing else is affected."""
    outcome = _outcome(rule, Outcome(rule.id, job, Status.CLEAR), lambda: [evidence[name] for name in rule.evidence])
    return replace(outcome, diagnoses=tuple(advised(diagnosis, rule.id, rule.fixes, evidence) for diagnosis in outcome.diagnoses))


def check_family(rules: Sequence[Rule], family: Family, known: Mapping[str, Checked]) -> list[Outcome]:
    """The rules over families on one of them. What asks for all points is not applicable where only what charts need was kept."""
    names = tuple(job.name for job in family.jobs)
    evidence = Evidence(family=family, trials=tuple(known[name].trial for name in names))
    cut = sum(bool(known[name].weights) for name in names)

    def gather(rule: Rule) -> list[object]:
        if cut and "family" in rule.evidence:
            raise Missing("the points of {cut} of these {jobs} jobs, which are too many for memory", cut=cut, jobs=len(names))
        return [evidence[name] for name in rule.evidence]

    return [
        _outcome(rule, Outcome(rule.id, family.name, Status.CLEAR, jobs=names), partial(gather, rule)) for rule in rules if rule.of_family
    ]


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
    """Fold what a shown finding explains under it, on one job. The folded diagnoses stay in the report, and what explains
    them all is as severe as the worst of them.
    """
    cause: dict[str, str] = {}
    for outcome in outcomes:
        for consequence in (rule for diagnosis in outcome.diagnoses if diagnosis.shown for rule in diagnosis.explains):
            if _root(outcome.rule, cause) != consequence:
                cause.setdefault(consequence, outcome.rule)
    worst: dict[str, Severity] = {}
    for outcome in outcomes:
        root = _root(outcome.rule, cause)
        shown = [diagnosis.severity for diagnosis in outcome.diagnoses if diagnosis.shown]
        worst[root] = max([*shown, worst.get(root, Severity.INFO)], key=lambda severity: severity.rank)

    def folded(rule: str, diagnosis: Diagnosis) -> Diagnosis:
        if rule in cause:
            return replace(diagnosis, folded_under=cause[rule])
        severity = max(diagnosis.severity, worst[rule], key=lambda severity: severity.rank)
        return replace(diagnosis, severity=severity) if diagnosis.shown else diagnosis

    return [replace(o, diagnoses=tuple(folded(o.rule, diagnosis) for diagnosis in o.diagnoses)) for o in outcomes]


def _root(rule: str, cause: Mapping[str, str]) -> str:
    """The rule whose finding explains this one's, over all that lie between."""
    while rule in cause:
        rule = cause[rule]
    return rule
