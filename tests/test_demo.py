"""What the demo is there to show beyond demo/expected.json: notes on its search, charts of its captures and histograms."""

from __future__ import annotations

import os
import shutil

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Diagnosis, HistogramExhibit, Status, TraceExhibit
from tb_advisor.report import Report


@pytest.fixture(scope="module")
def report(demo_logs) -> Report:
    return diagnose(demo_logs)


def found(report: Report, job: str, rule: str) -> list[Diagnosis]:
    return [d for outcome, d in report.diagnoses if (outcome.job, outcome.rule) == (job, rule)]


def test_of_the_search_one_job_is_to_be_kept_and_the_edge_is_seen(demo_logs, tmp_path):
    copy = shutil.copytree(demo_logs / "search", tmp_path / "search")
    for file in copy.rglob("events*"):
        last = file.stat().st_mtime - 120  # jobs count as finished after a minute
        os.utime(file, (last, last))
    report = diagnose(tmp_path)
    (keep,) = found(report, "search", "which-run-to-keep")
    assert keep.summary.startswith("Keep search/lr=0.1,seed=")
    (edge,) = found(report, "search", "search-space-edge")
    assert "is at the highest learning_rate that was tried, 0.1" in edge.summary


@pytest.mark.parametrize(
    ("job", "rule"), [("input-bound", "input-bound-steps"), ("eager", "eager-execution"), ("retracing", "function-retracing")]
)
def test_the_steps_of_captures_are_drawn(report, job, rule):
    (diagnosis,) = found(report, job, rule)
    assert any(isinstance(exhibit, TraceExhibit) for exhibit in diagnosis.exhibits)
    assert diagnosis.impact is not None and "faster" in str(diagnosis.impact.text)


def test_the_repaired_pipeline_is_judged_and_does_not_wait(report):
    (outcome,) = (o for o in report.outcomes if (o.job, o.rule) == ("input-repaired", "input-bound-steps"))
    assert outcome.status is Status.CLEAR


def test_the_histograms_of_dead_units_are_drawn(report):
    (dead,) = found(report, "dead-relu", "dead-units")
    assert any(isinstance(exhibit, HistogramExhibit) for exhibit in dead.exhibits)
    assert dead.onset_step == 1


def test_what_each_capture_holds_is_said_beside_its_job(report):
    contents = {job.name: held for job in report.jobs for held in job.capture_contents}
    assert set(contents) == {"input-bound", "input-repaired", "eager", "retracing"}
    assert all(held.steps >= 5 and held.marker and held.devices == 0 and held.window_ms > 0 for held in contents.values())
