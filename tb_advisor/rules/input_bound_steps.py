"""Training steps wait for their input.

## Why it matters

While a step waits for its batch, the accelerator does nothing: no other change, no larger device and no faster kernel
helps before the input does. The share of the step that is spent waiting is the time that can be won.

## How it is found

From a profiler capture with three whole steps or more. A step lasts from its start to the start of the next one; the
first one, which carries the start of the profiler, is left out. Its wait is the time in `IteratorGetNext` (tf.data),
in the `DataLoader`'s `__next__` (PyTorch) or in an annotation such as `load_batch` on the thread that runs the steps
(JAX and custom loops), less the time in which a device worked meanwhile.

It is a warning from `warn_share` (20%) of the step time on and `info_share` (5%) is worth knowing: the levels at which
TensorFlow's own analysis calls a program highly and moderately input-bound. A share alone is a false alarm on tiny
steps (22% of a 1 ms step), so that the usual wait must also reach `warn_wait_ms` (2 ms) or `info_wait_ms` (1 ms). The
usual wait is the median, or, since workers deliver in bursts, the mean without the longest wait where that is more. The
share must still be `steady` (three quarters) of what is asked for when the step that waits longest is left out, so that
one hiccup is silent. An annotation says less than an event of the framework: it needs `annotated_warn_share` (30%) or
`annotated_info_share` (10%), and the confidence is medium at most.

Where the capture was recorded while a training loss was logged, its place is marked on that curve, and a logged time of a
step (or steps a second) near it is compared: within 25% of each other they agree.

Confidence is high for five steps or more of a step marker or ProfilerStep, lower for fewer, and for steps that were told
from a function that repeats.

## When it is wrong

A capture of the first steps sees caches and shuffle buffers fill. On a CPU without accelerator the pipeline and the step share
the same cores, and a pipeline that runs ahead then takes time from the step without a wait. In JAX, work on the CPU may still run
while the next batch is loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Exhibit, Impact, Severity, TableExhibit
from tb_advisor.evidence.capture_places import CapturePlace
from tb_advisor.evidence.step_parts import Part
from tb_advisor.evidence.trace_steps import InputKind, Pipeline, StepTimes
from tb_advisor.message import Message, Missing, Value
from tb_advisor.rule import rule
from tb_advisor.step_cost import chart, place_exhibits

_READERS = frozenset({"TFRecord", "TextLine", "FixedLengthRecord", "FlatMap", "Interleave", "SSTable", "RecordIO"})


@dataclass(frozen=True)
class _Verdict:
    times: StepTimes
    severity: Severity
    wait_ms: float
    step_ms: float

    @property
    def share(self) -> float:
        return self.wait_ms / self.step_ms


@rule(
    category="input",
    fixes=(
        "prefetch",
        "parallel-map",
        "cache-dataset",
        "tensorflow-ops",
        "vectorize-map",
        "parallel-interleave",
        "dataloader-workers",
        "lighter-dataset",
        "pin-memory",
        "load-in-background",
        "tfrecord-files",
        "data-service",
    ),
)
def input_bound_steps(
    step_times: tuple[StepTimes, ...],
    capture_places: Mapping[str, CapturePlace],
    *,
    warn_share: float = 0.2,
    warn_wait_ms: float = 2.0,
    info_share: float = 0.05,
    info_wait_ms: float = 1.0,
    annotated_warn_share: float = 0.3,
    annotated_info_share: float = 0.1,
    steady: float = 0.75,
) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of the host that waits most."""
    if all(times.kind is InputKind.NONE for times in step_times):
        raise Missing(
            "the capture {capture} holds no event of an input pipeline (looked for {names})",
            names="IteratorGetNext, enumerate(DataLoader), an annotation such as load_batch",
            capture=step_times[0].capture.name,
        )
    by_capture = defaultdict(list)
    for times in step_times:
        annotated = times.kind is InputKind.ANNOTATION
        levels = (
            (Severity.WARNING, annotated_warn_share if annotated else warn_share, warn_wait_ms),
            (Severity.INFO, annotated_info_share if annotated else info_share, info_wait_ms),
        )
        severity = next((severity for severity, share, wait_ms in levels if times.waits_for_input(share, wait_ms, steady)), None)
        verdict = _Verdict(times, severity or Severity.INFO, float(times.wait_ms.mean()), float(times.period_ms.mean()))
        by_capture[times.capture.name].append((severity is not None, verdict))
    for hosts in by_capture.values():
        found = [verdict for waits, verdict in hosts if waits]
        if found:
            yield _diagnosis(max(found, key=lambda verdict: verdict.share), len(hosts), capture_places)


