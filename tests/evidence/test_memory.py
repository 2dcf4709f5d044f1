from __future__ import annotations

from tb_advisor.evidence.memory import allocator_memory
from tb_advisor.evidence.trace_steps import marked_steps, read_capture
from tb_advisor.logdir.trace import HOST
from tests.trace_builders import E, capture, keras_steps, kineto_capture, kineto_event, kineto_memory, kineto_steps, xplane_capture


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
