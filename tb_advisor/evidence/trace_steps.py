"""Profiler captures: the steps in them, how long each took, and how much of it was spent waiting for input.

A step is measured from its start to the start of the next one, never by the duration of its marker: where the batch is fetched outside
the marker, the marker lasts 5 ms and the step 127 ms.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from tb_advisor.evidence.intervals import Floats, Intervals, covered, joined, merged
from tb_advisor.evidence.roles import words
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.jobs import Job
from tb_advisor.logdir.reading import read_trace
from tb_advisor.logdir.trace import SUMMARY, Line, Plane, Trace, UnreadableTrace
from tb_advisor.message import Message, Missing

LEAST_STEPS = 3


@dataclass(frozen=True)
class Unread:
    """A file of a capture that was not read, and why. `broken` tells a damaged file from an old or too large one."""

    file: str
    reason: Message
    broken: bool


@dataclass(frozen=True, eq=False)
class CaptureTraces:
    """One capture, read: a trace for each host that could be read."""

    capture: Capture
    traces: tuple[Trace, ...]
    unread: tuple[Unread, ...]


class StepSource(Enum):
    """Where the steps of a trace come from, surest first."""

    MARKER = "step marker"
    PROFILER_STEP = "ProfilerStep"
    DEVICE = "Steps line of the device"
    DATA_LOADER = "DataLoader call"
    OPTIMIZER = "optimizer step"
    FUNCTION = "repeated function"


class InputKind(Enum):
    """What a step waits for when it waits for input."""

    TF_DATA = "tf.data"
    DATA_LOADER = "DataLoader"
    ANNOTATION = "annotation"
    NONE = ""


@dataclass(frozen=True, eq=False)
class MarkedSteps:
    """The steps of one trace. `starts_ms` has shape ``(n,)``; `end_ms` is the end of the last step where it is known.

    `source` is None and `marker` empty where nothing repeats.
    """

    capture: Capture
    trace: Trace
    source: StepSource | None
    marker: str
    line: str
    numbers: tuple[int, ...]
    starts_ms: Floats
    end_ms: float | None

    @cached_property
    def edges_ms(self) -> Floats:
        """Where periods begin and end, shape ``(periods + 1,)``."""
        return self.starts_ms if self.end_ms is None else np.append(self.starts_ms, self.end_ms)

    @property
    def periods(self) -> int:
        """The number of whole steps."""
        return max(0, len(self.edges_ms) - 1)

    @property
    def are_marked(self) -> bool:
        """Whether the program or its profiler marked the steps; else they are told from what repeats."""
        return self.source in (StepSource.MARKER, StepSource.PROFILER_STEP, StepSource.DEVICE)


@dataclass(frozen=True)
class Stage:
    """One part of an input pipeline.

    `self_ms` is the time over the measured steps that no enclosed stage explains; `waits` says that it waits for others in the background.
    `path` leads to it from the end of the pipeline: ``Iterator::Root::Prefetch::BatchV2``.
    """

    name: str
    calls: int
    self_ms: float
    waits: bool
    parallelism: float | None = None
    path: str = ""


@dataclass(frozen=True)
class Pipeline:
    """What is known of a tf.data pipeline.

    `python_ms` is time in Python functions over the measured steps, `injected_prefetch` says that tf.data itself added one, and `threads`
    is the size of its thread pool.
    """

    stages: tuple[Stage, ...]
    python_ms: float
    has_prefetch: bool
    injected_prefetch: bool
    threads: int | None

    @property
    def slowest(self) -> Stage | None:
        """The stage that works longest, of those that do not merely wait."""
        return max((s for s in self.stages if not s.waits), key=lambda s: s.self_ms, default=None)


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Whole steps of one trace, the first left out: period and input wait in milliseconds, shape ``(n,)``.

    `source` is the event that is waited in, empty where there is none; `workers` says whether a DataLoader has worker processes. `waits`
    are the waits as intervals, what a device did meanwhile included.
    """

    steps: MarkedSteps
    numbers: tuple[int, ...]
    period_ms: Floats
    wait_ms: Floats
    kind: InputKind
    source: str
    workers: bool | None
    pipeline: Pipeline | None
    device_busy_ms: Floats
    waits: Intervals = (np.empty(0), np.empty(0))

    @property
    def edges_ms(self) -> Floats:
        """Where the measured steps begin and end, shape ``(n + 1,)``."""
        return self.steps.edges_ms[1:]

    def waits_for_input(self, share: float, wait_ms: float, steady: float) -> bool:
        """Whether at least `share` of the time is waiting for input and the usual wait is `wait_ms` or more.

        The usual wait is the median, or the mean without the longest wait where that is more: workers deliver in bursts. Without the
        step that waits longest the share must still be `steady` (0-1) of what is asked for, so that one hiccup is none.
        """
        wait, period = self.wait_ms, self.period_ms
        longest = int(wait.argmax())
        other_wait, other_period = np.delete(wait, longest), np.delete(period, longest)
        usual = max(float(np.median(wait)), float(other_wait.mean()))
        is_steady = other_wait.sum() >= steady * share * other_period.sum()
        return bool(usual >= wait_ms and wait.sum() >= share * period.sum() and is_steady)

    @property
    def capture(self) -> Capture:
        """The capture it was measured in."""
        return self.steps.capture


