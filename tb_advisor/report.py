"""The report: plain data, and its JSON form, `schema_version` 1.

Adding a field does not raise the version; removing or renaming one does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TypeAlias

from tb_advisor.diagnosis import Diagnosis, Outcome
from tb_advisor.evidence import Evidence
from tb_advisor.evidence.roles import SPLIT_ROLES, Roles
from tb_advisor.evidence.trace_steps import MarkedSteps
from tb_advisor.fixes import Fix, fix, in_order_for
from tb_advisor.fixes.values import VALUES
from tb_advisor.links import Host, links_of
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Message, Missing, duration
from tb_advisor.series import Series
from tb_advisor.version import __version__

SCHEMA_VERSION = 1

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True)
class Note:
    """Something that could not be read. `run` is empty where it concerns the whole log directory."""

    job: str
    run: str
    text: Message


@dataclass(frozen=True)
class BestValue:
    """The best point of the validation loss (of the training loss where there is none), and its last value."""

    run: str
    tag: str
    step: int
    value: float
    last: float


@dataclass(frozen=True)
class TagUse:
    """A scalar of a job, its role and its split (``training`` or ``validation``), both None where it has no role, and the reason."""

    run: str
    tag: str
    role: str | None
    split: str | None
    reason: str

    @property
    def name(self) -> str:
        """The role as the configuration calls it (``training loss``, ``step time``), ``no role`` where there is none."""
        role = (self.role or "no role").replace("_", " ")
        return f"{self.split} {role}" if self.role in SPLIT_ROLES else role


@dataclass(frozen=True)
class CaptureContents:
    """What one trace of a profiler capture holds, before anything is judged of it: `steps` whole steps, told by events called
    `marker` (empty where nothing repeats), which the program marked or which only repeat; the accelerators; the recorded time.
    """

    capture: str
    host: str
    devices: int
    steps: int
    marker: str
    marked: bool
    window_ms: float
    notes: tuple[Message, ...] = ()

    @property
    def text(self) -> str:
        """The same as a line."""
        steps = f"{self.steps:,} {'steps' if self.steps != 1 else 'step'}"
        told = f"{steps} {'marked' if self.marked else 'told'} by {self.marker}" if self.marker else "no steps"
        devices = f"{self.devices} {'devices' if self.devices != 1 else 'device'}" if self.devices else "no device"
        return f"{told}, {devices}, {duration(self.window_ms / 1000)}"


@dataclass(frozen=True)
class JobSummary:
    """One job in a line.

    Wall times are seconds since the epoch. `first_step` and `last_step` are those of the losses that rules compare, so
    that a log with several axes (epochs beside iterations) counts in theirs. `roles` maps roles to their (run, tag)
    pairs; `tag_roles` has every scalar with the reason of its role, in the order of `roles`, those without one last.
    """

    name: str
    runs: tuple[str, ...]
    writer: str
    task: str
    finished: bool
    first_step: int | None
    last_step: int | None
    started: float | None
    duration_s: float
    tags: int
    events: int
    points: int
    captures: tuple[str, ...]
    histogram_runs: tuple[str, ...]
    roles: Mapping[str, tuple[tuple[str, str], ...]]
    best: BestValue | None
    tag_roles: tuple[TagUse, ...] = ()
    capture_contents: tuple[CaptureContents, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything the Advisor has to say about a log directory. `config` is the file of the configuration, None for the defaults."""

    logdir: str
    rules: tuple[str, ...] = ()
    jobs: tuple[JobSummary, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    notes: tuple[Note, ...] = ()
    config: str | None = None

    @property
    def diagnoses(self) -> tuple[tuple[Outcome, Diagnosis], ...]:
        """(outcome, diagnosis) pairs of everything that was found."""
        return tuple((outcome, diagnosis) for outcome in self.outcomes for diagnosis in outcome.diagnoses)

    def as_json(self) -> dict[str, Json]:
        """The report as JSON-ready data: NaN and infinite numbers are the strings "NaN", "Infinity", "-Infinity"."""
        from tb_advisor.rules import all_rules

        jobs = {job.name: job for job in self.jobs}
        host = Host(n_runs=sum(len(job.runs) for job in self.jobs))
        fixes_of = {rule.id: rule.fixes for rule in all_rules()}
        outcomes = []
        for outcome in self.outcomes:
            data = plain(outcome)
            assert isinstance(data, dict)
            job = jobs.get(outcome.jobs[0] if outcome.jobs else outcome.job)
            histogram_runs = job.histogram_runs if job and not outcome.jobs else ()
            data["diagnoses"] = [
                _diagnosis(diagnosis, job.writer if job else "", histogram_runs, diagnosis.fixes or fixes_of.get(outcome.rule, ()), host)
                for diagnosis in outcome.diagnoses
            ]
            if not outcome.jobs:
                del data["jobs"]
            outcomes.append(data)
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "tb_advisor", "version": __version__},
            "logdir": self.logdir,
            "config": self.config,
            "rules": list(self.rules),
            "jobs": [plain(job) for job in self.jobs],
            "outcomes": [*outcomes],
            "stories": [],
            "notes": [plain(note) for note in self.notes],
        }


