"""The training step is compiled again and again.

## Why it matters

XLA and torch.compile compile once for each combination of shapes and types; the first step pays for it, all others are
fast. Where shapes or Python values change from step to step, every step pays.

## How it is found

From a profiler capture with three whole steps or more: the time in the compiler (`backend_compile_and_load`,
`PjRtClient::Compile`, `GpuCompiler::RunBackend`, the phases that torch.compile marks) and how often it was entered,
both without the first step. From `least_compiles` (2) compilations on it is worth knowing, from `warn_share` (10%) of
the step time on a warning. Two, since one may belong to the first evaluation or to the last, smaller batch.

What can be won is the time of the calls that compile, less that in which the program runs: tracing and lowering come
with each compilation.

## When it is wrong

A capture of the first steps sees every shape for the first time. Sequences in a few buckets of length compile once a
bucket.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Diagnosis, Severity
from tb_advisor.evidence.host_time import HostTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, impact, share, step_s


@rule(category="compute", fixes=("static-shapes", "reduce-retracing", "compilation-cache"))
def slow_compilation(host_time: tuple[HostTime, ...], *, least_compiles: int = 2, warn_share: float = 0.1) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of the host that compiles longest."""
    for hosts in by_capture(host_time):
        worst = max(hosts, key=lambda host: share(host.times, host.compile_ms))
        if worst.compiles.sum() >= least_compiles:
            yield _diagnosis(worst, warn_share)


def _diagnosis(host: HostTime, warn_share: float) -> Diagnosis:
    times, spent = host.times, share(host.times, host.compile_ms)
    subject = "The function {function}" if host.compiled else "The step"
    return Diagnosis(
        Message(
            f"{subject} is compiled {{compiles}} times in {{steps}} steps; that takes {{spent:%}} of the step time of {{step:duration}}.",
            function=host.compiled,
            compiles=int(host.compiles.sum()),
            steps=len(times.numbers),
            spent=spent,
            step=step_s(times),
        ),
        Severity.WARNING if spent >= warn_share else Severity.INFO,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, share(times, host.renewal_ms)),
        exhibits=(chart(times, host.compile_ms, Message("compiling"), "trace_viewer@", Part.COMPILE),),
        explains=("step-time-outliers", "low-device-utilization"),
    )