def traces(job: Job, memory_bytes: int | None = None) -> tuple[CaptureTraces, ...]:
    """Every capture of the job, read. Empty where it has none; files that cannot be read are named in `unread`. Those that are read
    stay within `memory_bytes` together, where that is given.
    """
    read = []
    for capture in job.captures:
        read.append(read_capture(capture, memory_bytes))
        if memory_bytes is not None:
            memory_bytes -= sum(trace.bytes for trace in read[-1].traces)
    return tuple(read)


def read_capture(capture: Capture, memory_bytes: int | None = None) -> CaptureTraces:
    """Read the files of one capture. Never raises because of what they hold."""
    found: list[Trace] = []
    unread: list[Unread] = []
    for path in capture.files:
        try:
            found.append(read_trace(path, memory_bytes))
        except UnreadableTrace as error:
            unread.append(Unread(path.name, error.reason, error.broken))
    return CaptureTraces(capture, tuple(found), tuple(unread))


def marked_steps(traces: tuple[CaptureTraces, ...]) -> tuple[MarkedSteps, ...]:
    """The steps of every trace that was read, one entry a trace, those without steps included. Of sums over steps that another trace of
    the same host holds in full, there is none.
    """
    found = [find_steps(each.capture, trace) for each in traces for trace in each.traces]
    return tuple(steps for i, steps in enumerate(found) if not _is_told_again(steps, found[:i], found[i + 1 :]))


def _is_told_again(steps: MarkedSteps, before: Iterable[MarkedSteps], after: Iterable[MarkedSteps]) -> bool:
    if steps.trace.format != SUMMARY or not steps.periods:
        return False
    others = (*before, *(other for other in after if other.trace.format != SUMMARY))
    return any(o.capture is steps.capture and o.trace.host == steps.trace.host and o.periods >= LEAST_STEPS for o in others)


def step_times(traces: tuple[CaptureTraces, ...], marked_steps: tuple[MarkedSteps, ...]) -> tuple[StepTimes, ...]:
    """Step times of every trace with three whole steps or more. Raises `Missing` with the reason where there is none."""
    found = tuple(measure(steps) for steps in marked_steps if steps.periods >= LEAST_STEPS)
    if found:
        return found
    if not traces:
        raise Missing("no profiler capture in this job")
    if not marked_steps:
        reason = next((str(u.reason) for each in traces for u in each.unread), "it has no file")
        raise Missing("no capture could be read: {reason}", reason=reason)
    best = max(marked_steps, key=lambda steps: steps.periods)
    if best.source is None:
        raise Missing(
            "the capture {capture} holds no step: no marker, no ProfilerStep and no function that repeats (looked at {events} events)",
            capture=best.capture.name,
            events=best.trace.events,
        )
    raise Missing(
        "the capture {capture} holds too few whole steps (marker {marker}): {periods}; {least} are needed",
        capture=best.capture.name,
        periods=best.periods,
        marker=best.marker,
        least=LEAST_STEPS,
    )


def find_steps(capture: Capture, trace: Trace) -> MarkedSteps:
    """The steps of a trace, by the surest source that gives enough of them; else by the surest that gives any."""
    best = MarkedSteps(capture, trace, None, "", "", (), np.empty(0), None)
    for source, find in _SOURCES:
        found = find(trace, trace.host_lines)
        if found is None:
            continue
        steps = MarkedSteps(capture, trace, source, *found)
        if steps.periods >= LEAST_STEPS:
            return steps
        best = steps if best.source is None else best
    return best


