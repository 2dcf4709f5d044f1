"""The device waits for the host, though not for input.

## Why it matters

An accelerator runs what the host hands it. Where the host computes between two kernels, launches them more slowly than
they run, or waits for a result before it goes on, the device stands still, and a faster one would change nothing.

## How it is found

From a profiler capture with three whole steps or more and a device: the time in which the device does nothing although
nobody waits for input, traces or compiles. From `warn_idle` (50%) of the step time on it is a warning, from `info_idle`
(30%) on worth knowing, since steps lose a fifth to launches and to the loop in healthy trainings, too. The usual step
must lose `least_ms` (1 ms): below it, the cost of starting a kernel is all there is. Where steps wait for input as
well, the host is named only if it makes `least_part` (half) of all idle time.

Calls that wait for the device (`cudaStreamSynchronize`, `cudaFree`, …) while it has nothing to do are a part of that: a
warning from `warn_sync` (15%) of the step time on, worth knowing from `info_sync` (5%) on. On a CPU nothing waits for a
device; `least_items` (10) calls of `aten::item` a step outside the optimizer are worth knowing there, for each stops
the host as soon as the same code runs on a GPU.

Where the capture was recorded while a training loss was logged, its place is marked on that curve, and a logged time of a
step (or steps a second) near it is compared: within 25% of each other they agree.

The reason is named where the capture tells: synchronisation, kernels that are shorter than their launch, or what the
host does in the longest gap.

## When it is wrong

A profiler that records shapes and stacks slows the host, up to twice with many small ops. A function that was found by
repetition may be a benchmark with pauses of its own, so that its confidence is low.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Exhibit, Severity, TableExhibit
from tb_advisor.evidence.capture_places import CapturePlace
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.evidence.host_time import HostTime, NamedTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.evidence.trace_steps import StepSource, StepTimes
from tb_advisor.message import Message, Value
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, impact, place_exhibits, share, step_s

_MOST_ROWS = 5
_SYNC_FIXES = ("avoid-sync", "non-blocking-copy")
_LAUNCH_FIXES = ("compile-step", "steps-per-execution", "larger-batch")
_HOST_FIXES = ("less-host-work", "steps-per-execution", "avoid-sync")


@rule(
    category="compute",
    fixes=("avoid-sync", "non-blocking-copy", "less-host-work", "compile-step", "steps-per-execution", "larger-batch", "reuse-memory"),
)
def host_bound_steps(
    host_time: tuple[HostTime, ...],
    device_time: tuple[DeviceTime, ...],
    capture_places: Mapping[str, CapturePlace],
    *,
    warn_idle: float = 0.5,
    info_idle: float = 0.3,
    least_ms: float = 1.0,
    least_part: float = 0.5,
    warn_sync: float = 0.15,
    info_sync: float = 0.05,
    least_items: float = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis a capture: of its busiest device, else of the host."""
    with_device = set()
    for devices in by_capture(device_time):
        busiest = max(devices, key=lambda device: device.busy_share)
        times, sync = busiest.times, busiest.host.sync_ms
        with_device.add(times.capture.name)
        idle, syncing = share(times, busiest.idle_ms), share(times, sync)
        without_input = busiest.idle_ms.sum() / max(busiest.idle_ms.sum() + times.wait_ms.sum(), 1e-9)
        if without_input < least_part or float(np.median(busiest.idle_ms)) < least_ms:
            continue
        if idle >= info_idle or syncing >= info_sync:
            severe = idle >= warn_idle or syncing >= warn_sync
            yield _of_device(busiest, Severity.WARNING if severe else Severity.INFO, capture_places)
    for hosts in by_capture(host for host in host_time if host.times.capture.name not in with_device):
        worst = max(hosts, key=lambda host: float(np.median(host.items)))
        if float(np.median(worst.items)) >= least_items:
            yield _of_cpu(worst)


def _of_device(device: DeviceTime, severity: Severity, places: Mapping[str, CapturePlace]) -> Diagnosis:
    times = device.times
    idle = share(times, device.idle_ms)
    reason, values, fixes = _reason(device)
    return Diagnosis(
        Message(
            f"{{device}} has nothing to do in {{idle:%}} of the step time of {{step:duration}} while nobody waits for input{reason}.",
            device=device.device,
            idle=idle,
            step=step_s(times),
            **values,
        ),
        severity,
        _confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, idle),
        exhibits=(
            chart(times, device.idle_ms, Message("device idle"), "trace_viewer@", Part.IDLE, Part.HOST),
            *_gaps(device),
            *place_exhibits(times, places),
        ),
        fixes=fixes,
        explains=("kernel-launch-bound", "device-idle-gaps", "low-device-utilization"),
    )


def _confidence(times: StepTimes) -> Confidence:
    return Confidence.LOW if times.steps.source is StepSource.FUNCTION else confidence(times)


def _reason(device: DeviceTime) -> tuple[str, dict[str, Value], tuple[str, ...]]:
    """Why the device is idle, where the capture tells: the end of the sentence, its values, and what helps."""
    host, idle = device.host, float(device.idle_ms.sum())
    if host.sync_ms.sum() >= idle / 2 and host.sync_calls:
        call = host.sync_calls[0].name
        fixes = ("reuse-memory",) if "free" in call.lower() else _SYNC_FIXES
        return "; the host waits for it in {call}, {calls:.0f}× a step", {"calls": float(np.median(host.syncs)), "call": call}, fixes
    if device.launch_gap_ms.sum() >= idle / 2:
        values: dict[str, Value] = {"kernels": float(np.median(device.kernels)), "median": 1000 * device.median_kernel_ms}
        return "; it runs {kernels:,.0f} kernels a step, half of them shorter than {median:.1f} µs", values, _LAUNCH_FIXES
    longest = next((gap for gap in device.longest_gaps if gap.host), None)
    if device.long_gap_ms.sum() >= idle / 2 and longest is not None:
        return (
            "; the longest gap lasts {gap:duration}, in {doing}",
            {"gap": longest.duration_ms / 1000, "doing": longest.host},
            _HOST_FIXES,
        )
    return (
        "; the host launches {kernels:,.0f} kernels a step",
        {"kernels": float(np.median(device.kernels))},
        (*_LAUNCH_FIXES, "avoid-sync"),
    )


def _gaps(device: DeviceTime) -> tuple[Exhibit, ...]:
    rows = tuple((round(gap.start_ms, 3), gap.duration_ms, gap.host) for gap in device.longest_gaps)
    columns = ("begins (ms into the capture)", "lasts (ms)", "the host's event")
    return (TableExhibit(Message("Longest gaps of {device}", device=device.device), columns, rows),) if rows else ()


def _of_cpu(host: HostTime) -> Diagnosis:
    times = host.times
    return Diagnosis(
        Message(
            "Each step fetches {items:.0f} single values from tensors (aten::item); on a GPU each of them stops the host until the device "
            "is done.",
            items=float(np.median(host.items)),
        ),
        Severity.INFO,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        fixes=_SYNC_FIXES,
        exhibits=_calls(host.sync_calls, len(times.numbers)),
    )


def _calls(calls: tuple[NamedTime, ...], steps: int) -> tuple[Exhibit, ...]:
    rows = tuple((call.name, call.calls / steps, call.total_ms / steps) for call in calls[:_MOST_ROWS])
    return (TableExhibit(Message("Calls that wait for the device"), ("call", "calls a step", "time a step (ms)"), rows),) if rows else ()
