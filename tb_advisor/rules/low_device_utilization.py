"""The accelerators are idle for most of the step, or some of them altogether.

## Why it matters

The share of the step in which a device works is what its price is paid for. It says how much there is to win, not why:
the reason is in the findings that this one is folded under.

## How it is found

From a profiler capture with three whole steps or more and a device. It is worth knowing where the busiest device works
in less than `least_busy` (50%) of the step time: healthy trainings reach 70% and more. Where TensorFlow or JAX sees
several devices of one host, of which some never work, these are named; PyTorch lists all devices of a machine in the
capture of each process, so that they are not looked at there.

## When it is wrong

Busy is not efficient: a device with one small kernel at a time counts as busy. A small model on a large device is idle
by nature.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, impact, step_s


@rule(category="compute", fixes=("larger-batch", "compile-step", "data-parallel", "steps-per-execution"))
def low_device_utilization(device_time: tuple[DeviceTime, ...], *, least_busy: float = 0.5) -> Iterator[Diagnosis]:
    """One diagnosis a capture: devices that do nothing, else the busiest device."""
    for devices in by_capture(device_time):
        busiest = max(devices, key=lambda device: device.busy_share)
        traces = {id(device.times): device.times.steps.trace for device in devices}
        visible = sum(len(trace.devices) for trace in traces.values() if trace.format == "xplane")
        if visible > len(devices):
            yield _diagnosis(
                busiest,
                devices,
                Message(
                    "{working} of {devices} devices work in the captured steps; {device} works in {busy:%} of the step time of "
                    "{step:duration}.",
                    working=len(devices),
                    devices=visible,
                    device=busiest.device,
                    busy=busiest.busy_share,
                    step=step_s(busiest.times),
                ),
            )
        elif busiest.busy_share < least_busy:
            yield _diagnosis(
                busiest,
                devices,
                Message(
                    "{device} works in {busy:%} of the step time of {step:duration}.",
                    device=busiest.device,
                    busy=busiest.busy_share,
                    step=step_s(busiest.times),
                ),
            )


def _diagnosis(device: DeviceTime, devices: list[DeviceTime], message: Message) -> Diagnosis:
    times = device.times
    rows = tuple((d.times.steps.trace.host, d.device, d.kind, d.busy_share) for d in devices)
    return Diagnosis(
        message,
        Severity.INFO,
        confidence(times) if times.steps.are_marked else Confidence.LOW,
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, 1 - device.busy_share),
        exhibits=(
            chart(times, times.period_ms - device.busy_ms, Message("device idle"), "overview_page"),
            TableExhibit(Message("Devices"), ("host", "device", "kind", "busy (share of the step)"), rows),
        ),
    )
