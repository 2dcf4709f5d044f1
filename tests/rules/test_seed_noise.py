import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.seed_noise import seed_noise
from tests.trial_builders import grid, sweeps, trial


def test_jobs_that_differ_only_by_seed():
    (found,) = seed_noise(grid({0.1: [0.50, 0.52, 0.54], 0.2: [0.60, 0.62, 0.64], 0.3: [0.9, 1.1, 1.3]}))
    assert found.summary == (
        "val_loss of 6 jobs that differ only by seed varies by 0.02 (standard deviation; 0.5 to 0.54 in 3):"
        " a difference below 0.0786 between two jobs means nothing. The best of 3 configurations is ahead by more than that."
    )
    assert found.confidence is Confidence.HIGH


def test_configurations_that_cannot_be_told_apart_are_counted():
    (found,) = seed_noise(grid({0.1: [0.50, 0.52, 0.54], 0.2: [0.51, 0.53, 0.55], 0.3: [0.9, 1.1, 1.3]}))
    assert found.summary.endswith("Of 3 configurations, 1 cannot be told from the best one.")


def test_three_jobs_run_again_are_enough():
    (found,) = seed_noise(sweeps(*(trial(f"run{i}", 0.5 + i / 100, lr=0.1) for i in range(3))))
    assert found.summary.startswith("val_loss of 3 jobs with the same hyperparameters varies by 0.01")
    assert found.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("two jobs only", {0.1: [0.5, 0.6], 0.2: [0.7]}),
        ("no configuration twice", {0.1: [0.5], 0.2: [0.6], 0.3: [0.7]}),
        ("the same value each time", {0.1: [0.5, 0.5, 0.5], 0.2: [0.5, 0.5, 0.5]}),
        ("failed jobs", {0.1: [0.5, None, None], 0.2: [None, 0.7, None]}),
    ],
)
def test_the_effect_of_chance_is_not_known(reason, values):
    with pytest.raises(Missing, match="no three jobs differ only by their seed"):
        seed_noise(grid(values))


def test_other_words_in_the_name_are_no_seed():
    with pytest.raises(Missing):
        seed_noise(sweeps(*(trial(rest, 0.5 + i / 10, lr=0.1, rest=rest) for i, rest in enumerate(("resnet", "vgg", "mlp")))))
