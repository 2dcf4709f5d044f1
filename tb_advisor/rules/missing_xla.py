"""The step is not compiled: small kernels run one after the other, each reading and writing all of its data.

## Why it matters

A compiler (XLA, torch.compile) makes one kernel of a chain of additions, activations and normalisations, so that data
is read and written once and one launch is left of ten.

## How it is found

From a profiler capture with three whole steps or more and a GPU: kernels that do little with each value (`elementwise`,
`EigenMetaKernel`, bias, activation) take `least_share` (15%) of the step time on or more, at least `least_kernels`
(200) kernels run a step, and none has a name that a compiler gives (`fusion`, `triton_`). Below 200 kernels little is
left to fuse; with a smaller share the matrix kernels decide.

## When it is wrong

With shapes that change from step to step compiling costs more than it brings. Some custom ops cannot be compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, confidence, impact, step_s


@rule(category="compute", fixes=("compile-step", "fused-optimizer"))
def missing_xla(device_time: tuple[DeviceTime, ...], *, least_share: float = 0.15, least_kernels: float = 200) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of its busiest device."""
    gpus = [device for device in device_time if not device.device.startswith("TPU")]
    if not gpus:
        raise Missing("no capture of a GPU (a TPU runs compiled programs only)")
    for devices in by_capture(gpus):
        busiest = max(devices, key=lambda device: device.busy_share)
        spent = busiest.elementwise_ms / max(float(busiest.times.period_ms.sum()), 1e-9)
        if not busiest.fused and spent >= least_share and np.median(busiest.kernels) >= least_kernels:
            yield _diagnosis(busiest, min(1.0, spent))


def _diagnosis(device: DeviceTime, spent: float) -> Diagnosis:
    times = device.times
    return Diagnosis(
        Message(
            "Kernels that do little with each value take {spent:%} of the step time of {step:duration} on {device}; of {kernels:,.0f} "
            "kernels a step none is made by a compiler.",
            spent=spent,
            step=step_s(times),
            device=device.device,
            kernels=float(np.median(device.kernels)),
        ),
        Severity.INFO,
        confidence(times) if times.steps.are_marked else Confidence.LOW,
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, spent),
    )
