from __future__ import annotations

import numpy as np
import pytest

from tb_advisor.evidence.step_parts import Part
from tb_advisor.evidence.trace_steps import find_steps, measure
from tb_advisor.logdir.reading import read_trace
from tb_advisor.message import Message
from tb_advisor.step_cost import chart
from tests.trace_builders import E, capture, gpu_steps, xplane_capture


@pytest.fixture
def times(tmp_path):
    path = xplane_capture(tmp_path, gpu_steps({"Compute": [E("sgemm", 40, 30)]}, host=[E("log", 30, 10)], wait=20))
    return measure(find_steps(capture(path), read_trace(path)))


def stack(times, cost, *within):
    exhibit = chart(times, np.full(len(times.numbers), float(cost)), Message("own"), "", *within)
    sums = np.sum([part.ms for part in exhibit.parts], axis=0)
    assert sums == pytest.approx(times.period_ms)
    assert np.add(exhibit.busy_ms, exhibit.wait_ms) == pytest.approx(times.period_ms)
    return [(part.name, round(part.ms[0])) for part in exhibit.parts]


def test_the_cost_is_taken_out_of_the_parts_that_hold_it(times):
    assert stack(times, 20, Part.INPUT) == [("device", 30), ("host", 10), ("idle", 40), ("own", 20)]
    assert stack(times, 45, Part.IDLE, Part.HOST) == [("device", 30), ("host", 5), ("input", 20), ("own", 45)]


def test_more_than_these_hold_comes_from_the_others(times):
    assert stack(times, 70, Part.IDLE, Part.HOST) == [("device", 30), ("own", 70)]
    assert stack(times, 200, Part.COMPILE) == [("own", 100)]


def test_a_cost_across_all_parts_is_none_of_them(times):
    assert stack(times, 70) == [("device", 30), ("host", 10), ("idle", 40), ("input", 20)]
