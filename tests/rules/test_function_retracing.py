from __future__ import annotations

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.logdir.trace import HOST
from tb_advisor.message import Missing
from tb_advisor.rules.function_retracing import function_retracing
from tests.trace_builders import E, capture, judge, keras_steps, xplane_capture


def check(tmp_path, kinds, *, tracing=0.0):
    """Steps of 100 ms with a call of a function each; a traced one builds a graph for `tracing` ms."""
    calls = [E("step", 100 * i + 1, 90, {"tf_function_call": kind, "tracing_count": 3 + i}) for i, kind in enumerate(kinds)]
    graphs = [E("tf.function-graph_building", 100 * i + 2, tracing) for i, kind in enumerate(kinds) if kind.startswith("traced")]
    planes = keras_steps([100] * len(kinds), [0.1] * len(kinds))
    return judge(function_retracing, capture(xplane_capture(tmp_path, {HOST: {**planes[HOST], "main": [*calls, *graphs]}})))


def test_every_step_is_traced(tmp_path):
    (found,) = check(tmp_path, ["traced-nonXla"] * 8, tracing=40)
    assert found.summary == (
        "The function step is traced in 7 of 7 calls (10 traces so far); building graphs takes 40% of the step time of 100 ms."
    )
    assert (found.severity, found.onset_step) == (Severity.WARNING, 11)
    assert str(found.impact.text) == "Without that a step would take 10 ms: at most 10.0× faster."


@pytest.mark.parametrize(
    ("traced", "tracing", "expected"),
    [
        ([0], 90, []),  # the first step
        ([0, 5], 90, []),  # once more: a last, smaller batch
        ([3, 7], 10, [Severity.INFO]),
        ([3, 7], 60, [Severity.WARNING]),  # a tenth of the time
        ([3, 5, 7], 10, [Severity.WARNING]),  # a fifth of the calls
        ([], 0, []),
    ],
)
def test_traces_after_the_first_step(tmp_path, traced, tracing, expected):
    kinds = ["traced-xla" if i in traced else "notTraced-xla" for i in range(12)]
    assert [d.severity for d in check(tmp_path, kinds, tracing=tracing)] == expected


def test_a_function_without_the_stat_is_not_applicable(tmp_path):
    with pytest.raises(Missing, match=r"no call of a tf\.function"):
        judge(function_retracing, capture(xplane_capture(tmp_path, keras_steps([100] * 6, [1] * 6))))
