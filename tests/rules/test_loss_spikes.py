import numpy as np
import pytest

from tb_advisor.message import Missing
from tb_advisor.rules.loss_spikes import loss_spikes
from tests.builders import falling, series


def with_spikes(spikes, n=400, noise=0.02):
    values = falling(n, noise=noise)
    for index, value in spikes.items():
        values[index] = value
    return values


def test_one_point_far_above_its_level_is_found():
    (found,) = loss_spikes(series(with_spikes({150: 3.0}), step=10))
    assert (found.onset_step, found.last_step) == (1500, 1500)
    assert found.exhibits[0].marks[0].start == 1500


def test_several_spikes_are_one_diagnosis_with_their_steps():
    (found,) = loss_spikes(series(with_spikes({100: 3.0, 101: 2.5, 200: 4.0, 300: 3.0})))
    assert found.values["steps"] == (100, 200, 300)
    assert "jumped 3 times, highest from" in found.summary
    assert found.summary.endswith("to 4 at step 200; it was back by step 201.")


def test_a_slow_recovery_is_still_a_spike():
    values = falling(400, noise=0.02)
    for i in range(60):
        values[200 + i] += 3.0 * np.exp(-i / 12)
    (found,) = loss_spikes(series(values))
    assert found.onset_step == 200


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", falling(400)),
        ("noisy", falling(400, noise=0.3)),
        ("just below 30% of the progress", with_spikes({150: 0.9})),
        ("the steep start", [50.0, 20.0, 10.0, *falling(400)]),
        ("heavy-tailed noise", [v * (3 if i % 9 == 0 else 1) for i, v in enumerate(falling(400))]),
        ("a rise that stays", [*falling(200), *([5.0] * 200)]),
        ("an outlier batch at convergence", [*falling(380, start=2.3, end=0.001), 0.1, *([0.001] * 20)]),
    ],
)
def test_clear(reason, values):
    assert loss_spikes(series(values)) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="30 are needed"):
        loss_spikes(series([1.0] * 20))
