from __future__ import annotations

import numpy as np

from tb_advisor.evidence.intervals import counted, covered, gaps, joined


def array(*values):
    return np.array(values, np.float64)


def test_gaps_are_what_nothing_covers():
    opens, closes = gaps(array(5, 1, 2), array(7, 3, 4), 0, 10)
    assert opens.tolist() == [0, 4, 7]
    assert closes.tolist() == [1, 5, 10]


def test_gaps_and_cover_make_the_window():
    starts = np.random.default_rng(0).uniform(-5, 15, 50)
    ends = starts + np.random.default_rng(1).exponential(0.3, 50)
    opens, closes = gaps(starts, ends, 0, 10)
    assert np.isclose((closes - opens).sum() + covered(starts, ends, array(0, 10))[0], 10)


def test_without_intervals_all_is_a_gap():
    opens, closes = gaps(array(), array(), 2, 3)
    assert (opens.tolist(), closes.tolist()) == ([2], [3])


def test_events_are_counted_where_they_start():
    assert counted(array(3, 0, 1, 9, 10), array(0, 1, 5, 10)).tolist() == [1, 2, 1]


def test_nothing_joined_is_empty():
    assert [len(part) for part in joined(())] == [0, 0]
