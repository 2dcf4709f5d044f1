"""Copies between host and device take time in which nothing is computed.

## Why it matters

A copy that waits for the host's memory stops the stream behind it. From pinned memory it runs beside the kernels; what
stays on the device needs no copy at all.

## How it is found

From a profiler capture with three whole steps or more and a device: the time in which a device copies from or to the
host (`Memcpy HtoD`, `MemcpyD2H`, on a TPU `copy-done` of arrays that live in the host's memory) and does nothing else.
It is worth knowing from `info_share` (5%) of the step time on and a warning from `warn_share` (15%) on. Copies within
the device and behind kernels cost nothing and do not count. The share that comes from memory that is not pinned
(`Pageable`) is said.

## When it is wrong

Optimizer states and activations that are offloaded to the host on purpose trade this time for memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, impact, share, step_s

_MOST_ROWS = 8


@rule(category="compute", fixes=("pin-memory", "keep-on-device", "non-blocking-copy", "avoid-sync"))
def host_device_copies(device_time: tuple[DeviceTime, ...], *, info_share: float = 0.05, warn_share: float = 0.15) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of the device that copies longest."""
    for devices in by_capture(device_time):
        worst = max(devices, key=lambda device: share(device.times, device.exposed_copy_ms))
        lost = share(worst.times, worst.exposed_copy_ms)
        if lost >= info_share:
            yield _diagnosis(worst, lost, Severity.WARNING if lost >= warn_share else Severity.INFO)


def _diagnosis(device: DeviceTime, lost: float, severity: Severity) -> Diagnosis:
    times = device.times
    pageable = "; {pageable:%} of the copied time is from memory that is not pinned" if device.pageable_share >= 0.5 else ""
    count = len(times.numbers)
    rows = tuple((copy.name, copy.calls / count, copy.total_ms / count) for copy in device.copies[:_MOST_ROWS])
    fixes = ("pin-memory", "keep-on-device") if pageable else ("keep-on-device", "non-blocking-copy", "avoid-sync")
    return Diagnosis(
        Message(
            f"{{device}} does nothing but copy from or to the host in {{lost:%}} of the step time of {{step:duration}}{pageable}.",
            device=device.device,
            lost=lost,
            step=step_s(times),
            pageable=device.pageable_share,
        ),
        severity,
        confidence(times),
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, lost),
        exhibits=(
            chart(times, device.exposed_copy_ms, Message("copying"), "trace_viewer@", Part.DEVICE),
            TableExhibit(Message("Copies"), ("copy", "a step", "time a step (ms)"), rows),
        ),
        fixes=fixes,
    )
