import numpy as np
import pytest

from tb_advisor.evidence.step_parts import Part, step_parts
from tb_advisor.evidence.trace_steps import find_steps, measure
from tb_advisor.logdir.reading import read_trace
from tests.trace_builders import E, capture, gpu_steps, keras_steps, xplane_capture


def parts_of(tmp_path, planes):
    path = xplane_capture(tmp_path, planes)
    times = measure(find_steps(capture(path), read_trace(path)))
    parts = step_parts(times)
    assert np.sum([*parts.values()], axis=0) == pytest.approx(times.period_ms)
    return {part: float(ms.mean()) for part, ms in parts.items()}


def test_every_moment_counts_once(tmp_path):
    work = {"Compute": [E("sgemm", 40, 30)], "Nccl": [E("ncclAllReduce", 60, 20)]}
    host = [E("tf.function-graph_building", 15, 15), E("optimizer", 25, 20)]
    parts = parts_of(tmp_path, gpu_steps(work, host=host, wait=20))
    assert parts == pytest.approx(
        {Part.DEVICE: 30, Part.COMMUNICATION: 10, Part.INPUT: 20, Part.COMPILE: 10, Part.HOST: 10, Part.IDLE: 20}, abs=1e-6
    )


def test_what_encloses_steps_says_nothing(tmp_path):
    planes = gpu_steps({"Compute": [E("sgemm", 40, 30)]}, host=[E("log", 70, 5)])
    planes["/host:CPU"]["python"].append(E("fit", 0, 800))
    parts = parts_of(tmp_path, planes)
    assert (parts[Part.HOST], parts[Part.IDLE]) == (pytest.approx(5), pytest.approx(65))


def test_without_a_device_nothing_is_idle(tmp_path):
    parts = parts_of(tmp_path, keras_steps([100] * 6, [40] * 6))
    assert (parts[Part.INPUT], parts[Part.REST]) == (pytest.approx(40), pytest.approx(60))
    assert Part.IDLE not in parts
