from __future__ import annotations

import numpy as np
import pytest

from tb_advisor.diagnosis import Severity, TraceExhibit
from tb_advisor.evidence.memory import allocator_memory
from tb_advisor.evidence.trace_steps import marked_steps, read_capture
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tb_advisor.rules.memory_spike import memory_spike
from tests.builders import series
from tests.trace_builders import E, capture, keras_steps, kineto_capture, kineto_memory, kineto_steps, xplane_capture

MIB = 2**20
NOISE = np.random.default_rng(0).normal(0, 1, 400)


def logged(values, tag="system/gpu_memory_mb", **more):
    return memory_spike((series(values, tag=tag, **more),), ())


def with_spike(level, at, *heights):
    values = np.array(level, dtype=float)
    values[at : at + len(heights)] = heights
    return values


def steps(tmp_path, peaks, *, free=None):
    """A capture whose steps reach these peaks, in MiB; `free` MiB are free at the first one."""
    stats = [{"allocator_name": "GPU_0_bfc", "bytes_allocated": int(p * MIB), "bytes_reserved": 0, "tf_op": "conv"} for p in peaks]
    if free is not None:
        for s, p in zip(stats, peaks, strict=True):
            s["bytes_available"] = int((free + peaks[0] - p) * MIB)
    planes = dict(keras_steps([20] * len(peaks), [1] * len(peaks)))
    events = [E("MemoryAllocation", 20 * i + 5, 0, s) for i, s in enumerate(stats)]
    path = xplane_capture(tmp_path, {HOST: {**planes[HOST], "t": events}})
    return memory_spike((), allocator_memory(marked_steps((read_capture(capture(path)),))))


def test_a_spike_in_a_scalar():
    (found,) = logged(with_spike(1000 + NOISE[:100], 50, 2500, 2400), step=10)
    assert found.summary == "system/gpu_memory_mb jumps once, at step 500, to 2,500 MB, 2.5× the usual 1,000 MB."
    assert (found.severity, found.onset_step, found.last_step) == (Severity.WARNING, 500, 510)
    assert [(m.start, m.end, str(m.label)) for m in found.exhibits[0].marks] == [(500, 510, "spike, 2.5×")]


def test_half_above_the_usual_is_worth_knowing():
    assert logged(with_spike([1000] * 60, 30, 1600))[0].severity is Severity.INFO


def test_several_spikes_are_one_diagnosis():
    values = with_spike(with_spike([1000] * 100, 30, 2100), 70, 3000)
    (found,) = logged(values, tag="memory")
    assert found.summary == "memory jumps 2 times, highest at step 70, to 3,000, 3.0× the usual 1,000."
    assert len(found.exhibits[0].marks) == 2


def test_the_unit_is_the_one_that_the_tag_names():
    assert "to 2 KiB, 2.0× the usual 1 KiB" in logged(with_spike([1024] * 60, 30, 2048), tag="allocated_bytes")[0].summary
    assert "to 60 %, 3.0× the usual 20 %" in logged(with_spike([20] * 60, 30, 60), tag="memory_percent")[0].summary


def test_a_long_spike_of_a_long_run():
    assert len(logged(with_spike(1000 + NOISE, 200, *[2500] * 14))) == 1


@pytest.mark.parametrize(
    "values",
    [
        1000 + 20 * NOISE[:200],  # noise
        np.minimum(100 + 50 * np.arange(100), 1000) + NOISE[:100],  # warm-up, then a plateau
        np.repeat([1000, 1600, 2600, 4000], 25),  # stairs
        np.linspace(1000, 5000, 100),  # growth
        np.tile(np.linspace(1000, 2000, 10), 12),  # a sawtooth of garbage collection
        with_spike([1000] * 60, 30, 1400),  # below the ratio
        with_spike([1000] * 60, 59, 3000),  # the last point: nobody knows whether it comes back
        with_spike([1000] * 60, 0, 3000),  # the start
        [0.0] * 60,
        [np.nan] * 30 + [1000] * 30,
    ],
)
def test_healthy_scalars_are_silent(values):
    assert logged(values) == []


def test_a_small_percentage_is_silent():
    assert logged(with_spike([2] * 60, 30, 6), tag="memory_percent") == []


def test_a_spike_of_a_step(tmp_path):
    (found,) = steps(tmp_path, [100, 100, 100, 250, 100, 100, 100], free=900)
    assert found.summary == (
        "Memory of GPU_0_bfc peaks at 250 MiB in step 13 (conv), 2.5× the usual 100 MiB; 750 MiB of 1,000 MiB stay free."
    )
    assert (found.severity, found.onset_step) == (Severity.WARNING, 13)
    assert [e.tool for e in found.exhibits if isinstance(e, TraceExhibit)] == ["memory_profile"]
    assert str(found.impact.text) == "150 MiB are needed for this one moment; without it 900 MiB of 1,000 MiB would always be free."
    assert found.explains == ()


def test_a_spike_that_reaches_the_limit_explains_it(tmp_path):
    assert steps(tmp_path, [100, 100, 100, 250, 100, 100, 100], free=170)[0].explains == ("memory-near-limit",)


@pytest.mark.parametrize(
    ("peaks", "free"),
    [
        ([100] * 7, 900),
        ([250, 100, 100, 100, 100, 100, 100], 900),  # the first step
        ([100, 100, 140, 100, 100, 100], 900),  # below the ratio
        ([100, 100, 180, 100, 100, 100], 900),  # below a tenth of the capacity
        ([10, 10, 20, 10, 10, 10], None),  # ten megabytes
        ([100, 200, 300, 400, 500, 600, 700], 9000),  # growth
        ([600, 400, 200, 200, 200, 200], None),  # a queue that drains
    ],
)
def test_healthy_steps_are_silent(tmp_path, peaks, free):
    assert steps(tmp_path, peaks, free=free) == []


def test_a_spike_of_pytorch(tmp_path):
    events = kineto_steps([10] * 6, [1] * 6)
    events += [kineto_memory(1005 + 10 * i, total * MIB) for i, total in enumerate((100, 100, 100, 170, 100, 100))]
    path = kineto_capture(tmp_path, events, devices=[{"id": 0, "totalGlobalMem": 500 * MIB}])
    (found,) = memory_spike((), allocator_memory(marked_steps((read_capture(capture(path)),))))
    assert found.severity is Severity.INFO
    assert found.summary.startswith("Memory of GPU:0 peaks at 170 MiB in step 8 (ProfilerStep#8), 1.7×")


def test_nothing_to_look_at_names_both():
    with pytest.raises(Missing, match=r"neither a memory scalar .* nor allocator events .* a capture of a CPU holds no allocator events"):
        memory_spike((), ())
    with pytest.raises(Missing, match="has 3 finite points; 10 are needed"):
        logged([1, 2, 3])


def test_a_capture_with_few_steps_is_not_judged(tmp_path):
    with pytest.raises(Missing, match="cover 3 whole steps; 4 are needed"):
        steps(tmp_path, [100, 300, 100])
