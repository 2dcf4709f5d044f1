from __future__ import annotations

import pytest

from tb_advisor.evidence.memory import allocation_retries, allocator_memory, logged_memory, unit_of
from tb_advisor.evidence.roles import roles
from tb_advisor.evidence.trace_steps import marked_steps, read_capture
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.logdir.trace import HOST
from tests.builders import series
from tests.trace_builders import (
    E,
    allocator_steps,
    capture,
    keras_steps,
    kineto_capture,
    kineto_event,
    kineto_memory,
    kineto_steps,
    xplane_capture,
)


def memory_of(path):
    return allocator_memory(marked_steps((read_capture(capture(path)),)))


def allocation(start, heap, *, stack=0, free=100, name="MemoryAllocation", **stats):
    return E(name, start, 0, {"bytes_allocated": heap, "bytes_reserved": stack, "bytes_available": free, **stats})


def test_usage_is_stack_and_heap_and_capacity_what_is_free_too(tmp_path):
    events = [allocation(20 * i + 1, 40, stack=60, free=300, allocator_name="GPU_0_bfc", tf_op="conv") for i in range(4)]
    planes = dict(keras_steps([20] * 4, [1] * 4))
    (memory,) = memory_of(xplane_capture(tmp_path, {HOST: {**planes[HOST], "t": events}}))
    assert (memory.allocator, memory.capacity, memory.steps, memory.peaks.tolist()) == ("GPU_0_bfc", 400, (10, 11, 12, 13), [100] * 4)
    assert memory.ops == ("conv",) * 4


def test_threads_of_one_allocator_are_read_in_order_of_time(tmp_path):
    planes = dict(keras_steps([20] * 4, [1] * 4))
    a = [allocation(1, 10, allocator_name="GPU_0_bfc"), allocation(3, 30, allocator_name="GPU_0_bfc")]
    b = [allocation(2, 20, allocator_name="GPU_0_bfc", name="MemoryDeallocation")]
    (memory,) = memory_of(xplane_capture(tmp_path, {HOST: {**planes[HOST], "a": a, "b": b}}))
    assert memory.bytes.tolist() == [10, 20, 30]


def test_cores_of_a_tpu_are_told_apart(tmp_path):
    planes = dict(keras_steps([20] * 4, [1] * 4))
    events = [allocation(1 + i, 10, index_on_host=i) for i in range(2)]
    found = memory_of(xplane_capture(tmp_path, {HOST: {**planes[HOST], "t": events}}))
    assert [memory.allocator for memory in found] == ["device 0", "device 1"]


def test_totals_of_pytorch_with_the_op_around_them(tmp_path):
    events = kineto_steps([10] * 4, [1] * 4)
    for i, total in enumerate((100, 100, 250, 100)):
        events += [kineto_event("aten::conv2d", 1005 + 10 * i, 2, "cpu_op"), kineto_memory(1006 + 10 * i, total)]
    (memory,) = memory_of(kineto_capture(tmp_path, events, devices=[{"id": 0, "totalGlobalMem": 1000}]))
    assert (memory.allocator, memory.capacity, memory.steps) == ("GPU:0", 1000, (5, 6, 7, 8))
    assert (memory.peaks.tolist(), memory.ops[2]) == ([100, 100, 250, 100], "aten::conv2d")


def test_traces_without_totals_add_up_over_threads(tmp_path):
    events = kineto_steps([10] * 4, [1] * 4)
    for i in range(4):
        taken, freed = kineto_memory(1002 + 10 * i, 0, change=100), kineto_memory(1008 + 10 * i, 0, change=-100)
        for event in (taken, freed):
            del event["args"]["Total Allocated"]
        events += [taken, {**freed, "tid": 2}]
    (memory,) = memory_of(kineto_capture(tmp_path, events))
    assert memory.peaks.tolist() == [100] * 4


def test_a_capture_of_a_cpu_has_none(tmp_path):
    assert memory_of(xplane_capture(tmp_path, keras_steps([20] * 4, [1] * 4))) == ()


