"""Profiler captures: what the host does in a step besides waiting for input: op by op, tracing, compiling, waiting for the device.

Everything is counted over the steps of `StepTimes`; an event belongs to the step in which it starts, its time to the steps it covers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.intervals import Floats, Intervals, counted, covered, gaps, joined, merged
from tb_advisor.evidence.trace_steps import StepTimes, device_intervals
from tb_advisor.logdir.trace import Line, Mask, Trace


@dataclass(frozen=True)
class NamedTime:
    """Events of one name over the measured steps: how many start there, and their time, what they enclose included."""

    name: str
    calls: int
    total_ms: float


@dataclass(frozen=True)
class TracedFunction:
    """One `tf.function` over the measured steps: its calls, those in which it was traced, and how often that had been done at the end."""

    name: str
    calls: int
    traced: int
    tracing_count: int | None


@dataclass(frozen=True, eq=False)
class HostTime:
    """The host's work in the steps of one trace. Counts a step and milliseconds a step, all of shape ``(n,)``.

    `eager_ops` are ops that TensorFlow or JAX (`eager_runtime`, empty where the trace tells of neither) ran one by one, `eager_ms` the
    time in their calls and `kernel_ms` the time in which something was computed, on the device where there is one, both without waits
    for input. `tracing_ms` is the building of graphs, `compiles` and `compile_ms` are compilations (XLA, torch.compile) and `compiled`
    names what was compiled; `renewal_ms` is all that a call of a new function takes but for running it, and `preparing` are these calls
    as intervals. `syncs` are calls that wait for the device and `sync_ms` is their time while no device worked; `items` are values
    fetched one by one (`aten::item`) outside the optimizer.
    """

    times: StepTimes
    eager_runtime: str
    eager_ops: Floats
    eager_ms: Floats
    kernel_ms: Floats
    top_ops: tuple[NamedTime, ...]
    functions: tuple[TracedFunction, ...]
    tracing_ms: Floats
    compiles: Floats
    compile_ms: Floats
    compiled: str
    syncs: Floats
    sync_ms: Floats
    sync_calls: tuple[NamedTime, ...]
    items: Floats
    preparing: Intervals
    renewal_ms: Floats

    @property
    def calls(self) -> int:
        """Calls of every `tf.function` in the measured steps."""
        return sum(function.calls for function in self.functions)

    @property
    def traced(self) -> int:
        """How many of these calls traced the function again."""
        return sum(function.traced for function in self.functions)


def host_time(step_times: tuple[StepTimes, ...]) -> tuple[HostTime, ...]:
    """The host's work in every trace that has step times."""
    return tuple(_host_time(times) for times in step_times)


_EAGER = "EagerLocalExecute: "
# The call from Python around an eager op.
_EAGER_CALL = "TFE_Py_FastPathExecute_C"
# Any call of JAX from Python; inside of a compiled function there are none, but for the time in which it is traced.
_JAX_CALL = "PjitFunction("
# Ops that a graph run, too, executes eagerly a few times a step.
_NOT_EAGER = frozenset(
    {
        "_EagerConst", "IteratorGetNext", "OptionalHasValue", "OptionalGetValue", "Identity", "WriteSummary", "WriteScalarSummary",
        "FlushSummaryWriter", "LogicalAnd",
    }
)  # fmt: skip
_FUNCTION = re.compile(r"__(inference|forward|backward)_")
_KERNELS = frozenset({"EagerKernelExecute", "KernelAndDeviceFunc::Run", "ThunkExecutor::Execute"})
_TRACING = "tf.function-graph_building"
# XLA below TensorFlow and JAX; torch.compile marks its phases (torch/_dynamo/utils.py: dynamo_timed).
_COMPILE = re.compile(r"backend_compile(_and_load)?|\w+Client::Compile(AndLoad)?|\w+Compiler::RunBackend|.*\(dynamo_timed\)")
# Calls that return when the device is done; freeing device memory waits for it as well.
_SYNC = re.compile(
    r"(cuda|hip)(Stream|Device|Event)Synchronize|cu(Stream|Ctx|Event)Synchronize|(cuda|hip)(Free|Memcpy)|hipMemcpyWithStream|cuMemFree(_v2)?|np\.asarray\(jax\.Array\)"
)
_ITEM = "aten::item"
# What runs a graph or a compiled program on the host.
_EXECUTING = frozenset({"ExecutorState::Process", "ThunkExecutor::Execute"})


def _is_eager(name: str) -> bool:
    op = name.removeprefix(_EAGER)
    return op != name and op not in _NOT_EAGER and _FUNCTION.match(op) is None


def _is_jax_call(name: str) -> bool:
    return name.startswith(_JAX_CALL)


