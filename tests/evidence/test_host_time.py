from __future__ import annotations

import pytest

from tb_advisor.evidence import Evidence
from tb_advisor.logdir.jobs import Job
from tb_advisor.logdir.trace import HOST
from tests.trace_builders import E, capture, every_step, gpu_steps, keras_steps, kineto_capture, kineto_event, kineto_steps, xplane_capture


def host_time(path):
    (host,) = Evidence(Job("exp", {}, (capture(path),)))["host_time"]
    return host


def keras(tmp_path, **lines):
    planes = keras_steps([100] * 4, [10] * 4)
    return host_time(xplane_capture(tmp_path, {HOST: {**planes[HOST], **lines}}))


def test_ops_are_counted_and_their_time_is_without_input(tmp_path):
    step = [E("TFE_Py_FastPathExecute_C", 0, 30), E("EagerLocalExecute: Mul", 2, 20), E("KernelAndDeviceFunc::Run", 3, 17)]
    host = keras(tmp_path, main=every_step(step, count=4))
    assert host.eager_ops.tolist() == [1, 1, 1]
    assert host.eager_ms.tolist() == pytest.approx([20, 20, 20])  # the wait is from 0.5 to 10.5
    assert host.kernel_ms.tolist() == pytest.approx([9.5] * 3)
    assert [(op.name, op.calls, op.total_ms) for op in host.top_ops] == [("EagerLocalExecute: Mul", 3, pytest.approx(60))]


def test_functions_and_their_traces(tmp_path):
    kinds = ("traced-nonXla", "notTraced-nonXla", "traced-nonXla", "notTraced-nonXla")
    calls = [E("f", 100 * i + 20, 5, {"tf_function_call": kind, "tracing_count": 1 + i // 2}) for i, kind in enumerate(kinds)]
    host = keras(tmp_path, main=[*calls, E("tf.function-graph_building", 221, 3)])
    assert [(f.name, f.calls, f.traced, f.tracing_count) for f in host.functions] == [("f", 3, 1, 2)]
    assert host.tracing_ms.tolist() == pytest.approx([0, 3, 0])
    assert (host.calls, host.traced) == (3, 1)


def test_a_compilation_on_two_threads_is_one(tmp_path):
    host = keras(tmp_path, main=[E("backend_compile_and_load", 120, 50)], pool=[E("CpuCompiler::RunBackend", 125, 60)])
    assert host.compiles.tolist() == [1, 0, 0]
    assert host.compile_ms.tolist() == pytest.approx([65, 0, 0])
    assert host.compiled == ""


def test_a_call_that_compiles_is_new_but_for_what_it_executes(tmp_path):
    calls = [E("PjitFunction(f)", 100 * i + 20, 70) for i in range(4)]
    host = keras(tmp_path, main=[*calls, E("backend_compile_and_load", 130, 30), E("ThunkExecutor::Execute", 170, 15)])
    assert host.renewal_ms.tolist() == pytest.approx([55, 0, 0])
    assert host.compiled == "f"


def test_waiting_for_the_device_counts_while_it_is_idle(tmp_path):
    planes = gpu_steps(
        {"Compute": [E("gemm", 0, 50)]}, host=[E("cudaStreamSynchronize", 20, 40), E("cudaStreamWaitEvent", 70, 20)], count=4
    )
    host = host_time(xplane_capture(tmp_path, planes))
    assert host.syncs.tolist() == [1, 1, 1]
    assert host.sync_ms.tolist() == pytest.approx([10, 10, 10])


def test_values_that_the_optimizer_fetches_do_not_count(tmp_path):
    events = [kineto_event("Optimizer.step#Adam.step", 1080 + 100 * i, 10) for i in range(4)]
    events += [kineto_event("aten::item", 1000 + 100 * i + at, 0.01, "cpu_op") for i in range(4) for at in (50, 82, 84, 95)]
    host = host_time(kineto_capture(tmp_path, [*kineto_steps([100] * 4, [1] * 4), *events]))
    assert host.items.tolist() == [2, 2, 2]