def test_the_lowest_use_of_a_step_includes_what_it_began_with(tmp_path):
    (memory,) = memory_of(xplane_capture(tmp_path, allocator_steps([(10, 90, 20), (80, 30), (95, 50)])))
    assert [[int(v) >> 20 for v in column] for column in (memory.peaks, memory.floors)] == [[90, 80, 95], [10, 20, 30]]


def test_the_op_of_a_peak_is_the_one_that_took_most_of_what_is_in_use(tmp_path):
    def taken(start, used, op, **more):
        return allocation(start, used, allocator_name="GPU_0_bfc", tf_op=op, requested_bytes=used, **more)

    planes = keras_steps([20] * 2, [1] * 2)[HOST]
    events = [taken(1, 100, "weights"), taken(2, 900, "workspace"), taken(3, 150, "freed"), taken(4, 600, "matmul"), taken(5, 920, "conv")]
    events += [taken(6, 970, "bias", data_type=19, shape="[64]"), taken(7, 100, "freed")]
    (memory,) = memory_of(xplane_capture(tmp_path, {HOST: {**planes, "t": events}}))
    assert memory.fullest.used == 970
    assert (memory.ops[0], memory.fullest.op, memory.fullest.requested) == ("matmul", "matmul", 600)


def test_type_and_shape_of_the_tensor_are_named(tmp_path):
    events = [allocation(1, 10, tf_op="conv", data_type=19, shape="[64,512]"), allocation(21, 10, tf_op="conv", data_type=0)]
    (memory,) = memory_of(xplane_capture(tmp_path, {HOST: {**keras_steps([20] * 2, [1] * 2)[HOST], "t": events}}))
    assert memory.ops == ("conv float16[64,512]", "conv")


def test_of_what_pytorch_holds_some_is_not_in_use(tmp_path):
    events = [*kineto_steps([10] * 2, [1] * 2), kineto_memory(1002, 100, reserved=400)]
    (memory,) = memory_of(kineto_capture(tmp_path, events))
    assert (memory.fullest.used, memory.fullest.held, memory.fullest.fragmentation) == (100, 400, 0.75)


def test_values_that_make_no_sense_are_left_out(tmp_path):
    events = [allocation(1, heap) for heap in (float("nan"), float("inf"), -5.0, 10.0)]
    (memory,) = memory_of(xplane_capture(tmp_path, {HOST: {**keras_steps([20] * 2, [1] * 2)[HOST], "t": events}}))
    assert memory.bytes.tolist() == [10]


def job(*tags):
    return Job("exp", {"exp": Run("exp", {tag: series([1.0] * 5, run="exp", tag=tag) for tag in tags}, {}, "", (), 0, ())})


TAGS = {
    "DeviceStatsMonitor.on_train_batch_start/allocated_bytes.all.current": "bytes",
    "DeviceStatsMonitor.on_train_batch_start/cpu_vm_percent": "%",
    "ray/tune/perf/ram_util_percent": "%",
    "ray/tune/perf/vram_util_percent0": "%",
    "memory/max_active(%)": "%",
    "memory/max_active(GiB)": "GiB",
    "gpu_mem": "",
    "system/proc.memory.rssMB": "MB",
    "rss_bytes": "bytes",
    "train_mem_gpu_peaked_delta": "",
}


@pytest.mark.parametrize("tag", TAGS)
def test_memory_is_known_by_its_tag(tag):
    (found,) = logged_memory(roles(job(tag)))
    assert (found.tag, unit_of(tag)) == (tag, TAGS[tag])


@pytest.mark.parametrize(
    "tag", ["memory/num_ooms", "mem-allocated-count", "DeviceStatsMonitor.on_train_batch_end/allocated_bytes.all.freed"]
)
def test_counts_and_what_was_ever_taken_are_no_memory(tag):
    assert logged_memory(roles(job(tag))) == ()


@pytest.mark.parametrize("tag", ["memory/num_alloc_retries", "DeviceStatsMonitor.on_train_batch_end/num_alloc_retries"])
def test_retries_of_requests(tag):
    logged = job(tag, "loss")
    assert [series.tag for series in allocation_retries(logged)] == [tag]
    assert logged_memory(roles(logged)) == ()