# What a source finds: the marker's name, its line, step numbers, starts, and the end of the last step where it is known.
_Found = tuple[str, str, tuple[int, ...], Floats, "float | None"]


def _by_marker(trace: Trace, lines: tuple[Line, ...]) -> _Found | None:
    """Host events with the stat `step_num`: of Keras (``Profiled batch``, ``train``), JAX, and ``tf.profiler.experimental.Trace``.

    Only in sums over steps does a marker last as long as its step.
    """
    candidates = []
    for line in lines:
        column = line.numbers.get("step_num")
        if column is None:
            continue
        by_name = defaultdict(list)
        for index, number in zip(column.events.tolist(), column.values.tolist(), strict=True):
            if math.isfinite(number):
                by_name[line.names[line.ids[index]]].append((index, int(number)))
        candidates += [(name, line, marks) for name, marks in by_name.items()]
    if not candidates:
        return None
    name, line, marks = max(candidates, key=lambda c: len({number for _, number in c[2]}))
    marks.sort()
    at = [index for index, _ in marks]
    end = float(line.end_ms[at[-1]]) if trace.format == SUMMARY else None
    return name, line.name, tuple(number for _, number in marks), line.start_ms[at], end


def _by_profiler_step(trace: Trace, lines: tuple[Line, ...]) -> _Found | None:
    """``ProfilerStep#7`` of PyTorch: one ends where the next one starts, so that the last one is whole too."""
    candidates = [(line, np.flatnonzero(line.where(lambda name: name.startswith("ProfilerStep#")))) for line in lines]
    candidates = [(line, at) for line, at in candidates if len(at)]
    if not candidates:
        return None
    line, at = max(candidates, key=lambda c: len(c[1]))
    numbers = tuple(_number_in(line.names[line.ids[i]], k) for k, i in enumerate(at))
    return "ProfilerStep", line.name, numbers, line.start_ms[at], float(line.end_ms[at[-1]])


def _by_device(trace: Trace, lines: tuple[Line, ...]) -> _Found | None:
    """The line ``Steps`` of a device plane, whose events are named by step number."""
    for plane in trace.devices:
        for line in plane.lines:
            if line.name == "Steps" and len(line):
                numbers = tuple(_number_in(line.names[i], k) for k, i in enumerate(line.ids))
                return "Steps", f"{plane.name} {line.name}", numbers, line.start_ms, None
    return None


def _by_data_loader(trace: Trace, lines: tuple[Line, ...]) -> _Found | None:
    return _by_repetition(lines, _is_data_loader)


def _by_optimizer(trace: Trace, lines: tuple[Line, ...]) -> _Found | None:
    return _by_repetition(lines, lambda name: name.startswith("Optimizer.step#"))


def _by_function(trace: Trace, lines: tuple[Line, ...]) -> _Found | None:
    """The function that takes most time of those called three times or more: a `tf.function`, or one that JAX compiled."""
    functions: set[str] = set()
    for line in lines:
        if "tf_function_call" in line.texts:
            functions.update(line.names[line.ids[i]] for i in line.texts["tf_function_call"].events)
    return _by_repetition(lines, lambda name: name in functions or name.startswith("PjitFunction("), least=LEAST_STEPS)


_SOURCES: tuple[tuple[StepSource, Callable[[Trace, tuple[Line, ...]], _Found | None]], ...] = (
    (StepSource.MARKER, _by_marker),
    (StepSource.PROFILER_STEP, _by_profiler_step),
    (StepSource.DEVICE, _by_device),
    (StepSource.DATA_LOADER, _by_data_loader),
    (StepSource.OPTIMIZER, _by_optimizer),
    (StepSource.FUNCTION, _by_function),
)


def _by_repetition(lines: tuple[Line, ...], wanted: Callable[[str], bool], least: int = 1) -> _Found | None:
    """Outermost calls of one function on one line: of those called at least `least` times, the one that takes most time."""
    best: tuple[float, str, Line, Floats] | None = None
    for line in lines:
        at = np.flatnonzero(line.where(wanted))
        for name_id in np.unique(line.ids[at]).tolist():
            calls = at[line.ids[at] == name_id]
            outer = calls[_outermost(line.start_ms[calls], line.end_ms[calls])]
            total = float(line.duration_ms[outer].sum())
            if len(outer) >= least and (best is None or total > best[0]):
                best = total, line.names[name_id], line, line.start_ms[outer]
    if best is None:
        return None
    _, name, line, starts = best
    return name, line.name, tuple(range(len(starts))), starts, None


