"""TensorFlow or JAX runs the training step op by op instead of as a graph.

## Why it matters

Each op that runs eagerly goes through Python and the eager runtime, tens of microseconds that a graph spends once for
the whole step. Nothing is fused, nothing runs in parallel, and an accelerator waits between two ops.

## How it is found

From a profiler capture with three whole steps or more: the ops that TensorFlow ran eagerly (`EagerLocalExecute`), those
left out that a graph run executes eagerly, too (the iterator, summaries, constants, calls of functions); in JAX, the
calls from Python that are in no other (`PjitFunction`). It is a warning from `warn_ops` (100) ops a step on that take
`warn_share` (20%) of the step time with the Python call around them, worth knowing from `info_ops` (30) and
`info_share` (10%) on. A graph run has up to 4 such ops a step, a small model that runs eagerly 70, a convolutional one
250 and more. Without both a count and a share a tiny step would be an alarm.

What a graph wins is at least the time in which no kernel runs and no input is waited for. An upper bound is not known,
since the time of a tiny kernel is mostly its launch.

## When it is wrong

A step that is made of few, large ops gains little, and debugging is a good reason to run eagerly. PyTorch, which runs op by
op by design, is not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Diagnosis, Impact, Severity, TableExhibit
from tb_advisor.evidence.host_time import HostTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.evidence.trace_steps import StepTimes
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, share, step_s

_MOST_ROWS = 8


@rule(category="compute", fixes=("graph-execution", "steps-per-execution", "compile-step"))
def eager_execution(
    host_time: tuple[HostTime, ...],
    *,
    warn_ops: float = 100,
    warn_share: float = 0.2,
    info_ops: float = 30,
    info_share: float = 0.1,
) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of the host with most eager ops."""
    if not any(host.eager_runtime for host in host_time):
        raise Missing(
            "the capture {capture} holds no event of the eager runtimes of TensorFlow and JAX (EagerLocalExecute, PjitFunction)",
            capture=host_time[0].times.capture.name,
        )
    for hosts in by_capture(host_time):
        worst = max(hosts, key=lambda host: float(np.median(host.eager_ops)))
        ops, spent = float(np.median(worst.eager_ops)), share(worst.times, worst.eager_ms)
        if ops >= info_ops and spent >= info_share:
            severe = ops >= warn_ops and spent >= warn_share
            yield _diagnosis(worst, ops, spent, Severity.WARNING if severe else Severity.INFO)


def _diagnosis(host: HostTime, ops: float, spent: float, severity: Severity) -> Diagnosis:
    times, count = host.times, len(host.times.numbers)
    has_kernels = bool(host.kernel_ms.any())
    cost_ms = times.period_ms - times.wait_ms - host.kernel_ms if has_kernels else host.eager_ms
    place = "outside of kernels" if has_kernels else "in calls of ops"
    within = (Part.REST, Part.IDLE, Part.HOST, Part.COMPILE) if has_kernels else (Part.HOST,)
    rows = tuple((_op(op.name), op.calls / count, op.total_ms / count) for op in host.top_ops[:_MOST_ROWS])
    return Diagnosis(
        Message(
            "Each step runs {ops:.0f} {runtime} ops one by one, which takes {spent:%} of its {step:duration}.",
            ops=ops,
            runtime=host.eager_runtime,
            spent=spent,
            step=step_s(times),
        ),
        severity,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=_impact(times, share(times, cost_ms), place),
        exhibits=(
            chart(times, cost_ms, Message(place), "framework_op_stats", *within),
            TableExhibit(Message("Eager ops"), ("op", "calls a step", "time a step (ms)"), rows),
        ),
        explains=("host-bound-steps", "kernel-launch-bound", "device-idle-gaps", "low-device-utilization", "missing-xla"),
    )


def _impact(times: StepTimes, saved: float, place: str) -> Impact:
    """No bound: in a graph the kernels are faster as well, the more so the smaller they are."""
    text = Message(
        f"A step spends {{outside:duration}} {place}; without that it is {{speedup:.1f}}× faster, or more where kernels are tiny.",
        outside=saved * step_s(times),
        speedup=1 / max(1 - saved, 1e-3),
    )
    return Impact("time", text, share=saved)


def _op(name: str) -> str:
    return name.removeprefix("EagerLocalExecute: ").removeprefix("PjitFunction(").removesuffix(")")
