from __future__ import annotations

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Severity
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tb_advisor.rules.input_bound_steps import input_bound_steps
from tb_advisor.rules.slow_input_operation import slow_input_operation
from tests.trace_builders import WORKERS, E, capture, judge, keras_steps, kineto_capture, kineto_steps, xplane_capture

MAP = "Iterator::Root::Prefetch::Map"


def planes(wait, *, work, python=0.0, threads=8, stats=None):
    steps = keras_steps([100] * 8, [wait] * 8)
    lines = {
        "get": [E("Iterator::Root", 100 * i, wait, {"threadpool_size": threads}) for i in range(8)],
        "produce": [E(MAP, 100 * i, work, stats or {"name": "MapDataset:1"}) for i in range(8)],
        "read": [E(f"{MAP}::TFRecord", 100 * i + 1, 5, {"name": "TFRecord:0"}) for i in range(8)],
        "pool": [E("PyFunc:PyFunc", 100 * i, python) for i in range(8)] if python else [],
    }
    return {HOST: {**steps[HOST], **lines}}


def check(tmp_path, wait, **more):
    return judge(slow_input_operation, capture(xplane_capture(tmp_path, planes(wait, **more))))


def test_the_stage_that_works_longest(tmp_path):
    (found,) = check(tmp_path, 80, work=80, stats={"name": "ParallelMap:1", "parallelism": 4})
    assert found.summary == (
        "Map takes 80 ms a step, 94.1% of the work of the tf.data pipeline, with 4 parallel calls (Iterator::Root::Prefetch::Map)."
    )
    assert (found.severity, found.fixes) == (Severity.WARNING, ("parallel-map", "vectorize-map"))


def test_python_functions(tmp_path):
    (found,) = check(tmp_path, 80, work=80, python=75)
    assert found.summary == "Python functions (PyFunc) of the tf.data pipeline take 75 ms a step; they run one at a time."
    assert found.fixes[0] == "tensorflow-ops"


def test_worker_processes(tmp_path):
    (found,) = judge(slow_input_operation, capture(kineto_capture(tmp_path, kineto_steps([100] * 6, [40] * 6, loader=WORKERS))))
    assert found.summary == "The DataLoader (_MultiProcessingDataLoaderIter, num_workers>0) takes 40 ms a step."
    assert str(found.impact.text) == "Without that a step would take 60 ms: at most 1.7× faster."


@pytest.mark.parametrize(("wait", "expected"), [(21, [Severity.WARNING]), (19, [Severity.INFO]), (5.1, [Severity.INFO]), (4.9, [])])
def test_as_severe_as_the_wait(tmp_path, wait, expected):
    assert [d.severity for d in check(tmp_path, wait, work=80)] == expected


def test_a_stage_that_does_not_explain_the_wait_is_not_named(tmp_path):
    assert check(tmp_path, 80, work=30) == []


def test_it_is_folded_under_the_wait(tmp_path):
    xplane_capture(tmp_path, planes(80, work=80))
    report = diagnose(tmp_path, rules=[input_bound_steps, slow_input_operation])
    assert [(o.rule, d.folded_under) for o, d in report.diagnoses] == [
        ("input-bound-steps", None),
        ("slow-input-operation", "input-bound-steps"),
    ]


def test_an_annotation_names_no_stage(tmp_path):
    events = [e for i in range(8) for e in (E("train", 100 * i, 99, {"step_num": i}), E("load_batch", 100 * i + 0.5, 60))]
    with pytest.raises(Missing, match="names no stage of an input pipeline"):
        judge(slow_input_operation, capture(xplane_capture(tmp_path, {HOST: {"python": events}})))
