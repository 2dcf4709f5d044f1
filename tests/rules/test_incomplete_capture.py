from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.trace_steps import marked_steps, read_capture
from tb_advisor.logdir.captures import Capture
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tb_advisor.rules.incomplete_capture import incomplete_capture
from tests.trace_builders import E, capture, keras_steps, kineto_capture, kineto_steps, kineto_text, put, xplane_capture, xspace

SESSION = "exp/2026_12_01_12_00_00"


def check(*captures):
    traces = tuple(read_capture(c) for c in captures)
    return incomplete_capture(traces, marked_steps(traces))


def test_whole_captures_are_silent(tmp_path):
    keras = xplane_capture(tmp_path, keras_steps([20] * 3, [1] * 3))
    assert check(capture(keras), capture(kineto_capture(tmp_path, kineto_steps([20] * 3, [1] * 3)))) == []


def test_a_capture_of_one_step(tmp_path):
    (found,) = check(capture(xplane_capture(tmp_path, keras_steps([], []))))
    assert found.severity is Severity.INFO
    assert found.summary == (
        f"Capture {SESSION} holds 1 step (marker Profiled batch), 0 of them whole; 3 whole steps are needed for a verdict."
    )
    assert found.exhibits[0].lines == (
        "host.xplane.pb: host host, 1 events over 1 ms, no device (CPU only), steps of Profiled batch: 1, whole ones: 0",
    )


def test_a_capture_without_steps(tmp_path):
    (found,) = check(capture(xplane_capture(tmp_path, {HOST: {"t": [E("a", 0, 1)]}})))
    assert found.severity is Severity.INFO
    assert "holds no step: none of its 1 events" in found.summary


def test_an_empty_capture(tmp_path):
    (found,) = check(capture(xplane_capture(tmp_path, {HOST: {}})))
    assert found.summary == f"Capture {SESSION} is empty: no event in host.xplane.pb."


@pytest.mark.parametrize("content", [b"", b"\xff" * 50, xspace(keras_steps([20] * 4, [1] * 4))[:-9]])
def test_a_broken_file_is_a_warning(tmp_path, content):
    good = xplane_capture(tmp_path, keras_steps([20] * 4, [1] * 4))
    (found,) = check(Capture(SESSION, "exp", (good, put(good.parent / "other.xplane.pb", content))))
    assert found.severity is Severity.WARNING
    assert found.summary.startswith(f"Capture {SESSION} cannot be read in full: other.xplane.pb is ")
    assert len(found.exhibits[0].lines) == 2


def test_a_trace_that_was_cut_off_is_a_warning(tmp_path):
    text = kineto_text(kineto_steps([20] * 6, [1] * 6))
    (found,) = check(capture(put(tmp_path / "w.1.pt.trace.json", text[:-100])))
    assert found.severity is Severity.WARNING
    assert "is cut off or damaged after" in found.summary


def test_errors_of_the_profiler_are_worth_knowing(tmp_path):
    (found,) = check(capture(xplane_capture(tmp_path, keras_steps([20] * 4, [1] * 4), errors=["CUPTI_ERROR"])))
    assert (found.severity, found.summary) == (Severity.INFO, f"Capture {SESSION} may lack events: the profiler reported: CUPTI_ERROR.")


def test_a_session_of_tables_of_2020(tmp_path):
    files = tuple(put(tmp_path / name, b"x") for name in ("h.tensorflow_stats.pb", "h.pod_viewer.json"))
    (found,) = check(Capture(SESSION, "exp", files))
    assert found.severity is Severity.INFO
    assert found.summary == (
        f"Capture {SESSION} gives no verdict: h.tensorflow_stats.pb has a format of 2020 to 2022, which is not read (and 1 more)."
    )


def test_a_capture_that_needs_too_much_memory(tmp_path):
    small, large = (xplane_capture(tmp_path, keras_steps([20] * n, [1] * n), host=host) for n, host in ((4, "a"), (400, "b")))
    room = 6 * small.stat().st_size

    def said(*files):
        traces = (read_capture(Capture(SESSION, "exp", files), room),)
        (found,) = incomplete_capture(traces, marked_steps(traces))
        assert found.severity is Severity.INFO
        return found.summary

    assert said(large).startswith(f"Capture {SESSION} gives no verdict: b.xplane.pb would take about ")
    assert said(small, large).startswith(f"Capture {SESSION} is read in part: b.xplane.pb would take about ")


def test_a_job_without_captures():
    with pytest.raises(Missing, match="no profiler capture in this job"):
        check()