def _diagnosis(verdict: _Verdict, hosts: int, places: Mapping[str, CapturePlace]) -> Diagnosis:
    times = verdict.times
    busy_ms = verdict.step_ms - verdict.wait_ms
    faster = Message(
        "Without the wait a step would take {busy:duration}: at most {speedup:.1f}× faster.",
        busy=busy_ms / 1000,
        speedup=verdict.step_ms / max(busy_ms, 1e-3),
    )
    return Diagnosis(
        _message(verdict, hosts),
        verdict.severity,
        _confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=Impact("time", faster, share=verdict.share),
        exhibits=(*_exhibits(times), *place_exhibits(times, places)),
        fixes=_fixes(times),
        explains=("slow-input-operation", "low-device-utilization"),
    )


def _confidence(times: StepTimes) -> Confidence:
    if times.steps.periods < 5:
        return Confidence.MEDIUM if times.steps.are_marked else Confidence.LOW
    certain = times.steps.are_marked and times.kind is not InputKind.ANNOTATION
    return Confidence.HIGH if certain else Confidence.MEDIUM


def _message(verdict: _Verdict, hosts: int) -> Message:
    times = verdict.times
    even = float(np.quantile(times.wait_ms, 0.25)) >= verdict.wait_ms / 2
    subject = "Each step waits" if even else "On average a step waits"
    reason, values = _reason(times)
    place = ""
    if hosts > 1:
        place = ", on the slowest of {hosts} hosts ({host})"
        values |= {"hosts": hosts, "host": times.steps.trace.host}
    return Message(
        f"{subject} {{wait:duration}} of its {{step:duration}} ({{share:%}}) for input{place}{reason}.",
        wait=verdict.wait_ms / 1000,
        step=verdict.step_ms / 1000,
        share=verdict.share,
        **values,
    )


def _reason(times: StepTimes) -> tuple[str, dict[str, Value]]:
    """What is waited for, where the capture tells: the end of the sentence and its values."""
    if times.kind is InputKind.DATA_LOADER and times.workers:
        return "; the DataLoader's worker processes do not keep up (num_workers > 0)", {}
    if times.kind is InputKind.DATA_LOADER:
        return "; the DataLoader loads in the training process itself (num_workers=0)", {}
    if times.kind is InputKind.ANNOTATION:
        return ", in the annotation {annotation}", {"annotation": times.source}
    pipeline, count = times.pipeline, len(times.numbers)
    if pipeline is None:
        return "", {}
    if _runs_python(times, pipeline):
        return "; Python functions in the tf.data pipeline take {python:duration} a step", {"python": pipeline.python_ms / count / 1000}
    stage = pipeline.slowest
    if stage is None or stage.self_ms < 0.5 * times.wait_ms.sum():
        return "", {}
    values: dict[str, Value] = {"stage": stage.name, "own": stage.self_ms / count / 1000}
    return "; {stage} works longest in the tf.data pipeline, {own:duration} a step", values


def _runs_python(times: StepTimes, pipeline: Pipeline) -> bool:
    return bool(pipeline.python_ms >= 0.5 * times.wait_ms.sum())


def _exhibits(times: StepTimes) -> tuple[Exhibit, ...]:
    trace = chart(times, times.wait_ms, Message("waiting for input"), "input_pipeline_analyzer", Part.INPUT)
    if times.pipeline is None:
        return (trace,)
    count = len(times.numbers)
    rows = tuple(
        (stage.name, stage.calls / count, stage.self_ms / count, "waits" if stage.waits else "works", stage.parallelism)
        for stage in times.pipeline.stages[:8]
    )
    columns = ("stage", "calls a step", "own time a step (ms)", "waits for other threads or works", "parallel calls")
    return trace, TableExhibit(Message("tf.data stages"), columns, rows)


def _fixes(times: StepTimes) -> tuple[str, ...]:
    """What helps most cheaply first, without what the capture shows to be in place or useless."""
    if times.kind is InputKind.DATA_LOADER:
        on_device = ("pin-memory",) if times.steps.trace.devices else ()
        ours = ("lighter-dataset", "dataloader-workers") if times.workers else ("dataloader-workers", "lighter-dataset")
        return ours + on_device
    if times.kind is InputKind.ANNOTATION:
        return ("load-in-background",)
    pipeline = times.pipeline
    if pipeline is None:
        return ("prefetch", "cache-dataset")
    faster: tuple[str, ...]
    stage = pipeline.slowest.name if pipeline.slowest else ""
    one_thread = pipeline.threads == 1
    if _runs_python(times, pipeline) or stage == "Generator":
        faster = ("tensorflow-ops", "vectorize-map")
    elif stage in _READERS:
        faster = ("parallel-interleave", "tfrecord-files")
    elif not one_thread:
        faster = ("parallel-map", "vectorize-map")
    else:
        faster = ("vectorize-map",)
    if pipeline.has_prefetch and not pipeline.injected_prefetch:
        return (*faster, "cache-dataset", "data-service")
    # Prefetching hides no more of the pipeline's work than a step has time to compute.
    hidden = times.period_ms.sum() - times.wait_ms.sum()
    work = max(pipeline.python_ms, pipeline.slowest.self_ms if pipeline.slowest else 0.0)
    return (*faster, "prefetch", "cache-dataset") if work > hidden else ("prefetch", *faster, "cache-dataset")
