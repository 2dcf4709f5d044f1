"""Devices exchange gradients while nothing is computed.

## Why it matters

Collectives that run beside the backward pass cost nothing; what is left open adds to every step and grows with the
number of devices. It is what keeps eight devices from being eight times as fast.

## How it is found

From a profiler capture with three whole steps or more and a device: the time in collectives (`ncclDevKernel_AllReduce`, `all-reduce`,
`reduce-scatter`, …) in which the same device computes nothing. It is worth knowing from `info_share` (10%) of the step
time on, the level at which PyTorch's own profiler tab spoke, and a warning from `warn_share` (30%) on. A collective lasts from
the arrival of a device to the end of the exchange; the device that arrives last waits for nobody, so that of all devices
of a capture, or of all ranks of a run, the one that loses least speaks: its time is the exchange itself.

## When it is wrong

Where only one of several ranks was captured, its time contains the wait for slower ones. In pipelines a receive waits for
the stage before.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_training, chart, confidence, impact, share, step_s

_MOST_ROWS = 8


@rule(
    category="distribution",
    fixes=("overlap-communication", "accumulate-before-exchange", "compress-gradients", "nccl-backend", "data-parallel"),
)
def communication_bound(device_time: tuple[DeviceTime, ...], *, info_share: float = 0.1, warn_share: float = 0.3) -> Iterator[Diagnosis]:
    """One diagnosis a capture or set of ranks, of the device that loses least."""
    if not any(device.collectives for device in device_time):
        raise Missing("no collective of several devices in a capture (looked for NCCL kernels, all-reduce, all-gather, reduce-scatter)")
    for devices in by_training(device for device in device_time if device.collectives):
        last = min(devices, key=lambda device: share(device.times, device.exposed_collective_ms))
        lost = share(last.times, last.exposed_collective_ms)
        if lost >= info_share:
            yield _diagnosis(last, lost, Severity.WARNING if lost >= warn_share else Severity.INFO)


def _diagnosis(device: DeviceTime, lost: float, severity: Severity) -> Diagnosis:
    times, count = device.times, len(device.times.numbers)
    rows = tuple((one.name, one.calls / count, one.total_ms / count) for one in device.collectives[:_MOST_ROWS])
    return Diagnosis(
        Message(
            "{device} only exchanges data with other devices in {lost:%} of the step time of {step:duration}, longest in "
            "{name} ({calls:.0f} collectives a step).",
            device=device.device,
            lost=lost,
            step=step_s(times),
            calls=sum(one.calls for one in device.collectives) / count,
            name=device.collectives[0].name.split("(")[0],
        ),
        severity,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, lost),
        exhibits=(
            chart(times, device.exposed_collective_ms, Message("communicating"), "pod_viewer", Part.COMMUNICATION),
            TableExhibit(Message("Collectives"), ("collective", "a step", "time a step (ms)"), rows),
        ),
    )
