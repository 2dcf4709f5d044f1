"""Kernels run faster than the host launches them.

## Why it matters

Starting a kernel costs the host 5 to 50 µs. Where the kernels themselves are shorter, the device is idle between any
two of them, and only fewer or larger kernels help: fusion, CUDA graphs, larger batches.

## How it is found

From a profiler capture with three whole steps or more and a device: gaps between its work that are shorter than 0.2 ms,
those in which input is waited for left out. It is worth knowing from `info_share` (20%) of the step time on, where at
least `least_kernels` (100) kernels run a step and half of them are shorter than `short_ms` (20 µs, the usual cost of a
launch from Python). From `warn_share` (50%) on the gain is large and certain, and it is a warning.

## When it is wrong

Profiling itself makes launches slower. Steps of less than a millisecond are bound by launches whatever one does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, impact, share, step_s


@rule(category="compute", fixes=("compile-step", "larger-batch", "steps-per-execution", "fused-optimizer"))
def kernel_launch_bound(
    device_time: tuple[DeviceTime, ...],
    *,
    info_share: float = 0.2,
    warn_share: float = 0.5,
    least_kernels: float = 100,
    short_ms: float = 0.02,
) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of its busiest device."""
    for devices in by_capture(device_time):
        busiest = max(devices, key=lambda device: device.busy_share)
        lost, kernels = share(busiest.times, busiest.launch_gap_ms), float(np.median(busiest.kernels))
        if lost >= info_share and kernels >= least_kernels and busiest.median_kernel_ms < short_ms:
            yield _diagnosis(busiest, lost, kernels, Severity.WARNING if lost >= warn_share else Severity.INFO)


def _diagnosis(device: DeviceTime, lost: float, kernels: float, severity: Severity) -> Diagnosis:
    times = device.times
    return Diagnosis(
        Message(
            "{device} runs {kernels:,.0f} kernels a step, half of them shorter than {median:.1f} µs; the gaps between them take "
            "{lost:%} of the step time of {step:duration}.",
            device=device.device,
            kernels=kernels,
            median=1000 * device.median_kernel_ms,
            lost=lost,
            step=step_s(times),
        ),
        severity,
        confidence(times) if times.steps.are_marked else Confidence.LOW,
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, lost),
        exhibits=(chart(times, device.launch_gap_ms, Message("gaps between kernels"), "kernel_stats", Part.HOST, Part.IDLE),),
    )
