import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.worse_than_sibling import worse_than_sibling
from tests.trial_builders import grid, sweeps, trial

OTHERS = {0.2: [0.60, 0.61, 0.62, 0.63], 0.3: [0.70, 0.71, 0.72, 0.73]}


def test_a_job_far_behind_the_same_configuration():
    (found,) = worse_than_sibling(grid({0.1: [0.50, 0.51, 0.52, 0.90], **OTHERS}))
    assert found.summary.startswith(
        "lr0.1-seed3 reached val_loss 0.9, 3 others with the same hyperparameters 0.51 on average; chance explains"
    )
    assert found.confidence is Confidence.HIGH
    assert [row[0] for row in found.exhibits[0].rows] == ["lr0.1-seed3", "lr0.1-seed0", "lr0.1-seed1", "lr0.1-seed2"]


def slow(step_seconds, run_seconds=600.0):
    return sweeps(
        *(trial(f"{i}", 0.5 + i / 100, lr=0.1, seed=i, step_seconds=s, run_seconds=run_seconds) for i, s in enumerate(step_seconds))
    )


def test_a_job_much_slower_than_the_same_configuration():
    (found,) = worse_than_sibling(slow([0.1, 0.1, 0.11, 0.4]))
    assert found.summary == "3 takes 400 ms a step, 4 times as long as 3 others with the same hyperparameters."
    assert str(found.impact.text) == "8 min of 10 min."
    assert found.fixes[0] == "check-machine"


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("as the others", grid({0.1: [0.50, 0.51, 0.52, 0.53], **OTHERS})),
        ("a little behind", grid({0.1: [0.50, 0.51, 0.52, 0.56], **OTHERS})),
        ("a noisy configuration", grid({0.1: [0.50, 0.70, 0.60, 0.90], **OTHERS})),
        ("other hyperparameters", grid({0.1: [0.50, 0.51, 0.52, 0.53], 9.0: [2.0]})),
        ("better than the others", grid({0.1: [0.10, 0.51, 0.52, 0.53], **OTHERS})),
        ("slower by half", slow([0.1, 0.1, 0.11, 0.16])),
        ("slower for a few seconds", slow([0.1, 0.1, 0.11, 0.4], run_seconds=20)),
        ("all at their own pace", slow([0.1, 0.2, 0.11, 0.4])),
        ("no wall times", slow([0.0, 0.0, 0.0, 0.0])),
    ],
)
def test_clear(reason, found):
    assert worse_than_sibling(found) == []


def test_too_few_siblings():
    with pytest.raises(Missing, match="no 3 jobs that ended have the same hyperparameters"):
        worse_than_sibling(grid({0.1: [0.5, 0.9], 0.2: [0.5, 0.6]}))
