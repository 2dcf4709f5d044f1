"""What a rule says: plain data, no markup, no formatted text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from tb_advisor.message import Message, Value


class Severity(Enum):
    """How bad it is, if it is true."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error."""
        return list(Severity).index(self)


class Confidence(Enum):
    """How sure the rule is that it is true."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Status(Enum):
    """How a rule ended on a job."""

    FOUND = "found"
    CLEAR = "clear"
    NOT_APPLICABLE = "not_applicable"
    ERROR = "error"


@dataclass(frozen=True)
class Impact:
    """What it costs, in the user's unit. `share` is 0–1 of the run's or the step's time, where that can be said."""

    kind: str
    text: Message
    share: float | None = None


@dataclass(frozen=True)
class Mark:
    """Steps of a chart that matter, both ends included."""

    start: int
    end: int
    label: Message


@dataclass(frozen=True)
class SeriesExhibit:
    """Curves over steps: (run, tag) pairs that share one axis, with the marked steps."""

    run_tags: tuple[tuple[str, str], ...]
    marks: tuple[Mark, ...] = ()
    kind: str = field(default="series", init=False)


@dataclass(frozen=True)
class HistogramExhibit:
    """The histograms of one tag of one run."""

    run: str
    tag: str
    kind: str = field(default="histogram", init=False)


@dataclass(frozen=True)
class TableExhibit:
    """Numbers that are clearer in rows than in a sentence. `tab` names the TensorBoard plugin that shows more of it, of the run `run`;
    both may be empty.
    """

    title: Message
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    tab: str = ""
    run: str = ""
    kind: str = field(default="table", init=False)


@dataclass(frozen=True)
class StepPart:
    """One part of every step's time: `ms` has one value a step, in milliseconds.

    `name` is ``own`` (what the diagnosis is about), or what the rest of the time is: ``device``, ``communication``, ``input``,
    ``compile``, ``host``, ``idle`` or ``rest``.
    """

    name: str
    label: Message
    ms: tuple[float, ...]


@dataclass(frozen=True)
class TraceExhibit:
    """Step times of one profiler capture, and the Profile tool that shows them.

    `capture` is TensorBoard's name of it (``<run>/<session>``). `steps` are step numbers; `wait_ms` is what the diagnosis is about, called
    `wait_label`, and `busy_ms` everything else: one value a step, in milliseconds, which add up to the step time. `parts` add up to it as
    well and say more of the rest; none of them is ``own`` where `wait_ms` lies across the others. `tool` is empty where no Profile
    tool reads this kind of capture.
    """

    capture: str
    tool: str
    host: str
    steps: tuple[int, ...] = ()
    busy_ms: tuple[float, ...] = ()
    wait_ms: tuple[float, ...] = ()
    wait_label: Message = Message("waiting for input")
    parts: tuple[StepPart, ...] = ()
    kind: str = field(default="trace", init=False)


@dataclass(frozen=True)
class TimelineExhibit:
    """What an allocator had in use over one capture: `bytes` from each of `times_ms` on, milliseconds from its beginning.

    `peak_ms`, `peak_bytes` and `peak_label` are the moment that the diagnosis is about; `capacity` is in bytes, None where it is not known.
    """

    title: Message
    times_ms: tuple[float, ...]
    bytes: tuple[float, ...]
    capacity: float | None
    peak_ms: float
    peak_bytes: float
    peak_label: Message
    kind: str = field(default="timeline", init=False)


@dataclass(frozen=True)
class TextExhibit:
    """Plain lines, shown as they are. `tab` names the TensorBoard plugin that shows more of it; it may be empty."""

    lines: tuple[str, ...]
    tab: str = ""
    kind: str = field(default="text", init=False)


Exhibit: TypeAlias = SeriesExhibit | HistogramExhibit | TableExhibit | TraceExhibit | TimelineExhibit | TextExhibit


@dataclass(frozen=True)
class Diagnosis:
    """One thing that went wrong: what, how much, where, what it costs and how it can be seen.

    `onset_step` and `last_step` are in the unit of the job's own steps. `fixes` overrides the rule's list where the
    evidence names a better order; `fix_values` are numbers for their snippets (`fixes.values.VALUES`). `explains` names
    rules whose findings on the same job are consequences of this one and are folded under it; `folded_under` names the
    rule that explains this diagnosis, `story` the story it belongs to, `suppressed` the reason for which the user has
    silenced it.
    """

    message: Message
    severity: Severity
    confidence: Confidence
    onset_step: int | None = None
    last_step: int | None = None
    impact: Impact | None = None
    exhibits: tuple[Exhibit, ...] = ()
    fixes: tuple[str, ...] = ()
    fix_values: Mapping[str, float] = field(default_factory=dict)
    explains: tuple[str, ...] = ()
    folded_under: str | None = None
    story: str | None = None
    suppressed: str | None = None

    @property
    def summary(self) -> str:
        """The message with its values, in English."""
        return str(self.message)

    @property
    def values(self) -> Mapping[str, Value]:
        """The numbers of the summary."""
        return self.message.values

    @property
    def shown(self) -> bool:
        """Whether default views show it; everything else is counted and one step away."""
        return (
            self.severity is not Severity.INFO
            and self.confidence is not Confidence.LOW
            and self.folded_under is None
            and self.suppressed is None
        )


@dataclass(frozen=True)
class Outcome:
    """How one rule ended on one job (or on a family of jobs: then `jobs` names them)."""

    rule: str
    job: str
    status: Status
    reason: Message | None = None
    diagnoses: tuple[Diagnosis, ...] = ()
    jobs: tuple[str, ...] = ()
