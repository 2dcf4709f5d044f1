from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Confidence, Severity, TraceExhibit
from tb_advisor.evidence.trace_steps import marked_steps, read_capture, step_times
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tb_advisor.rules.input_bound_steps import input_bound_steps
from tests.trace_builders import LOADER, WORKERS, E, capture, keras_steps, kineto_capture, kineto_event, kineto_steps, xplane_capture


def check(*captures):
    traces = tuple(read_capture(c) for c in captures)
    return input_bound_steps(step_times(traces, marked_steps(traces)), {})


def keras(tmp_path, periods, waits):
    return check(capture(xplane_capture(tmp_path, keras_steps(periods, waits))))


def annotated(tmp_path, wait):
    events = [e for i in range(8) for e in (E("train", 100 * i, 99, {"step_num": i}), E("load_batch", 100 * i + 0.5, wait))]
    return check(capture(xplane_capture(tmp_path, {HOST: {"python": events}})))


def severities(found):
    return [d.severity for d in found]


def test_steps_that_wait(tmp_path):
    (found,) = keras(tmp_path, [300] + [167] * 6, [280] + [139] * 6)
    assert found.summary == "Each step waits 139 ms of its 167 ms (83.2%) for input."
    assert (found.severity, found.confidence, found.onset_step, found.last_step) == (Severity.WARNING, Confidence.HIGH, 11, 16)
    assert str(found.impact.text) == "Without the wait a step would take 28 ms: at most 6.0× faster."
    assert found.impact.share == pytest.approx(139 / 167)
    exhibit = next(e for e in found.exhibits if isinstance(e, TraceExhibit))
    assert (exhibit.capture, exhibit.tool, exhibit.host) == ("exp/2026_12_01_12_00_00", "input_pipeline_analyzer", "host")
    assert (round(exhibit.busy_ms[0]), round(exhibit.wait_ms[0]), len(exhibit.steps)) == (28, 139, 6)


@pytest.mark.parametrize(
    ("periods", "waits", "expected"),
    [
        ([100] * 6, [20.1] * 6, [Severity.WARNING]),
        ([100] * 6, [19] * 6, [Severity.INFO]),
        ([100] * 6, [5.1] * 6, [Severity.INFO]),
        ([100] * 6, [4.9] * 6, []),  # the share
        ([9] * 6, [2.1] * 6, [Severity.WARNING]),
        ([9] * 6, [1.9] * 6, [Severity.INFO]),  # the floor
        ([2] * 6, [0.9] * 6, []),
    ],
)
def test_a_share_and_a_floor(tmp_path, periods, waits, expected):
    assert severities(keras(tmp_path, periods, waits)) == expected


@pytest.mark.parametrize(
    "waits",
    [
        [0.1] * 8,  # healthy
        [90] + [0.1] * 7,  # the first step, with the start of the profiler
        [0.1, 0.1, 0.1, 90, 0.1, 0.1, 0.1, 0.1],  # one hiccup
        [3, 3, 3, 97, 3, 3, 3, 3],  # one hiccup over a wait of 3%
    ],
)
def test_silent(tmp_path, waits):
    assert keras(tmp_path, [100] * 8, waits) == []


def test_workers_that_deliver_in_bursts(tmp_path):
    (found,) = check(
        capture(kineto_capture(tmp_path, kineto_steps([50, 110, 50, 110, 50, 110, 50], [0.1, 65] * 3 + [0.1], loader=WORKERS)))
    )
    assert found.severity is Severity.WARNING
    assert found.summary.startswith("On average a step waits 32.6 ms of its 80 ms (40.7%) for input; the DataLoader's worker processes")
    assert found.fixes == ("lighter-dataset", "dataloader-workers")


def test_a_loader_without_workers(tmp_path):
    events = [*kineto_steps([100] * 6, [80] * 6), *(kineto_event("gemm", 1085 + 100 * i, 10, "kernel", device=0) for i in range(6))]
    (found,) = check(capture(kineto_capture(tmp_path, events)))
    assert "loads in the training process itself (num_workers=0)" in found.summary
    assert found.fixes == ("dataloader-workers", "lighter-dataset", "pin-memory")
    assert found.exhibits[0].tool == ""


def test_three_steps_are_enough_for_a_medium_confidence(tmp_path):
    assert keras(tmp_path, [100] * 3, [50] * 3)[0].confidence is Confidence.MEDIUM
    with pytest.raises(Missing, match=r"holds too few whole steps .* 2; 3 are needed"):
        keras(tmp_path / "two", [100] * 2, [50] * 2)


def test_steps_told_from_the_loader_have_medium_confidence(tmp_path):
    events = [kineto_event(LOADER, 100 * i + 1, 40) for i in range(8)]
    (found,) = check(capture(kineto_capture(tmp_path, events)))
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.MEDIUM)


def test_an_annotation_needs_more_and_is_never_certain(tmp_path):
    (found,) = annotated(tmp_path / "a", 40)
    assert (found.severity, found.confidence, found.fixes) == (Severity.WARNING, Confidence.MEDIUM, ("load-in-background",))
    assert found.summary.endswith("for input, in the annotation load_batch.")
    assert severities(annotated(tmp_path / "b", 25)) == [Severity.INFO]
    assert annotated(tmp_path / "c", 9) == []


def test_nothing_that_waits_is_not_applicable(tmp_path):
    path = xplane_capture(tmp_path, {HOST: {"python": [E("train", 10 * i, 9, {"step_num": i}) for i in range(8)]}})
    with pytest.raises(Missing, match="holds no event of an input pipeline"):
        check(capture(path))


def test_the_slowest_host_of_a_session(tmp_path):
    paths = tuple(xplane_capture(tmp_path, keras_steps([100] * 6, [w] * 6), host=host) for host, w in (("a", 30), ("b", 60), ("c", 1)))
    (found,) = check(Capture("exp/2026_12_01_12_00_00", "exp", paths))
    assert found.summary == "Each step waits 60 ms of its 100 ms (60%) for input, on the slowest of 3 hosts (b)."
    assert found.exhibits[0].host == "b"


def stages(tmp_path, *, threads, python, work=80):
    planes = dict(keras_steps([100] * 6, [80] * 6))
    lines = {
        "get": [E("Iterator::Root", 100 * i, 80, {"threadpool_size": threads}) for i in range(6)],
        "produce": [E("Iterator::Root::Map", 100 * i, work, {"name": "MapDataset:1"}) for i in range(6)],
        "pool": [E("PyFunc:PyFunc", 100 * i, 70) for i in range(6)] if python else [],
    }
    (found,) = check(capture(xplane_capture(tmp_path, {HOST: {**planes[HOST], **lines}})))
    return found


def test_the_stage_that_works_longest_chooses_the_fixes(tmp_path):
    found = stages(tmp_path, threads=8, python=False)
    assert found.summary.endswith("; Map works longest in the tf.data pipeline, 80 ms a step.")
    assert found.fixes == ("parallel-map", "vectorize-map", "prefetch", "cache-dataset")


def test_prefetch_comes_first_where_a_step_has_time_to_hide_the_pipeline(tmp_path):
    assert stages(tmp_path, threads=8, python=False, work=15).fixes[0] == "prefetch"


def test_more_parallel_calls_are_not_advised_to_one_thread_or_to_python(tmp_path):
    assert "parallel-map" not in stages(tmp_path / "a", threads=1, python=False).fixes
    found = stages(tmp_path / "b", threads=8, python=True)
    assert found.summary.endswith("; Python functions in the tf.data pipeline take 70 ms a step.")
    assert found.fixes == ("tensorflow-ops", "vectorize-map", "prefetch", "cache-dataset")
