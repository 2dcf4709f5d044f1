"""One host or device needs longer for its part of the step than the others, which wait for it.

## Why it matters

Synchronous training is as fast as its slowest participant. One that is slower by a quarter makes all others idle for a
fifth of the step.

## How it is found

From captures of several hosts, ranks or devices of one job, with three whole steps or more: in synchronous training all
steps last equally long, but the slowest participant waits least in collectives. The median over the steps of the step
time without exposed collectives is compared with the median of the other participants: worth knowing from `info_ratio`
(1.1) times on, a warning from `warn_ratio` (1.25) on. Among two the usual is not known, so that `least_participants`
(3) are needed for a warning. Below `least_ms` (1 ms) of difference nothing is won.

## When it is wrong

Stages of a pipeline have different work by design. Captures of ranks that were not recorded at the same time cannot be
compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_advisor.diagnosis import Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.evidence.trace_steps import StepTimes
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.step_cost import Floats, by_training, chart, confidence, impact, step_s

_MOST_ROWS = 32


@dataclass(frozen=True, eq=False)
class _Participant:
    """One device, or a host without one: `own_ms` is its step time without exposed collectives, shape ``(n,)``."""

    name: str
    times: StepTimes
    own_ms: Floats

    @property
    def usual_ms(self) -> float:
        return float(np.median(self.own_ms))


@rule(category="distribution", fixes=("balance-shards", "data-parallel", "check-slow-host"))
def straggler_device(
    step_times: tuple[StepTimes, ...],
    device_time: tuple[DeviceTime, ...],
    *,
    info_ratio: float = 1.1,
    warn_ratio: float = 1.25,
    least_participants: int = 3,
    least_ms: float = 1.0,
) -> Iterator[Diagnosis]:
    """One diagnosis a capture or set of ranks, of the slowest participant."""
    groups = [group for group in map(_latest, by_training(_participants(step_times, device_time))) if len(group) > 1]
    if not groups:
        raise Missing("the captures show one device or host; several are needed")
    for group in groups:
        slowest = max(group, key=lambda one: one.usual_ms)
        usual = float(np.median([one.usual_ms for one in group if one is not slowest]))
        ratio = slowest.usual_ms / max(usual, 1e-6)
        if ratio >= info_ratio and slowest.usual_ms - usual >= least_ms:
            severe = ratio >= warn_ratio and len(group) >= least_participants
            yield _diagnosis(slowest, group, usual, Severity.WARNING if severe else Severity.INFO)


def _participants(step_times: tuple[StepTimes, ...], device_time: tuple[DeviceTime, ...]) -> Iterator[_Participant]:
    with_device = {id(device.times) for device in device_time}
    for device in device_time:
        yield _Participant(f"{_host(device.times)} {device.device}", device.times, device.times.period_ms - device.exposed_collective_ms)
    for times in step_times:
        if id(times) not in with_device:
            yield _Participant(_host(times), times, times.period_ms)


def _latest(group: list[_Participant]) -> list[_Participant]:
    """Each participant once: a rank that was recorded several times by its last capture."""
    return list({one.name: one for one in group}.values())


def _host(times: StepTimes) -> str:
    trace = times.steps.trace
    return trace.host if trace.rank is None else f"rank {trace.rank}"


def _diagnosis(slowest: _Participant, group: list[_Participant], usual: float, severity: Severity) -> Diagnosis:
    times = slowest.times
    longer = slowest.usual_ms - usual
    rows = tuple((one.name, one.usual_ms, float(np.median(one.times.wait_ms))) for one in sorted(group, key=lambda one: -one.usual_ms))
    waits = float(np.median(times.wait_ms)) - float(np.median([np.median(one.times.wait_ms) for one in group]))
    reason = "; it waits for input that long" if waits >= longer / 2 else ""
    return Diagnosis(
        Message(
            f"{{name}} needs {{own:duration}} for its part of a step, {{ratio:.2f}}× the {{usual:duration}} that is usual among {{others}} "
            f"others{reason}.",
            name=slowest.name,
            own=slowest.usual_ms / 1000,
            ratio=slowest.usual_ms / max(usual, 1e-6),
            usual=usual / 1000,
            others=len(group) - 1,
        ),
        severity,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, min(1.0, longer / 1000 / max(step_s(times), 1e-9))),
        exhibits=(
            chart(times, np.maximum(slowest.own_ms - usual, 0.0), Message("longer than the others"), "pod_viewer"),
            TableExhibit(Message("Participants"), ("participant", "own time a step (ms)", "wait for input (ms)"), rows[:_MOST_ROWS]),
        ),
    )
