from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tb_advisor.rules.step_time_outliers import step_time_outliers
from tests.trace_builders import E, capture, judge, keras_steps, xplane_capture


def check(tmp_path, periods, *, waits=None, slow_event="write_checkpoint"):
    planes = keras_steps(periods, waits or [0.1] * len(periods))
    starts = [sum(periods[:i]) for i in range(len(periods))]
    events = [E(slow_event, start + 20, period - 25) for start, period in zip(starts, periods, strict=True) if period > 40]
    return judge(step_time_outliers, capture(xplane_capture(tmp_path, {HOST: {**planes[HOST], "main": events}})))


def test_slow_steps_of_a_long_capture(tmp_path):
    (found,) = check(tmp_path, [20] + [20, 20, 20, 20, 20, 20, 80] * 4)
    assert found.summary == (
        "4 of 28 steps (17, 24, 31, 38) take up to 79.9 ms where 19.9 ms is usual; 30% of the time is lost, mostly to write_checkpoint."
    )
    assert (found.severity, found.confidence, found.onset_step, found.last_step) == (Severity.WARNING, Confidence.HIGH, 17, 38)
    assert str(found.impact.text) == "Without that a step would take 20 ms: at most 1.4× faster."


def test_a_slow_step_of_a_short_capture_is_worth_knowing(tmp_path):
    (found,) = check(tmp_path, [20] * 6 + [90] + [20] * 3)
    assert found.summary.startswith("Of 9 steps, step 16 takes 89.9 ms where 19.9 ms is usual; 28")
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.MEDIUM)


@pytest.mark.parametrize(
    "periods",
    [
        [20] * 10,
        [200] + [20] * 10,  # the first step
        [20, 24, 19, 22, 26, 20, 21, 25, 18, 23, 20],  # a shared machine
        [2, 2, 2, 4, 2, 2, 2, 4, 2, 2, 2],  # milliseconds
        [20] * 15 + [200] + [20] * 15,  # one hiccup in thirty
    ],
)
def test_silent(tmp_path, periods):
    assert check(tmp_path, periods) == []


def test_waiting_for_input_is_another_rule(tmp_path):
    assert check(tmp_path, [20, 20, 80] * 8, waits=[0.1, 0.1, 60] * 8) == []


def test_too_few_steps(tmp_path):
    with pytest.raises(Missing, match="has 5 whole steps after the first one; 8 are needed"):
        check(tmp_path, [20] * 6)