def _outermost(starts: Floats, ends: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which intervals, sorted by start, lie in no earlier one: ``PjitFunction(f)`` is recorded twice, one inside the other."""
    keep = np.ones(len(starts), dtype=np.bool_)
    keep[1:] = starts[1:] >= np.maximum.accumulate(ends)[:-1]
    return keep


def _number_in(name: str, default: int) -> int:
    digits = re.search(r"(\d{1,18})\D*$", name)
    return int(digits.group(1)) if digits else default


# What a consumer of tf.data waits in: the op, and in eager mode its call. `ExecutorState::ProcessAsync` around it is bookkeeping.
_GET_NEXT = re.compile(r"IteratorGetNext(AsOptional)?Op::DoCompute|(EagerLocalExecute: |.*:)?IteratorGetNext(AsOptional|Sync)?")
_MULTI_DEVICE = re.compile(r"(.*:|EagerLocalExecute: )?MultiDeviceIteratorGetNext.*")
_VERBS = frozenset("load loading loader fetch fetching get next read reading wait waiting".split())
_NOUNS = frozenset("batch batches data dataset input inputs example examples sample samples".split())


def measure(steps: MarkedSteps) -> StepTimes:
    """Periods and input waits of the steps of one trace, without the first step, which carries the start of the profiler."""
    trace, edges = steps.trace, steps.edges_ms[1:]
    busy = merged(*device_intervals(trace))
    busy_ms = covered(*busy, edges)
    kind, source, waits = _input_waits(trace, steps.line)
    wait = covered(*joined((waits, busy)), edges) - busy_ms
    return StepTimes(
        steps=steps,
        numbers=steps.numbers[1 : len(edges)],
        period_ms=np.diff(edges),
        wait_ms=np.maximum(wait, 0.0),
        kind=kind,
        source=source,
        workers="MultiProcessing" in source if kind is InputKind.DATA_LOADER else None,
        pipeline=_pipeline(trace, edges) if kind is InputKind.TF_DATA else None,
        device_busy_ms=busy_ms,
        waits=waits,
    )


def _input_waits(trace: Trace, step_line: str) -> tuple[InputKind, str, Intervals]:
    """The waits of the consumer: ops before iterators, since with several devices iterators also run ahead in the background."""
    named = (
        (InputKind.TF_DATA, lambda name: _GET_NEXT.fullmatch(name) is not None),
        (InputKind.TF_DATA, lambda name: _MULTI_DEVICE.fullmatch(name) is not None),
        (InputKind.TF_DATA, lambda name: name == "Iterator::Root"),
        (InputKind.DATA_LOADER, _is_data_loader),
    )
    for kind, wanted in named:
        found = _select(trace.host_lines, wanted)
        if found is not None:
            return kind, *found
    # An annotation says what the thread that runs the steps does; other threads may load ahead under the same name.
    own = [line for line in trace.host_lines if line.name == step_line] or trace.host_lines
    found = _select(own, _is_loading)
    return (InputKind.ANNOTATION, *found) if found is not None else (InputKind.NONE, "", (np.empty(0), np.empty(0)))


def _select(lines: Iterable[Line], wanted: Callable[[str], bool]) -> tuple[str, Intervals] | None:
    """The events with `wanted` names: the name that takes most time, and all their intervals. None where there are none."""
    totals: dict[str, float] = defaultdict(float)
    parts = []
    for line in lines:
        mask = line.where(wanted)
        if mask.any():
            parts.append((line.start_ms[mask], line.end_ms[mask]))
            for name_id in np.unique(line.ids[mask]).tolist():
                totals[line.names[name_id]] += float(line.duration_ms[line.ids == name_id].sum())
    return (max(totals, key=lambda name: totals[name]), joined(parts)) if parts else None


def _is_data_loader(name: str) -> bool:
    return name.startswith(("enumerate(DataLoader)#", "enumerate(DataPipe)#"))


def _is_loading(name: str) -> bool:
    """Whether an annotation says that a batch is loaded: ``load_batch``, ``nextBatch``, ``data_loading``."""
    if len(name) > 40 or "::" in name or "(" in name:
        return False
    found = set(words(name))
    return len(found) <= 4 and ("dataloader" in found or bool(found & _VERBS and found & _NOUNS))


def device_intervals(trace: Trace) -> Intervals:
    """When any device worked: kernels, copies and XLA ops."""
    lines = [line for plane in trace.devices for line in plane.lines if is_work(plane, line)]
    return joined([(line.start_ms, line.end_ms) for line in lines])


def is_work(plane: Plane, line: Line) -> bool:
    """Whether the events of a device's line are what the device did."""
    return line.name.lower().startswith("stream") or ("TPU" in plane.name and line.name in ("XLA Ops", "XLA Modules"))


# Stages that hand out what threads in the background make: their own time is waiting (tensorflow/core/kernels/data/).
_BACKGROUND = re.compile(r"Root|Prefetch|MapAndBatch|Parallel(Map|Interleave|Batch|Filter)|DataService|ThreadPool|MaxIntraOp")


def _pipeline(trace: Trace, edges: Floats) -> Pipeline | None:
    """The tf.data stages that ran within `edges`, None where the trace holds none."""
    lo, hi = float(edges[0]), float(edges[-1])
    calls: dict[str, int] = defaultdict(int)
    own: dict[str, float] = defaultdict(float)
    stats: dict[str, dict[str, float | str]] = defaultdict(dict)
    python = 0.0
    for line in trace.host_lines:
        inside = (line.start_ms < hi) & (line.end_ms > lo)
        python += float(line.duration_ms[inside & line.where(lambda name: name == "PyFunc:PyFunc")].sum())
        at = np.flatnonzero(line.where(lambda name: name.startswith("Iterator::")))
        if not len(at):
            continue
        for index in _described(line):
            stats[line.names[line.ids[index]]].update(line[index].stats)
        own_ms = _self_times(line.start_ms[at], line.end_ms[at])
        for index, spent in zip(at.tolist(), own_ms.tolist(), strict=True):
            if inside[index]:
                calls[line.names[line.ids[index]]] += 1
                own[line.names[line.ids[index]]] += spent
    if not calls:
        return None
    stages = tuple(_stage(path, calls[path], own[path], stats[path]) for path in sorted(calls, key=lambda path: -own[path]))
    names = [str(stat.get("name", "")) for stat in stats.values()]
    sizes = [size for stat in stats.values() if isinstance(size := stat.get("threadpool_size"), float) and math.isfinite(size)]
    return Pipeline(
        stages=stages,
        python_ms=python,
        has_prefetch=any("Prefetch" in path.split("::") for path in calls),
        injected_prefetch=any(name.startswith("inject/prefetch") for name in names),
        threads=int(max(sizes)) if sizes else None,
    )


def _described(line: Line) -> list[int]:
    """Indices of events with stats of tf.data stages."""
    described = {i for name, texts in line.texts.items() if name != "tf_function_call" for i in texts.events}
    described.update(i for name, numbers in line.numbers.items() if name != "step_num" for i in numbers.events.tolist())
    return sorted(described)


def _stage(path: str, calls: int, own_ms: float, stats: dict[str, float | str]) -> Stage:
    """One stage, named by the last part of its path: ``Iterator::Root::Prefetch::BatchV2`` is ``BatchV2``."""
    name = re.sub(r"\[\d+\]", "", path.rsplit("::", 1)[-1])
    parallelism = stats.get("parallelism")
    return Stage(
        name=re.sub(r"V\d$", "", name),
        calls=calls,
        self_ms=own_ms,
        waits=_BACKGROUND.match(name) is not None,
        parallelism=parallelism if isinstance(parallelism, float) else None,
        path=path,
    )


def _self_times(starts: Floats, ends: Floats) -> Floats:
    """Duration of each event of one thread, in order of start, less the duration of those directly inside it; shape ``(n,)``."""
    own = ends - starts
    open_events: list[int] = []
    for i in range(len(starts)):
        while open_events and ends[open_events[-1]] <= starts[i]:
            open_events.pop()
        if open_events:
            own[open_events[-1]] -= ends[i] - starts[i]
        open_events.append(i)
    return np.maximum(own, 0.0)
