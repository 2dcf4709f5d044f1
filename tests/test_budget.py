import math
import os

import numpy as np
import pytest

from tb_advisor.advise import diagnose
from tb_advisor.budget import default_budget, share_to_keep
from tb_advisor.check import Cache, Curve
from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.logdir.jobs import find_jobs
from tb_advisor.message import Message
from tests.builders import event_file, falling, series
from tests.test_advise import found, spy, statuses, toy
from tests.test_plugin import Flags, client, ready

POINTS = 60_000
SPIKE, NAN = 12_345, 20_007
SMALL = 100_000  # bytes, far less than the points of these log directories take


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two jobs with 60,000 points each: one with a spike, one with a NaN."""
    logdir = tmp_path_factory.mktemp("logs")
    for name, step, value in (("sweep/spiky", SPIKE, 9.0), ("sweep/nan", NAN, math.nan)):
        values = falling(POINTS, noise=0.01)
        values[step] = value
        event_file(logdir / name, {"loss": values})
    return logdir


def kept(cache):
    return sum(len(curve.series) for checked in cache.jobs.values() for curve in checked.curves)


def test_the_verdict_rests_on_every_point_whatever_is_kept(logs):
    assert diagnose(logs, memory_bytes=SMALL).as_json() == diagnose(logs).as_json()


def test_charts_keep_their_marked_steps_and_the_memory_is_bounded(logs):
    cache = Cache()
    report = diagnose(logs, cache=cache, memory_bytes=SMALL)
    curves = {curve.series.run: curve for checked in cache.jobs.values() for curve in checked.curves}
    marked = {outcome.job: diagnosis.exhibits[0].marks for outcome, diagnosis in report.diagnoses if diagnosis.shown}
    assert {job: [(mark.start, mark.end) for mark in marks] for job, marks in marked.items()} == {
        "sweep/nan": [(NAN, NAN)],
        "sweep/spiky": [(SPIKE, SPIKE)],
    }
    for job, step in (("sweep/nan", NAN), ("sweep/spiky", SPIKE)):
        assert step in curves[job].series.steps
        assert {0, POINTS - 1} <= set(curves[job].series.steps.tolist())
        assert curves[job].points_within(None) == POINTS
        assert curves[job].points_within((10_000, 19_999)) == pytest.approx(10_000, rel=0.01)
    assert kept(cache) < 2 * 2_000
    assert not cache.runs._runs and not cache.runs._files


def test_a_marked_step_that_looks_like_any_other_is_kept(tmp_path):
    event_file(tmp_path, {"loss": falling(10_000)})
    marks = (Mark(7_000, 7_002, Message("here")), Mark(4_999, 4_999, Message("and here")))
    here = Diagnosis(Message("found"), Severity.INFO, Confidence.LOW, exhibits=(SeriesExhibit(((".", "loss"),), marks),))
    kept_steps = {}
    for name, rule in (("marked", toy("a", lambda _: [here])), ("unmarked", toy("b", lambda _: []))):
        cache = Cache()
        diagnose(tmp_path, rules=[rule], cache=cache, memory_bytes=1)
        kept_steps[name] = set(cache.jobs["."].curves[0].series.steps.tolist())
        assert kept(cache) < 1_000
    assert {7_000, 7_001, 7_002, 4_999} <= kept_steps["marked"]
    assert not {7_000, 7_001, 7_002, 4_999} <= kept_steps["unmarked"]


def test_processes_keep_the_same(logs):
    caches = [Cache(), Cache()]
    for cache, workers in zip(caches, (1, 2), strict=True):
        diagnose(logs, cache=cache, memory_bytes=1_000_000, workers=workers)
    alone, together = ([curve for checked in cache.jobs.values() for curve in checked.curves] for cache in caches)
    assert [len(curve.series) <= 5_000 for curve in together] == [True, True]
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(a.series.steps, b.series.steps)
        assert np.array_equal(a.series.values, b.series.values, equal_nan=True)
        assert np.array_equal(a.weights, b.weights)


def test_a_log_directory_within_its_budget_keeps_every_point(logs):
    cache = Cache()
    diagnose(logs, cache=cache)
    assert kept(cache) == 2 * POINTS
    assert share_to_keep(find_jobs(logs), default_budget()) is None


def test_unchanged_jobs_are_not_read_again_and_changed_ones_whole(tmp_path):
    for name in "ab":
        event_file(tmp_path / name, {"loss": falling(10_000)})
    judged, cache = [], Cache()
    rules = [spy(judged)]
    for _ in range(2):
        diagnose(tmp_path, rules=rules, cache=cache, memory_bytes=SMALL)
    assert judged == ["a", "b"]
    event_file(tmp_path / "b", {"loss": falling(10_001)})
    report = diagnose(tmp_path, rules=rules, cache=cache, memory_bytes=SMALL)
    assert judged == ["a", "b", "b"]
    assert [job.points for job in report.jobs] == [10_000, 10_001]
    assert kept(cache) < 2 * 2_000


def test_a_log_directory_that_outgrows_its_budget_is_cut_down(tmp_path):
    judged, cache = [], Cache()
    rules = [spy(judged)]
    event_file(tmp_path / "a", {"loss": falling(10_000)})
    diagnose(tmp_path, rules=rules, cache=cache, memory_bytes=400_000)
    assert kept(cache) == 10_000
    for name in "bcd":
        event_file(tmp_path / name, {"loss": falling(10_000)})
    diagnose(tmp_path, rules=rules, cache=cache, memory_bytes=400_000)
    assert judged == ["a", "b", "c", "d"]
    assert 32 * kept(cache) < 500_000


def test_rules_over_families_need_every_point(logs):
    rules = [toy("siblings", found, ("family",))]
    status, reason = statuses(diagnose(logs, rules=rules, memory_bytes=SMALL))["siblings", "sweep"]
    assert (status.value, reason) == ("not_applicable", "the points of 2 of these 2 jobs, which are too many for memory")
    assert statuses(diagnose(logs, rules=rules))["siblings", "sweep"][0].value == "found"


def test_a_zoomed_curve_counts_the_points_of_its_span():
    whole = series(falling(100))
    assert Curve(whole).points_within((10, 19)) == 10
    few = np.array([0, 10, 50, 99])
    assert Curve(whole[few], np.diff(few, append=100)).points_within(None) == 100
    assert Curve(whole[few], np.diff(few, append=100)).points_within((10, 60)) == 89


def test_the_chart_says_how_many_points_there_are(logs):
    flags = Flags()
    flags.advisor_memory_mb = 1
    app = client(logs, flags)
    ready(app)
    query = {"run": "sweep/spiky", "tag": "loss", "points": "5000"}
    chart = app.get("/series", query_string=query).json
    assert (chart["total"], chart["thinned"]) == (POINTS, True)
    assert len(chart["steps"]) <= 5000
    zoomed = app.get("/series", query_string={**query, "from": "12000", "to": "12999"}).json
    assert (zoomed["total"], zoomed["thinned"]) == (pytest.approx(1000, rel=0.05), True)
    assert len(zoomed["steps"]) < 500


def test_the_default_is_a_quarter_of_the_machine():
    assert 64 << 20 < default_budget() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
