from __future__ import annotations

import numpy as np
import pytest

from tb_advisor.diagnosis import TimelineExhibit
from tb_advisor.evidence.memory import allocator_memory
from tb_advisor.evidence.trace_steps import find_steps
from tb_advisor.logdir.reading import read_trace
from tb_advisor.memory_use import MOST_POINTS, allocator_exhibits
from tb_advisor.report import plain
from tests.trace_builders import allocator_steps, capture, xplane_capture

MIB = 2**20


def timeline(tmp_path, used, peak_of=None, **more):
    path = xplane_capture(tmp_path, allocator_steps(used, **more))
    (memory,) = allocator_memory((find_steps(capture(path), read_trace(path)),))
    found = allocator_exhibits(memory, peak_of)[0]
    assert isinstance(found, TimelineExhibit)
    return found


def test_usage_over_time_and_its_peak(tmp_path):
    found = timeline(tmp_path, [[10, 40], [10, 70], [10, 30]], capacity=100)
    assert [b / MIB for b in found.bytes] == [10, 40, 10, 70, 10, 30]
    assert (found.capacity, found.peak_bytes) == (100 * MIB, 70 * MIB)
    assert found.peak_ms == found.times_ms[3] == pytest.approx(29.5)
    assert str(found.peak_label) == "70 MiB in step 11, conv float32[64,512]"
    assert plain(found)["kind"] == "timeline"


def test_the_peak_of_one_step(tmp_path):
    found = timeline(tmp_path, [[10, 40], [10, 70], [10, 30]], peak_of=2)
    assert (found.peak_bytes / MIB, found.peak_ms, found.capacity) == (30, found.times_ms[5], None)


def test_many_points_are_thinned_to_their_extremes(tmp_path):
    rng = np.random.default_rng(1)
    used = rng.integers(20, 60, (6, 700)).tolist()
    used[3][333], used[4][21] = 99, 2
    found = timeline(tmp_path, used)
    assert len(found.bytes) <= MOST_POINTS
    assert (max(found.bytes), min(found.bytes)) == (99 * MIB, 2 * MIB)
    assert list(found.times_ms) == sorted(found.times_ms)
    assert (found.bytes[0], found.bytes[-1]) == (used[0][0] * MIB, used[-1][-1] * MIB)