def summarize(job: Job, evidence: Evidence) -> JobSummary:
    """The line that stands for a job in the report."""
    series = [s for s in job.scalars if len(s)]
    main = _main_curves(evidence) or series
    starts = [float(s.wall_times[0]) for s in series]
    ends = [float(s.wall_times[-1]) for s in series]
    roles: Roles = evidence["roles"]
    return JobSummary(
        name=job.name,
        runs=tuple(job.runs),
        writer=evidence["writer"],
        task=evidence["task"],
        finished=evidence["finished"],
        first_step=min((int(s.steps.min()) for s in main), default=None),
        last_step=max((int(s.steps.max()) for s in main), default=None),
        started=min(starts, default=None),
        duration_s=max(ends) - min(starts) if series else 0.0,
        tags=len({s.tag for s in series}),
        events=sum(run.events for run in job.runs.values()),
        points=sum(len(s) for s in series),
        captures=tuple(capture.name for capture in job.captures),
        histogram_runs=tuple(run.name for run in job.runs.values() if "histograms" in run.tags.values()),
        roles={role: tuple((s.run, s.tag) for s in members) for role, members in roles.by_role().items()},
        best=_best(evidence),
        tag_roles=_tag_uses(roles),
        capture_contents=_contents(evidence) if job.captures else (),
    )


def _contents(evidence: Evidence) -> tuple[CaptureContents, ...]:
    """What the captures hold, as far as they could be read: what could not be is a finding of its own."""
    try:
        marked: tuple[MarkedSteps, ...] = evidence["marked_steps"]
    except Exception:  # the rules say why
        return ()
    return tuple(
        CaptureContents(
            capture=steps.capture.name,
            host=steps.trace.host,
            devices=len(steps.trace.devices),
            steps=steps.periods,
            marker=steps.marker,
            marked=steps.are_marked,
            window_ms=steps.trace.window_ms,
            notes=steps.trace.notes,
        )
        for steps in marked
    )


def _tag_uses(roles: Roles) -> tuple[TagUse, ...]:
    place = {series: index for index, series in enumerate(series for members in roles.by_role().values() for series in members)}
    used = [TagUse(a.series.run, a.series.tag, a.role, a.split, a.reason) for a in sorted(roles.assignments, key=lambda a: place[a.series])]
    return (*used, *(TagUse(u.series.run, u.series.tag, None, None, u.because) for u in roles.unassigned))


def plain(value: object) -> Json:
    """Dataclasses, messages and enums as JSON-ready data."""
    if isinstance(value, Message):
        return str(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if value is None or isinstance(value, (str, int)):
        return value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no place in a report")


def _diagnosis(diagnosis: Diagnosis, writer: str, histogram_runs: tuple[str, ...], fix_ids: tuple[str, ...], host: Host) -> dict[str, Json]:
    data = plain(diagnosis)
    assert isinstance(data, dict)
    del data["message"]
    return {
        "summary": diagnosis.summary,
        "template": diagnosis.message.template,
        **data,
        "fixes": [_fix(fix(identifier), writer, diagnosis.fix_values) for identifier in fix_ids],
        "links": [plain(link) for link in links_of(diagnosis, histogram_runs, host)],
        "values": plain(diagnosis.values),
    }


def _fix(entry: Fix, writer: str, values: Mapping[str, float]) -> Json:
    code = entry.code_with(values)
    urls = {name: entry.urls[name] for name in in_order_for(writer, entry.urls)}
    return {
        "id": entry.id,
        "title": str(entry.title),
        "why": str(entry.why),
        "check": str(entry.check),
        "cost": entry.cost.value,
        "effect": str(entry.effect),
        "source": plain(entry.source),
        "figure": entry.figure.value,
        "code": {name: code[name] for name in in_order_for(writer, code)},
        "from_run": [
            {"name": name, "value": plain(values[name]), "text": str(VALUES[name].source)}
            for name in sorted(entry.names & values.keys() & VALUES.keys())
        ],
        "url": next(iter(urls.values()), None),
        "urls": {**urls},
    }


def _main_curves(evidence: Evidence) -> list[Series]:
    """Validation loss and training loss, those that are there."""
    found = []
    for name in ("val_loss", "train_loss"):
        with suppress(Missing):
            found.append(evidence[name])
    return found


def _best(evidence: Evidence) -> BestValue | None:
    for series in _main_curves(evidence):
        finite = series.finite
        if len(finite):
            at = int(finite.values.argmin())
            return BestValue(series.run, series.tag, int(finite.steps[at]), float(finite.values[at]), float(series.values[-1]))
    return None
