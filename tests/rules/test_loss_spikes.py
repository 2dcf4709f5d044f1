import numpy as np
import pytest

from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.message import Missing
from tb_advisor.rules.loss_spikes import loss_spikes
from tests.builders import falling, series


def with_spikes(spikes, n=400, noise=0.02):
    values = falling(n, noise=noise)
    for index, value in spikes.items():
        values[index] = value
    return values


def noisy_then_calm():
    """A loss with 30% noise, four standard deviations of it at point 100, that is calm from point 150 on."""
    noise = 0.3 * np.random.default_rng(0).standard_normal(150)
    noise[100] = 1.2
    return [*(0.3 * (1 + noise)), *falling(400, start=0.3, end=0.01)]


def check(values, step=1, **curves):
    around = {name: (series(points, step=step, tag=name),) for name, points in curves.items()}
    return loss_spikes(series(values, step=step), Circumstances(**around))


def test_one_point_far_above_its_level_is_found():
    (found,) = check(with_spikes({150: 3.0}), step=10)
    assert (found.onset_step, found.last_step) == (1500, 1500)
    assert found.exhibits[0].marks[0].start == 1500


def test_several_spikes_are_one_diagnosis_with_their_steps():
    (found,) = check(with_spikes({100: 3.0, 101: 2.5, 200: 4.0, 300: 3.0}))
    assert found.values["steps"] == (100, 200, 300)
    assert "jumped 3 times, highest from" in found.summary
    assert found.summary.endswith("to 4 at step 200; it was back by step 201.")


def test_a_slow_recovery_is_still_a_spike():
    values = falling(400, noise=0.02)
    for i in range(60):
        values[200 + i] += 3.0 * np.exp(-i / 12)
    (found,) = check(values)
    assert found.onset_step == 200


def test_the_learning_rate_that_rose_just_before_is_named():
    (found,) = check(with_spikes({150: 3.0}), learning_rates=[1e-3] * 149 + [0.1] + [1e-3] * 250)
    assert found.summary.endswith("it was back by step 151. The learning rate had just risen from 0.001 to 0.1.")


def test_the_gradient_norm_at_the_spike_is_named():
    (found,) = check(with_spikes({150: 3.0}), gradient_norms=[0.5] * 150 + [60.0] + [0.5] * 249)
    assert found.summary.endswith("The gradient norm had risen to 60, 120 times its usual.")


def test_steady_curves_explain_nothing():
    (found,) = check(with_spikes({150: 3.0}), learning_rates=np.linspace(1e-3, 0, 400), gradient_norms=[0.5] * 400)
    assert found.summary.endswith("it was back by step 151.")


def test_spikes_after_evaluations_are_said_to_be_so():
    loss = series(with_spikes({100: 3.0, 200: 3.0, 300: 3.0}))
    (found,) = loss_spikes(loss, Circumstances(evaluations=(series([1.0] * 4, first=100, step=100)[:3],)))
    assert "right after an evaluation" not in found.summary
    (found,) = loss_spikes(loss, Circumstances(evaluations=(series([1.0] * 4, first=99, step=100),)))
    assert found.summary.endswith("Each comes right after an evaluation, where an epoch begins.")


def test_a_restart_just_before_is_named():
    (found,) = loss_spikes(series(with_spikes({150: 3.0})), Circumstances(restarts=(148,)))
    assert found.summary.endswith("The run had been restarted at step 148.")


def multiplicative():
    """The squared error of a few examples a batch: its noise grows with its level."""
    values = 0.4 * np.exp(0.57 * np.random.default_rng(3).standard_normal(2000))
    values[:100] *= np.linspace(1.2, 1, 100)
    values[1500] = 1.64
    return [*values]


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("healthy", falling(400)),
        ("noisy", falling(400, noise=0.3)),
        ("just below 30% of the progress", with_spikes({150: 0.9})),
        ("the steep start", [50.0, 20.0, 10.0, *falling(400)]),
        ("heavy-tailed noise", [v * (3 if i % 9 == 0 else 1) for i, v in enumerate(falling(400))]),
        ("noise that is larger before the loss has converged", [*noisy_then_calm()]),
        ("a rise that stays", [*falling(200), *([5.0] * 200)]),
        ("single batches at twice and half the level, and one at four times", multiplicative()),
        ("an outlier batch at convergence", [*falling(380, start=2.3, end=0.001), 0.1, *([0.001] * 20)]),
    ],
)
def test_clear(reason, values):
    assert check(values) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="30 are needed"):
        check([1.0] * 20)