_RUNTIMES = (("TensorFlow", _EAGER), ("JAX", _JAX_CALL))


def _host_time(times: StepTimes) -> HostTime:
    trace, edges = times.steps.trace, times.edges_ms
    busy = device_intervals(trace)
    kernels = busy if len(busy[0]) else select(trace, _KERNELS.__contains__)
    names = {name for line in trace.host_lines[:1] for name in line.names}
    runtime = next((runtime for runtime, prefix in _RUNTIMES if any(name.startswith(prefix) for name in names)), "")
    is_op = _is_eager if runtime != "JAX" else _is_jax_call
    eager = select(trace, is_op)
    if runtime == "JAX":
        eager = merged(*eager)
    calls = joined((eager, select(trace, lambda name: name == _EAGER_CALL)))
    compiling = select(trace, lambda name: _COMPILE.fullmatch(name) is not None)
    tracing = select(trace, lambda name: name == _TRACING)
    making = joined((compiling, tracing))
    preparing = joined((making, _renewed(trace, making)))
    sync = select(trace, lambda name: _SYNC.fullmatch(name) is not None)
    return HostTime(
        times=times,
        eager_runtime=runtime,
        eager_ops=counted(eager[0], edges),
        eager_ms=_outside(calls, times.waits, edges),
        kernel_ms=_outside(kernels, times.waits, edges),
        top_ops=named_times(trace, is_op, edges),
        functions=_functions(trace, edges),
        tracing_ms=covered(*tracing, edges),
        compiles=counted(merged(*compiling)[0], edges),
        compile_ms=covered(*compiling, edges),
        compiled=_compiled(trace, merged(*compiling)),
        syncs=counted(sync[0], edges),
        sync_ms=_outside(sync, busy, edges),
        sync_calls=named_times(trace, lambda name: _SYNC.fullmatch(name) is not None, edges),
        items=counted(_items(trace), edges),
        preparing=preparing,
        renewal_ms=covered(*_besides_running(trace, preparing, making, busy), edges),
    )


def preparation(trace: Trace, busy: Intervals) -> Intervals:
    """When the host traces, compiles, or does for a call of a new function what else it takes but for running it; `busy` is when
    devices work.
    """
    making = select(trace, lambda name: name == _TRACING or _COMPILE.fullmatch(name) is not None)
    return _besides_running(trace, joined((making, _renewed(trace, making))), making, busy)


def _besides_running(trace: Trace, preparing: Intervals, making: Intervals, busy: Intervals) -> Intervals:
    return _without(preparing, _without(joined((select(trace, _EXECUTING.__contains__), busy)), making))


def select(trace: Trace, wanted: Callable[[str], bool]) -> Intervals:
    """The host's events with `wanted` names, as intervals."""
    return joined((line.start_ms[mask], line.end_ms[mask]) for line, mask in _marked(trace, wanted))


def _marked(trace: Trace, wanted: Callable[[str], bool]) -> Iterator[tuple[Line, Mask]]:
    """The host's lines that have events with `wanted` names, and which these are. `wanted` is called once a name of a plane."""
    tables: dict[int, Mask] = {}
    for line in trace.host_lines:
        table = tables.get(id(line.names))
        if table is None:
            table = tables[id(line.names)] = np.array([wanted(name) for name in line.names], np.bool_)
        if table.any():
            yield line, table[line.ids]


def named_times(trace: Trace, wanted: Callable[[str], bool], edges: Floats) -> tuple[NamedTime, ...]:
    """The host's events with `wanted` names that start within `edges`, by name, most time first."""
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for line, mask in _marked(trace, wanted):
        inside = mask & (line.start_ms >= edges[0]) & (line.start_ms < edges[-1])
        calls = np.bincount(line.ids[inside])
        total = np.bincount(line.ids[inside], weights=line.duration_ms[inside])
        for name_id in np.flatnonzero(calls).tolist():
            entry = found[line.names[name_id]]
            entry[0] += int(calls[name_id])
            entry[1] += float(total[name_id])
    times = (NamedTime(name, int(calls), total) for name, (calls, total) in found.items())
    return tuple(sorted(times, key=lambda time: (-time.total_ms, time.name)))


def _outside(one: Intervals, other: Intervals, edges: Floats) -> Floats:
    """How much of each window the first covers and the second does not."""
    return covered(*joined((one, other)), edges) - covered(*other, edges)


def _renewed(trace: Trace, making: Intervals) -> Intervals:
    """The calls of functions in which something was traced or compiled. Most of such a call is spent because the function is new:
    lowering, optimising and placing its graph, loading its program.
    """
    at = np.sort(making[0])
    calls = [(line.start_ms[mask], line.end_ms[mask]) for line, mask in _calls(trace)]
    news = [np.searchsorted(at, ends) > np.searchsorted(at, starts) for starts, ends in calls]
    return joined((starts[new], ends[new]) for (starts, ends), new in zip(calls, news, strict=True))


