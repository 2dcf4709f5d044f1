from __future__ import annotations

import numpy as np
import pytest

from tb_advisor.evidence.intervals import covered, merged
from tb_advisor.evidence.trace_steps import InputKind, StepSource, marked_steps, read_capture, step_times
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tests.trace_builders import (
    LOADER,
    WORKERS,
    E,
    capture,
    keras_steps,
    kineto_capture,
    kineto_event,
    kineto_steps,
    put,
    xplane_capture,
)


def steps_of(path):
    traces = (read_capture(capture(path)),)
    (found,) = marked_steps(traces)
    return found


def times_of(path):
    traces = (read_capture(capture(path)),)
    (found,) = step_times(traces, marked_steps(traces))
    return found


def missing(*captures):
    traces = tuple(read_capture(c) for c in captures)
    with pytest.raises(Missing) as error:
        step_times(traces, marked_steps(traces))
    return str(error.value)


@pytest.mark.parametrize("marker", ["Profiled batch", "train", "my loop"])
def test_steps_of_a_marker_run_from_start_to_start(tmp_path, marker):
    times = times_of(xplane_capture(tmp_path, keras_steps([50, 20, 20, 30], [5, 8, 8, 9], marker=marker)))
    assert (times.steps.source, times.steps.marker, times.steps.periods) == (StepSource.MARKER, marker, 4)
    assert times.numbers == (11, 12, 13)  # the first is left out
    assert times.period_ms.round(6).tolist() == [20, 20, 30]
    assert times.wait_ms.round(6).tolist() == [8, 8, 9]
    assert times.kind is InputKind.TF_DATA


def test_a_batch_that_is_fetched_outside_the_marker_counts(tmp_path):
    markers = [E("train", 100 * i + 95, 4, {"step_num": i, "_r": 1}) for i in range(6)]
    gets = [E("EagerLocalExecute: IteratorGetNext", 100 * i + 1, 90) for i in range(6)]
    times = times_of(xplane_capture(tmp_path, {HOST: {"python": sorted([*markers, *gets], key=lambda e: e.start)}}))
    assert times.wait_ms.round(6).tolist() == [90] * 4


def test_waits_that_overlap_count_once_and_a_busy_device_hides_them(tmp_path):
    planes = dict(keras_steps([20] * 6, [8] * 6))
    planes[HOST] = {**planes[HOST], "eager": [E("EagerLocalExecute: IteratorGetNext", 20 * i + 0.1, 8) for i in range(6)]}
    planes["/device:GPU:0"] = {"Stream #1(Compute)": [E("gemm", 20 * i + 5, 10) for i in range(6)], "Steps": []}
    times = times_of(xplane_capture(tmp_path, planes))
    assert times.wait_ms.round(6).tolist() == [4.9] * 5
    assert times.device_busy_ms.round(6).tolist() == [10] * 5


def test_iterators_count_only_where_no_op_says_what_the_step_waits_for(tmp_path):
    planes = dict(keras_steps([20] * 5, [2] * 5))
    ahead = [E("Iterator::Root", 20 * i, 19) for i in range(5)]
    assert times_of(xplane_capture(tmp_path / "a", {HOST: {**planes[HOST], "ahead": ahead}})).wait_ms.max() < 3
    assert times_of(xplane_capture(tmp_path / "b", {HOST: {"python": planes[HOST]["python"], "get": ahead}})).wait_ms.min() > 18


def test_steps_of_pytorch(tmp_path):
    times = times_of(kineto_capture(tmp_path, kineto_steps([100] * 6, [60] * 6, loader=WORKERS)))
    assert (times.steps.source, times.steps.periods) == (StepSource.PROFILER_STEP, 6)  # the last one is whole
    assert (times.numbers[0], times.wait_ms.round(3).tolist(), times.workers) == (6, [60] * 5, True)


def test_pytorch_without_profiler_step_counts_from_batch_to_batch(tmp_path):
    events = [kineto_event(LOADER, 100 * i + 1, 30) for i in range(7)]
    times = times_of(kineto_capture(tmp_path, events))
    assert (times.steps.source, times.steps.periods, times.workers) == (StepSource.DATA_LOADER, 6, False)
    assert not times.steps.are_marked


def test_one_profiler_step_around_a_whole_run_is_no_step(tmp_path):
    events = [kineto_event("ProfilerStep#0", 1, 1000), *(kineto_event(LOADER, 100 * i + 1, 30) for i in range(7))]
    assert steps_of(kineto_capture(tmp_path, events)).source is StepSource.DATA_LOADER


def test_steps_of_the_function_that_takes_most_time(tmp_path):
    call = {"tf_function_call": "notTraced-nonXla", "tracing_count": 1}
    events = [E("train_step", 10 * i, 8, call) for i in range(7)] + [E("log", 10 * i + 9, 0.1, call) for i in range(7)]
    steps = steps_of(xplane_capture(tmp_path, {HOST: {"python": sorted(events, key=lambda e: e.start)}}))
    assert (steps.source, steps.marker, steps.periods, steps.are_marked) == (StepSource.FUNCTION, "train_step", 6, False)


def test_a_call_inside_a_call_is_one_step(tmp_path):
    events = [E("PjitFunction(step)", 10 * i + k, 8 - k) for i in range(4) for k in (0, 1)]
    assert steps_of(xplane_capture(tmp_path, {HOST: {"python": events}})).periods == 3


