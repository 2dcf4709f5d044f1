"""A tf.function is traced again and again during the training.

## Why it matters

Tracing runs the Python of the function and builds, optimises and instantiates a new graph, often longer than the step
itself; with XLA each trace is compiled as well. Every graph stays in memory.

## How it is found

From a profiler capture with three whole steps or more: a call of a `tf.function` says whether it was traced. Calls in
the first step, which is left out, are how it should be. From `least_traces` (2) traces on it is worth knowing, and a
warning where they are `warn_calls` (20%) of all calls or where building graphs takes `warn_share` (10%) of the step
time. Two, since one trace may belong to the first evaluation or to the last, smaller batch. The usual reasons are
Python numbers and strings as arguments, tensors of changing shape, and a function that is made anew in every step.

What can be won is the time of the calls that trace, less that in which their ops run: optimising and placing the new
graph follows each trace.

## When it is wrong

A capture of the first epoch sees the traces of all batch shapes. With a handful of bucketed shapes retracing ends by
itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.host_time import HostTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, impact, share, step_s


@rule(category="compute", fixes=("input-signature", "reduce-retracing", "static-shapes"))
def function_retracing(
    host_time: tuple[HostTime, ...], *, least_traces: int = 2, warn_calls: float = 0.2, warn_share: float = 0.1
) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of the host that traces most."""
    if not any(host.functions for host in host_time):
        raise Missing("the capture {capture} holds no call of a tf.function", capture=host_time[0].times.capture.name)
    for hosts in by_capture(host_time):
        worst = max(hosts, key=lambda host: host.traced)
        if worst.traced >= least_traces:
            severe = worst.traced >= warn_calls * worst.calls or share(worst.times, worst.tracing_ms) >= warn_share
            yield _diagnosis(worst, Severity.WARNING if severe else Severity.INFO)


def _diagnosis(host: HostTime, severity: Severity) -> Diagnosis:
    times = host.times
    worst = max(host.functions, key=lambda function: function.traced)
    count = "" if worst.tracing_count is None else " ({count} traces so far)"
    spent = share(times, host.tracing_ms)
    rows = tuple((function.name, function.calls, function.traced, function.tracing_count) for function in host.functions)
    return Diagnosis(
        Message(
            f"The function {{function}} is traced in {{traced}} of {{calls}} calls{count}; building graphs takes {{spent:%}} "
            "of the step time of {step:duration}.",
            function=worst.name,
            traced=worst.traced,
            calls=worst.calls,
            count=worst.tracing_count,
            spent=spent,
            step=step_s(times),
        ),
        severity,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, share(times, host.renewal_ms)),
        exhibits=(
            chart(times, host.tracing_ms, Message("tracing"), "trace_viewer@", Part.COMPILE),
            TableExhibit(Message("Functions"), ("function", "calls", "traced", "traces so far"), rows),
        ),
        explains=("step-time-outliers", "low-device-utilization"),
    )
