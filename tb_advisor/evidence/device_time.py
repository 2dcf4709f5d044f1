"""Profiler captures: what each device does in a step: computing, copying, talking to other devices, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.host_time import HostTime, NamedTime
from tb_advisor.evidence.intervals import Floats, Intervals, counted, covered, gaps, joined
from tb_advisor.evidence.trace_steps import StepTimes, is_work
from tb_advisor.logdir.trace import DEVICE, Indices, Mask, Plane, Trace

# The host needs 5 to 50 µs to launch a kernel and up to 150 µs for the Python around it; what is shorter lies between two launches.
LAUNCH_GAP_MS = 0.2
# From here on the device waits for something that has a name.
LONG_GAP_MS = 1.0


@dataclass(frozen=True)
class Gap:
    """A time in which a device had nothing to do and nobody waited for input. `host` is what the host did, empty where not known."""

    start_ms: float
    duration_ms: float
    host: str


@dataclass(frozen=True, eq=False)
class DeviceTime:
    """One device in the steps of one trace: milliseconds a step, counts a step, all of shape ``(n,)``.

    `busy_ms` is all its work, `exposed_copy_ms` the part of copies from and to the host and `exposed_collective_ms` the part of collectives
    in which nothing was computed. `idle_ms` is the time in which it did nothing although nobody waited for input, traced or compiled;
    `launch_gap_ms` and `long_gap_ms` are its parts in gaps that are shorter than `LAUNCH_GAP_MS` and at least `LONG_GAP_MS`.

    Over all steps: `median_kernel_ms`; `pageable_share` of the copied time, from memory that is not pinned; `matrix_ms` in matrix
    multiplications and convolutions of a known type, of which `half_ms` are in 16 bits or less and `tf32_ms` in TF32;
    `elementwise_ms` in kernels that do little with each value; `fused` whether a compiler made kernels.
    """

    host: HostTime
    device: str
    kind: str
    plane: Plane
    busy_ms: Floats
    kernels: Floats
    exposed_copy_ms: Floats
    exposed_collective_ms: Floats
    idle_ms: Floats
    launch_gap_ms: Floats
    long_gap_ms: Floats
    longest_gaps: tuple[Gap, ...]
    median_kernel_ms: float
    pageable_share: float
    collectives: tuple[NamedTime, ...]
    copies: tuple[NamedTime, ...]
    matrix_ms: float
    half_ms: float
    tf32_ms: float
    elementwise_ms: float
    fused: bool

    @property
    def times(self) -> StepTimes:
        """The steps of its trace."""
        return self.host.times

    @property
    def busy_share(self) -> float:
        """Share of the step time in which it worked, 0-1."""
        return float(self.busy_ms.sum() / self.times.period_ms.sum())


def device_time(host_time: tuple[HostTime, ...]) -> tuple[DeviceTime, ...]:
    """Every device that worked in the steps of a trace. Empty for captures of a CPU."""
    found = (_device_time(host, plane) for host in host_time for plane in host.times.steps.trace.devices)
    return tuple(device for device in found if device is not None)


# Layouts with S(5) lie in the memory of the host (TPU).
_COPY = re.compile(r"Memcpy ?(HtoD|DtoH|H2D|D2H)|.*copy-(start|done).*S\(5\)", re.IGNORECASE)
_NO_KERNEL = re.compile(r"Mem(cpy|set)|__amd_rocclr_(copy|fill)", re.IGNORECASE)
_COLLECTIVE = re.compile(
    r".*(nccl|rccl|all[-_ ]?(reduce|gather|to[-_]?all)|reduce[-_]?scatter|collective[-_]?(permute|broadcast)|multimem_)", re.IGNORECASE
)
# How vendors' libraries name their kernels: cuDNN, cuBLAS, CUTLASS, MIOpen, Tensile (Cijk_), Composable Kernel.
_MATRIX = re.compile(
    r".*(gemm|conv|cudnn|winograd|xmma|cutlass|nvjet|Cijk_|[dw]grad|fprop|884|16816|1688|attention|flash|fmha|bmm_)", re.IGNORECASE
)
_NO_MATRIX = re.compile(
    r".*(bn_|batch_?norm|convert|transpose|nchwToNhwc|nhwcToNchw|pool|elementwise|copy|im2col|im3d|offsets|direct_copy)", re.IGNORECASE
)
_HALF = re.compile(
    r".*(half|bf16|bfloat16|fp16|(?<!t)f16|fp8|e[45]m[23]|[hs]884|16816|hgemm|nvjet_(hs|tst|qq)|_(BBS|HHS|HSS|BSS)_|int8|_i8)",
    re.IGNORECASE,
)
_TF32 = re.compile(r".*(tf32|s1688)", re.IGNORECASE)
_SINGLE = re.compile(r".*(sgemm|scudnn|float|f32|fp32|_SB_|_SSS_|cgemm)", re.IGNORECASE)
_ELEMENTWISE = re.compile(r".*(elementwise|EigenMetaKernel|multi_tensor_apply|BiasN|bias_grad|Relu)", re.IGNORECASE)
_FUSED = re.compile(r".*(fusion|triton_|wrapped_)")
_MOST_GAPS = 5


@dataclass(frozen=True, eq=False)
class _Work:
    """What one device did, from all its streams: `ids` index `names`; all of shape ``(k,)``."""

    names: tuple[str, ...]
    ids: Indices
    starts: Floats
    ends: Floats

    def where(self, wanted: Callable[[str], object]) -> Mask:
        return np.array([bool(wanted(name)) for name in self.names] or [False])[self.ids]

    def intervals(self, mask: Mask) -> Intervals:
        return self.starts[mask], self.ends[mask]

    def total(self, mask: Mask) -> float:
        return float((self.ends[mask] - self.starts[mask]).sum())

    def named(self, mask: Mask) -> tuple[NamedTime, ...]:
        calls = np.bincount(self.ids[mask], minlength=len(self.names))
        total = np.bincount(self.ids[mask], weights=self.ends[mask] - self.starts[mask], minlength=len(self.names))
        order = sorted(np.flatnonzero(calls).tolist(), key=lambda i: (-total[i], self.names[i]))
        return tuple(NamedTime(self.names[i], int(calls[i]), float(total[i])) for i in order)


def collective_intervals(times: StepTimes) -> tuple[Intervals, Intervals]:
    """When devices compute or copy within the measured steps, and when they talk to each other."""
    done = [(work, work.where(_COLLECTIVE.match)) for work in (_work(times, plane) for plane in times.steps.trace.devices)]
    return joined(work.intervals(~talk) for work, talk in done), joined(work.intervals(talk) for work, talk in done)


def _work(times: StepTimes, plane: Plane) -> _Work:
    """What the device did within the measured steps. A TPU tells it twice, by op and by module: the ops are taken."""
    lines = [line for line in plane.lines if is_work(plane, line) and len(line)]
    lines = [line for line in lines if line.name == "XLA Ops"] or lines
    edges = times.edges_ms
    inside = [(line, (line.start_ms < edges[-1]) & (line.end_ms > edges[0])) for line in lines]
    starts, ends = joined((line.start_ms[mask], line.end_ms[mask]) for line, mask in inside)
    ids = np.concatenate([line.ids[mask] for line, mask in inside]).astype(np.int64) if inside else np.empty(0, np.int64)
    return _Work(lines[0].names if lines else (), ids, starts, ends)


def _device_time(host: HostTime, plane: Plane) -> DeviceTime | None:
    work = _work(host.times, plane)
    if not len(work.ids):
        return None
    edges = host.times.edges_ms
    copies, collectives = work.where(_COPY.match), work.where(_COLLECTIVE.match)
    computes = ~copies & ~collectives
    kernels = computes & ~work.where(_NO_KERNEL.match)
    half, tf32, single = (work.where(kind.match) for kind in (_HALF, _TF32, _SINGLE))
    matrix = kernels & work.where(_MATRIX.match) & ~work.where(_NO_MATRIX.match) & (half | tf32 | single)
    pageable = copies & work.where(lambda name: "pageable" in name.lower())
    occupied = joined((work.intervals(work.ids >= 0), host.times.waits, host.preparing))
    opens, closes = gaps(*occupied, float(edges[0]), float(edges[-1]))
    short, long = closes - opens < LAUNCH_GAP_MS, closes - opens >= LONG_GAP_MS
    computing = covered(*work.intervals(computes), edges)
    durations = (work.ends - work.starts)[kernels]
    return DeviceTime(
        host=host,
        device=plane.name.removeprefix(DEVICE),
        kind=str(plane.stats.get("device_type_string", "")),
        plane=plane,
        busy_ms=covered(work.starts, work.ends, edges),
        kernels=counted(work.starts[kernels], edges),
        exposed_copy_ms=covered(work.starts, work.ends, edges) - covered(*work.intervals(~copies), edges),
        exposed_collective_ms=covered(*work.intervals(computes | collectives), edges) - computing,
        idle_ms=covered(opens, closes, edges),
        launch_gap_ms=covered(opens[short], closes[short], edges),
        long_gap_ms=covered(opens[long], closes[long], edges),
        longest_gaps=_longest(host.times.steps.trace, opens[long], closes[long], host.times.steps.marker),
        median_kernel_ms=float(np.median(durations)) if len(durations) else 0.0,
        pageable_share=work.total(pageable) / max(work.total(copies), 1e-9),
        collectives=work.named(collectives),
        copies=work.named(copies),
        matrix_ms=work.total(matrix),
        half_ms=work.total(matrix & half & ~tf32),
        tf32_ms=work.total(matrix & tf32),
        elementwise_ms=work.total(kernels & work.where(_ELEMENTWISE.match)),
        fused=bool((kernels & work.where(_FUSED.match)).any()),
    )


def _longest(trace: Trace, opens: Floats, closes: Floats, marker: str) -> tuple[Gap, ...]:
    longest = np.argsort(opens - closes, kind="stable")[:_MOST_GAPS].tolist()
    return tuple(
        Gap(float(opens[i]), float(closes[i] - opens[i]), _doing(trace, float(opens[i]), float(closes[i]), marker)) for i in longest
    )


def _doing(trace: Trace, opens: float, closes: float, marker: str) -> str:
    """The shortest event of the host that covers most of a gap; step markers say nothing about it."""
    best: tuple[float, str] = (np.inf, "")
    for line in trace.host_lines:
        shared = np.minimum(line.end_ms, closes) - np.maximum(line.start_ms, opens)
        for i in np.flatnonzero((shared > (closes - opens) / 2) & (line.duration_ms < best[0])).tolist():
            name = line.names[line.ids[i]]
            if not name.startswith(marker) and "ThreadpoolListener" not in name:
                best = min(best, (float(line.duration_ms[i]), name))
    return best[1]