def _without(one: Intervals, other: Intervals) -> Intervals:
    """The parts of the first that the second does not cover."""
    if not len(one[0]) or not len(other[0]):
        return one
    lo, hi = float(one[0].min()), float(one[1].max())
    return gaps(*joined((gaps(*one, lo, hi), other)), lo, hi)


def _functions(trace: Trace, edges: Floats) -> tuple[TracedFunction, ...]:
    """Calls of a `tf.function` carry the stat `tf_function_call` (``traced-nonXla``, ``notTraced-xla``, …)."""
    calls: dict[str, list[int]] = defaultdict(lambda: [0, 0, -1])
    for line in trace.host_lines:
        texts = line.texts.get("tf_function_call")
        if texts is None:
            continue
        counts = line.numbers.get("tracing_count")
        finite = () if counts is None else zip(counts.events.tolist(), np.nan_to_num(counts.values, nan=-1).tolist(), strict=True)
        count_of = dict(finite)
        for index, kind in zip(texts.events, texts.values, strict=True):
            if edges[0] <= line.start_ms[index] < edges[-1] and kind != "eager":
                entry = calls[line.names[line.ids[index]]]
                entry[0] += 1
                entry[1] += kind.startswith("traced")
                entry[2] = max(entry[2], int(count_of.get(index, -1)))
    return tuple(TracedFunction(name, n, traced, None if count < 0 else count) for name, (n, traced, count) in sorted(calls.items()))


def _compiled(trace: Trace, compiling: Intervals) -> str:
    """The function around the longest compilation: ``PjitFunction(step)`` of JAX, the `tf.function`, or what torch.compile marks."""
    starts, ends = compiling
    if not len(starts):
        return ""
    longest = int((ends - starts).argmax())
    best: tuple[float, str] | None = None
    for line, mask in _calls(trace):
        mask &= (line.start_ms <= starts[longest]) & (line.end_ms >= ends[longest])
        for i in np.flatnonzero(mask).tolist():
            best = min(best or (np.inf, ""), (float(line.duration_ms[i]), line.names[line.ids[i]]))
    return "" if best is None else best[1].removeprefix(_JAX_CALL).removesuffix(")")


def _calls(trace: Trace) -> Iterator[tuple[Line, Mask]]:
    """Calls of functions that are traced and compiled: those of JAX, and each `tf.function`."""
    texts = [(line, line.texts["tf_function_call"]) for line in trace.host_lines if "tf_function_call" in line.texts]
    names = {line.names[line.ids[i]] for line, calls in texts for i in calls.events}
    return _marked(trace, lambda name: name.startswith(_JAX_CALL) or name in names)


def _items(trace: Trace) -> Floats:
    """Starts of the calls of `aten::item` that are not part of an optimizer's step: Adam fetches its counters."""
    starts = []
    for line, mask in _marked(trace, lambda name: name == _ITEM):
        at = line.start_ms[mask]
        optimizer = line.where(lambda name: name.startswith("Optimizer."))
        opens, closes = merged(line.start_ms[optimizer], line.end_ms[optimizer])
        before = np.searchsorted(opens, at, side="right") - 1
        inside = (before >= 0) & (at < np.append(closes, -np.inf)[before])
        starts.append(at[~inside])
    return np.concatenate(starts) if starts else np.empty(0)


def extra_event(times: StepTimes, slow: Mask) -> str:
    """The event of the host that makes the `slow` steps (bool, shape ``(n,)``) longer: of those that take at least half of what these
    steps take more than the others, the innermost. Empty where none does, or where no step or every step is slow.
    """
    edges, steps = times.edges_ms, times.steps
    if slow.all() or not slow.any():
        return ""
    wanted_ms = (times.period_ms[slow].mean() - times.period_ms[~slow].mean()) / 2
    best: tuple[float, str] = (np.inf, "")
    for line in steps.trace.host_lines:
        step = np.searchsorted(edges, line.start_ms, side="right") - 1
        inside = (step >= 0) & (step < len(slow))
        ids, in_slow, duration = line.ids[inside], slow[step[inside]], line.duration_ms[inside]
        totals = [np.bincount(ids[part], weights=duration[part], minlength=len(line.names)) for part in (in_slow, ~in_slow)]
        more = totals[0] / slow.sum() - totals[1] / (~slow).sum()
        for i in np.flatnonzero((more >= wanted_ms) & (more < best[0])).tolist():
            if not line.names[i].startswith(steps.marker):
                best = min(best, (float(more[i]), line.names[i]))
    return best[1]