def test_steps_of_a_device(tmp_path):
    planes = {"/device:TPU:0": {"Steps": [E(str(40 + i), 10 * i, 10) for i in range(5)]}}
    steps = steps_of(xplane_capture(tmp_path, planes))
    assert (steps.source, steps.numbers[0], steps.periods) == (StepSource.DEVICE, 40, 4)


@pytest.mark.parametrize("name", ["load_batch", "nextBatch", "data_loading", "fetch data", "train_dataloader_next"])
def test_an_annotation_that_loads(tmp_path, name):
    events = [e for i in range(6) for e in (E("train", 10 * i, 9, {"step_num": i}), E(name, 10 * i + 1, 5))]
    times = times_of(xplane_capture(tmp_path, {HOST: {"python": events}}))
    assert (times.kind, times.source) == (InputKind.ANNOTATION, name)


@pytest.mark.parametrize("name", ["ReadHloModule", "load_checkpoint", "Data::Load", "forward", "get_metrics"])
def test_an_annotation_that_does_not_load(tmp_path, name):
    events = [e for i in range(6) for e in (E("train", 10 * i, 9, {"step_num": i}), E(name, 10 * i + 1, 5))]
    assert times_of(xplane_capture(tmp_path, {HOST: {"python": events}})).kind is InputKind.NONE


def test_an_annotation_of_another_thread_is_loading_ahead(tmp_path):
    train = [E("train", 10 * i, 9, {"step_num": i}) for i in range(6)]
    ahead = [E("load_batch", 10 * i, 9) for i in range(6)]
    assert times_of(xplane_capture(tmp_path, {HOST: {"python": train, "loader": ahead}})).kind is InputKind.NONE


def test_the_pipeline_and_its_slowest_stage(tmp_path):
    planes = dict(keras_steps([20] * 6, [15] * 6))
    root = "Iterator::Root"
    lines = {
        "get": [E(f"{root}::Prefetch", 20 * i, 15, {"name": "inject/prefetch_1"}) for i in range(6)],
        "produce": [
            e
            for i in range(6)
            for e in (
                E(f"{root}::Prefetch::Map", 20 * i, 14, {"name": "MapDataset:1"}),
                E(f"{root}::Prefetch::Map::TFRecord[0]", 20 * i, 4),
            )
        ],
        "pool": [E("PyFunc:PyFunc", 20 * i + 4, 9) for i in range(6)],
        "root": [E(root, 20 * i, 15, {"threadpool_size": 1}) for i in range(6)],
    }
    pipeline = times_of(xplane_capture(tmp_path, {HOST: {**planes[HOST], **lines}})).pipeline
    assert pipeline is not None
    assert (pipeline.slowest.name, round(pipeline.slowest.self_ms), pipeline.slowest.calls) == ("Map", 50, 5)
    assert (round(pipeline.python_ms), pipeline.threads, pipeline.has_prefetch, pipeline.injected_prefetch) == (45, 1, True, True)
    assert [stage.name for stage in pipeline.stages if not stage.waits] == ["Map", "TFRecord"]


def test_missing_says_what_there_is(tmp_path):
    assert missing() == "no profiler capture in this job"
    one = xplane_capture(tmp_path / "a", keras_steps([], []))
    assert missing(capture(one)) == (
        "the capture exp/2026_12_01_12_00_00 holds too few whole steps (marker Profiled batch): 0; 3 are needed"
    )
    none = xplane_capture(tmp_path / "b", {HOST: {"python": [E("a", 0, 1)]}})
    assert missing(capture(none)).startswith("the capture exp/2026_12_01_12_00_00 holds no step: no marker")
    empty = put(tmp_path / "c.xplane.pb")
    assert missing(capture(empty)) == "no capture could be read: c.xplane.pb is empty (0 bytes)"


def test_hosts_are_measured_each_for_itself(tmp_path):
    paths = tuple(xplane_capture(tmp_path, keras_steps([20] * 5, [wait] * 5), host=host) for host, wait in (("a", 1), ("b", 9)))
    traces = (read_capture(Capture("exp/s", "exp", paths)),)
    found = step_times(traces, marked_steps(traces))
    assert [(t.steps.trace.host, round(float(t.wait_ms.mean()))) for t in found] == [("a", 1), ("b", 9)]


def test_a_good_host_beside_a_broken_file(tmp_path):
    good = xplane_capture(tmp_path, keras_steps([20] * 5, [9] * 5))
    traces = (read_capture(Capture("exp/s", "exp", (good, put(tmp_path / "bad.xplane.pb")))),)
    assert len(step_times(traces, marked_steps(traces))) == 1
    assert [unread.file for unread in traces[0].unread] == ["bad.xplane.pb"]


def test_intervals():
    starts, ends = merged(np.array([5.0, 0.0, 1.0]), np.array([6.0, 3.0, 2.0]))
    assert (starts.tolist(), ends.tolist()) == ([0.0, 5.0], [3.0, 6.0])
    assert covered(np.array([5.0, 0.0, 1.0]), np.array([6.0, 3.0, 2.0]), np.array([0.0, 2.0, 5.5, 9.0])).tolist() == [2.0, 1.5, 0.5]
    assert covered(np.empty(0), np.empty(0), np.array([0.0, 1.0])).tolist() == [0.0]
