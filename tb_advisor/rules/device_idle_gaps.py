"""The device stops for a millisecond or more within a step.

## Why it matters

A long gap has one cause that can be found and moved: a value that is fetched for a log line, a checkpoint, a Python
loop over the batch, memory that is taken from the driver. It is easier to repair than a thousand short ones.

## How it is found

From a profiler capture with three whole steps or more and a device: times of 1 ms or more in which the device does
nothing although nobody waits for input, traces or compiles. They are worth knowing from `least_share` (10%) of the step
time on, where they come in at least `least_steps` (half) of the steps: a single checkpoint is no habit. The event of
the host that covers the longest gap is named.

## When it is wrong

In a pipeline over several devices a device waits for its turn, which is no fault of the host.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TableExhibit
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.evidence.step_parts import Part
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, chart, confidence, impact, share, step_s


@rule(category="compute", fixes=("less-host-work", "avoid-sync", "steps-per-execution"))
def device_idle_gaps(device_time: tuple[DeviceTime, ...], *, least_share: float = 0.1, least_steps: float = 0.5) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of its busiest device."""
    for devices in by_capture(device_time):
        busiest = max(devices, key=lambda device: device.busy_share)
        if share(busiest.times, busiest.long_gap_ms) >= least_share and (busiest.long_gap_ms > 0).mean() >= least_steps:
            yield _diagnosis(busiest)


def _diagnosis(device: DeviceTime) -> Diagnosis:
    times, lost = device.times, share(device.times, device.long_gap_ms)
    longest = next((gap for gap in device.longest_gaps if gap.host), device.longest_gaps[0])
    doing = "; the host is in {doing} then" if longest.host else ""
    rows = tuple((round(gap.start_ms, 3), gap.duration_ms, gap.host) for gap in device.longest_gaps)
    columns = ("begins (ms into the capture)", "lasts (ms)", "the host's event")
    return Diagnosis(
        Message(
            f"{{device}} stops for a millisecond or more at a time, in {{lost:%}} of the step time of {{step:duration}}; a long gap lasts "
            f"{{gap:duration}}{doing}.",
            device=device.device,
            lost=lost,
            step=step_s(times),
            gap=longest.duration_ms / 1000,
            doing=longest.host,
        ),
        Severity.INFO,
        confidence(times) if times.steps.are_marked else Confidence.LOW,
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, lost),
        exhibits=(
            chart(times, device.long_gap_ms, Message("long gaps"), "trace_viewer@", Part.IDLE, Part.HOST),
            TableExhibit(Message("Longest gaps of {device}", device=device.device), columns, rows),
        ),
    )
