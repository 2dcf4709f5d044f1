from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tb_advisor.rules.eager_execution import eager_execution
from tests.trace_builders import E, capture, every_step, judge, keras_steps, kernels, kineto_capture, kineto_steps, xplane_capture


def check(tmp_path, ops, duration, *, op="MatMul", more=()):
    """Eight steps of 100 ms with eager ops of `duration` ms; the kernel is half of each."""
    calls = kernels(f"EagerLocalExecute: {op}", ops, start=1, every=98 / max(ops, 1), duration=duration)
    run = [E("KernelAndDeviceFunc::Run", call.start, call.duration / 2) for call in calls]
    planes = keras_steps([100] * 8, [0.1] * 8)
    lines = {**planes[HOST], "main": every_step([*calls, *run, *more])}
    return judge(eager_execution, capture(xplane_capture(tmp_path, {HOST: lines})))


def test_a_step_of_many_eager_ops(tmp_path):
    (found,) = check(tmp_path, 120, 0.5)
    assert found.summary == "Each step runs 120 TensorFlow ops one by one, which takes 60% of its 100 ms."
    assert (found.severity, found.confidence, found.onset_step, found.last_step) == (Severity.WARNING, Confidence.HIGH, 11, 17)
    assert str(found.impact.text) == (
        "A step spends 69.9 ms outside of kernels; without that it is 3.3× faster, or more where kernels are tiny."
    )
    assert found.exhibits[1].rows[0][:2] == ("MatMul", 120)


@pytest.mark.parametrize(
    ("ops", "duration", "expected"),
    [
        (101, 0.2, [Severity.WARNING]),
        (99, 0.3, [Severity.INFO]),  # the count
        (110, 0.15, [Severity.INFO]),  # the share
        (31, 0.4, [Severity.INFO]),
        (29, 1.5, []),
        (200, 0.04, []),
        (0, 0, []),  # a graph
    ],
)
def test_a_count_and_a_share(tmp_path, ops, duration, expected):
    graph = [E("EagerLocalExecute: __inference_step_9", 1, 90)]
    assert [d.severity for d in check(tmp_path, ops, duration, more=graph)] == expected


@pytest.mark.parametrize("op", ["_EagerConst", "__inference_step_12", "IteratorGetNext"])
def test_ops_that_a_graph_run_has_too_do_not_count(tmp_path, op):
    assert check(tmp_path, 200, 0.4, op=op) == []


def test_waiting_for_input_is_not_the_runtime(tmp_path):
    planes = keras_steps([100] * 8, [80] * 8)
    ops = every_step([E("TFE_Py_FastPathExecute_C", 0, 81), *kernels("EagerLocalExecute: Add", 40, start=82, every=0.4, duration=0.1)])
    assert judge(eager_execution, capture(xplane_capture(tmp_path, {HOST: {**planes[HOST], "main": ops}}))) == []


def jax(tmp_path, ops, *, inside=False):
    calls = kernels("PjitFunction(matmul)", ops, start=1, every=98 / ops, duration=0.5)
    twice = [E(call.name, call.start + 0.01, 0.4) for call in calls]
    step = [E("PjitFunction(step)", 0, 99)] if inside else []
    markers = [E("train", 100 * i, 99.5, {"step_num": i}) for i in range(9)]
    planes = {HOST: {"python": [*markers, *every_step([*step, *calls, *twice])]}}
    return judge(eager_execution, capture(xplane_capture(tmp_path, planes)))


def test_jax_without_jit(tmp_path):
    (found,) = jax(tmp_path, 120)
    assert found.summary == "Each step runs 120 JAX ops one by one, which takes 60% of its 100 ms."
    assert found.severity is Severity.WARNING
    assert str(found.impact.text).startswith("A step spends 60 ms in calls of ops; without that it is 2.5× faster")


def test_calls_inside_of_a_compiled_function_of_jax_are_one(tmp_path):
    assert jax(tmp_path, 120, inside=True) == []


def test_pytorch_runs_eagerly_by_design(tmp_path):
    with pytest.raises(Missing, match="no event of the eager runtimes of TensorFlow and JAX"):
        judge(eager_execution, capture(kineto_capture(tmp_path, kineto_steps([20] * 6, [1] * 6))))
