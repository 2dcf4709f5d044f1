from __future__ import annotations

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import SeriesExhibit, TextExhibit
from tb_advisor.rules.input_bound_steps import input_bound_steps
from tests.builders import scalar_event, write_events
from tests.trace_builders import START_NS, keras_steps, xplane_capture

BEGAN = START_NS / 1e9


def exhibits(tmp_path, scalars, *, before=100.0, every=0.2, count=1000):
    """Those of a capture whose steps take 167 ms: scalars are logged from `before` seconds ahead of it on."""
    events = [scalar_event(tag, step, value, BEGAN - before + every * step) for step in range(count) for tag, value in scalars.items()]
    write_events(tmp_path / "exp", events)
    xplane_capture(tmp_path / "exp", keras_steps([167] * 7, [139] * 7))
    ((_, found),) = diagnose(tmp_path, rules=[input_bound_steps]).diagnoses
    texts = [e for e in found.exhibits if isinstance(e, TextExhibit)]
    return [e for e in found.exhibits if isinstance(e, SeriesExhibit)], texts[0].lines if texts else ()


def test_the_place_in_the_run_is_marked(tmp_path):
    (curve,), lines = exhibits(tmp_path, {"train/loss": 1.0})
    (mark,) = curve.marks
    assert curve.run_tags == (("exp", "train/loss"),)
    assert (mark.start, mark.end, str(mark.label)) == (501, 506, "capture")
    assert lines == ("Recorded at step 501 to 506 of 999 (train/loss).",)


@pytest.mark.parametrize(
    ("tag", "value", "said"),
    [
        ("step_time", 0.17, "A step takes 167 ms in the capture and 170 ms by step_time near it: they agree."),
        ("step_time_ms", 205.0, "A step takes 167 ms in the capture and 205 ms by step_time_ms near it: they agree."),
        ("steps_per_sec", 5.0, "A step takes 167 ms in the capture and 200 ms by steps_per_sec near it: they agree."),
    ],
)
def test_logged_times_that_agree(tmp_path, tag, value, said):
    assert exhibits(tmp_path, {"train/loss": 1.0, tag: value})[1][1] == said


def test_a_place_within_one_step(tmp_path):
    assert exhibits(tmp_path, {"epoch_loss": 1.0}, every=20.0, count=9)[1] == ("Recorded at step 5 of 8 (epoch_loss).",)


def test_logged_times_that_disagree(tmp_path):
    _, lines = exhibits(tmp_path, {"train/loss": 1.0, "steps_per_sec": 20.0})
    assert "and 50 ms by steps_per_sec near it: they disagree" in lines[1]


@pytest.mark.parametrize("tag", ["samples_per_sec", "epoch_time"])
def test_what_counts_no_steps_is_not_compared(tmp_path, tag):
    assert len(exhibits(tmp_path, {"train/loss": 1.0, tag: 0.2})[1]) == 1


@pytest.mark.parametrize("before", [-10.0, 1000.0])
def test_a_capture_before_or_after_the_curve_has_no_place(tmp_path, before):
    assert exhibits(tmp_path, {"train/loss": 1.0}, before=before) == ([], ())


def test_a_capture_without_scalars_has_no_place(tmp_path):
    assert exhibits(tmp_path, {}) == ([], ())
