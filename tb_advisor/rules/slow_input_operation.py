"""One operation of the input pipeline takes most of its time.

## Why it matters

Where steps wait for input, the pipeline is as slow as its slowest stage. Faster reading does not help where decoding is
slow, and the other way round.

## How it is found

From a profiler capture with three whole steps or more in which steps wait for input: for at least `min_share` (5%) of
the step time and `min_wait_ms` (1 ms) in the usual step, of which `steady` (three quarters) stay without the longest
wait. It is a warning where input-bound-steps is one, from `warn_share` (20%) and `warn_wait_ms` (2 ms) on, and is
folded under it.

In tf.data the stage is named whose own time, without that of the stages it calls, is `min_part` (half) of the wait and
of the time of all stages that work; those that only hand out what threads make in the background do not count. Python
functions are named where they take `min_part` of the wait. In PyTorch the class of the `DataLoader`'s iterator is
named, which tells whether it has worker processes.

## When it is wrong

Own times of threads that share one core contain the time in which the other threads ran.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.trace_steps import InputKind, Pipeline, StepTimes
from tb_advisor.message import Message, Missing, Value
from tb_advisor.rule import rule
from tb_advisor.step_cost import confidence, impact

_READERS = frozenset({"TFRecord", "TextLine", "FixedLengthRecord", "FlatMap", "Interleave", "SSTable", "RecordIO"})
_MOST_ROWS = 8
_COLUMNS = ("stage", "calls a step", "own time a step (ms)", "parallel calls", "path")


@rule(
    category="input",
    fixes=("tensorflow-ops", "vectorize-map", "parallel-map", "parallel-interleave", "dataloader-workers", "lighter-dataset"),
)
def slow_input_operation(
    step_times: tuple[StepTimes, ...],
    *,
    min_share: float = 0.05,
    min_wait_ms: float = 1.0,
    warn_share: float = 0.2,
    warn_wait_ms: float = 2.0,
    steady: float = 0.75,
    min_part: float = 0.5,
) -> Iterator[Diagnosis]:
    """One diagnosis a trace whose steps wait for input."""
    named = [times for times in step_times if times.kind in (InputKind.TF_DATA, InputKind.DATA_LOADER)]
    if not named:
        raise Missing("the capture {capture} names no stage of an input pipeline", capture=step_times[0].capture.name)
    for times in named:
        if not times.waits_for_input(min_share, min_wait_ms, steady):
            continue
        severity = Severity.WARNING if times.waits_for_input(warn_share, warn_wait_ms, steady) else Severity.INFO
        if times.kind is InputKind.DATA_LOADER:
            yield _of_loader(times, severity)
        elif times.pipeline is not None:
            yield from _of_pipeline(times, times.pipeline, severity, min_part)


def _of_loader(times: StepTimes, severity: Severity) -> Diagnosis:
    name = times.source.split("#")[-1].removesuffix(".__next__")
    message = Message(
        "The DataLoader ({name}, num_workers{workers}) takes {spent:duration} a step.",
        name=name,
        workers=">0" if times.workers else "=0",
        spent=float(times.wait_ms.mean()) / 1000,
    )
    fixes = ("lighter-dataset", "dataloader-workers") if times.workers else ("dataloader-workers", "lighter-dataset")
    return _diagnosis(times, severity, message, fixes)


def _of_pipeline(times: StepTimes, pipeline: Pipeline, severity: Severity, min_part: float) -> Iterator[Diagnosis]:
    count, stage = len(times.numbers), pipeline.slowest
    if pipeline.python_ms >= min_part * times.wait_ms.sum():
        message = Message(
            "Python functions (PyFunc) of the tf.data pipeline take {spent:duration} a step; they run one at a time.",
            spent=pipeline.python_ms / count / 1000,
        )
        yield _diagnosis(times, severity, message, ("tensorflow-ops", "vectorize-map"))
        return
    work_ms = sum(each.self_ms for each in pipeline.stages if not each.waits)
    if stage is None or stage.self_ms < min_part * max(work_ms, float(times.wait_ms.sum())):
        return
    calls = "" if stage.parallelism is None else ", with {parallelism:.0f} parallel calls"
    values: dict[str, Value] = {"parallelism": stage.parallelism}
    message = Message(
        f"{{stage}} takes {{spent:duration}} a step, {{part:%}} of the work of the tf.data pipeline{calls} ({{path}}).",
        stage=stage.name,
        spent=stage.self_ms / count / 1000,
        part=stage.self_ms / work_ms,
        path=stage.path,
        **values,
    )
    faster = (
        ("parallel-interleave",)
        if stage.name in _READERS
        else ("vectorize-map",)
        if pipeline.threads == 1
        else ("parallel-map", "vectorize-map")
    )
    yield _diagnosis(times, severity, message, ("tensorflow-ops", "vectorize-map") if stage.name == "Generator" else faster)


def _diagnosis(times: StepTimes, severity: Severity, message: Message, fixes: tuple[str, ...]) -> Diagnosis:
    count = len(times.numbers)
    stages = times.pipeline.stages[:_MOST_ROWS] if times.pipeline is not None else ()
    rows = tuple((stage.name, stage.calls / count, stage.self_ms / count, stage.parallelism, stage.path) for stage in stages)
    return Diagnosis(
        message,
        severity,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, float(times.wait_ms.sum() / max(float(times.period_ms.sum()), 1e-9))),
        exhibits=(TableExhibit(Message("tf.data stages"), _COLUMNS, rows),) if rows else (),
        fixes=fixes,
    )
