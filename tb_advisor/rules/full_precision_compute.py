"""Matrix multiplications and convolutions run in 32 bits on a device that is faster with 16.

## Why it matters

Tensor cores (NVIDIA from Volta on) and matrix cores (AMD Instinct) multiply 16-bit numbers 4 to 16 times as fast as
32-bit ones, and half the bytes are moved. Mixed precision keeps the weights in 32 bits.

## How it is found

From a profiler capture with three whole steps or more and a GPU of compute capability `least_capability` (7) or more,
by the names of its kernels (`sgemm`, `float`, `half`, `bf16`, `tf32`, …); kernels whose name tells no type are left
out. It is worth knowing where the device is busy for at least `least_busy` (50%) of the step, else it waits for
something else, where 32-bit kernels of matrices take `least_share` (20%) of the step, and where less than `most_half`
(10%) of all matrix time is in 16 bits, the level below which TensorFlow's profiler speaks, too. TF32 counts as 32 bits,
but is said: there about a factor of two is left.

## When it is wrong

Some losses and normalisations need 32 bits; mixed precision changes results a little and has to be checked. Names tell
nothing of a TPU, which multiplies in bfloat16 by default, so that it is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.step_cost import by_capture, confidence, impact, step_s


@rule(category="compute", fixes=("mixed-precision", "allow-tf32", "sizes-divisible-by-8"))
def full_precision_compute(
    device_time: tuple[DeviceTime, ...],
    *,
    least_capability: float = 7,
    least_busy: float = 0.5,
    least_share: float = 0.2,
    most_half: float = 0.1,
) -> Iterator[Diagnosis]:
    """One diagnosis a capture, of its busiest device."""
    able = [device for device in device_time if _capability(device) >= least_capability]
    if not able:
        raise Missing("no GPU with tensor cores in a capture (looked for compute capability {least:.0f})", least=least_capability)
    for devices in by_capture(able):
        busiest = max(devices, key=lambda device: device.busy_share)
        single_ms = busiest.matrix_ms - busiest.half_ms
        spent = single_ms / max(float(busiest.times.period_ms.sum()), 1e-9)
        if busiest.busy_share >= least_busy and spent >= least_share and busiest.half_ms < most_half * busiest.matrix_ms:
            yield _diagnosis(busiest, min(1.0, spent))


def _capability(device: DeviceTime) -> float:
    value = device.plane.stats.get("compute_cap_major")
    return float(value) if isinstance(value, (int, float)) else 0.0


def _diagnosis(device: DeviceTime, spent: float) -> Diagnosis:
    times = device.times
    tf32 = device.tf32_ms >= (device.matrix_ms - device.half_ms) / 2
    # NVIDIA from Ampere on; AMD counts its generations in the same field and has no TF32 in PyTorch.
    may_use_tf32 = not tf32 and _capability(device) >= 8 and "AMD" not in f"{device.kind} {device.plane.stats.get('device_vendor')}"
    kind = "TF32" if tf32 else "32-bit"
    return Diagnosis(
        Message(
            f"{kind} kernels of matrices take {{spent:%}} of the step time of {{step:duration}} on {{device}}; {{half:%}} of the matrix "
            "time is in 16 bits.",
            spent=spent,
            step=step_s(times),
            device=f"{device.device} ({device.kind})" if device.kind else device.device,
            half=device.half_ms / max(device.matrix_ms, 1e-9),
        ),
        Severity.INFO,
        confidence(times) if times.steps.are_marked else Confidence.LOW,
        onset_step=times.numbers[0],
        last_step=times.numbers[-1],
        impact=impact(times, spent),
        fixes=("mixed-precision", "allow-tf32", "sizes-divisible-by-8") if may_use_tf32 else ("mixed-precision", "sizes-divisible-by-8"),
    )
