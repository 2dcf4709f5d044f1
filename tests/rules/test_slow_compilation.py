from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.logdir.trace import HOST
from tb_advisor.rules.slow_compilation import slow_compilation
from tests.trace_builders import E, capture, judge, keras_steps, kineto_capture, kineto_event, kineto_steps, xplane_capture


def check(tmp_path, steps, duration, *, name="backend_compile_and_load"):
    """Eight steps of 100 ms that compile in these `steps`, the call of XLA inside."""
    compiles = [e for i in steps for e in (E(name, 100 * i + 5, duration), E("CpuCompiler::RunBackend", 100 * i + 6, duration - 2))]
    calls = [E("PjitFunction(update)", 100 * i + 4, 95) for i in range(8)]
    planes = keras_steps([100] * 8, [0.1] * 8)
    return judge(slow_compilation, capture(xplane_capture(tmp_path, {HOST: {**planes[HOST], "main": [*calls, *compiles]}})))


def test_every_step_compiles(tmp_path):
    (found,) = check(tmp_path, range(8), 70)
    assert found.summary == "The function update is compiled 7 times in 7 steps; that takes 70% of the step time of 100 ms."
    assert found.severity is Severity.WARNING
    assert str(found.impact.text) == "Without that a step would take 5 ms: at most 20.0× faster."


@pytest.mark.parametrize(
    ("steps", "duration", "expected"),
    [
        ([0], 90, []),  # the first step
        ([4], 90, []),  # once
        ([4, 6], 30, [Severity.INFO]),
        ([4, 6], 40, [Severity.WARNING]),
        ([], 10, []),
    ],
)
def test_compilations_after_the_first_step(tmp_path, steps, duration, expected):
    assert [d.severity for d in check(tmp_path, steps, duration)] == expected


def test_torch_compile(tmp_path):
    phases = [kineto_event("_compile.compile_inner (dynamo_timed)", 1010 + 100 * i, 50) for i in range(2, 6)]
    (found,) = judge(slow_compilation, capture(kineto_capture(tmp_path, [*kineto_steps([100] * 6, [1] * 6), *phases])))
    assert found.summary == "The step is compiled 4 times in 5 steps; that takes 40% of the step time of 100 ms."
