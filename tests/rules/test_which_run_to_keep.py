import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.which_run_to_keep import which_run_to_keep
from tests.trial_builders import ACCURACY, grid, sweeps, trial


def test_a_job_ahead_of_the_noise():
    noise = [trial(f"high{i}", 0.80 + i / 100, lr=1, seed=i) for i in range(3)] + [
        trial(f"low{i}", 0.9 + i / 100, lr=9, seed=i) for i in range(3)
    ]
    (found,) = which_run_to_keep(sweeps(trial("best", 0.5, step=700, lr=0.1, seed=0), *noise))
    assert found.summary == (
        "Keep best at step 700: val_loss 0.5, of 7 jobs. The runner-up is high0 with 0.8: 0.3 behind, where chance explains 0.0393."
    )
    assert found.confidence is Confidence.HIGH
    assert found.exhibits[1].run_tags[0] == ("best", "val_loss")
    assert found.exhibits[1].marks[0].start == 700


def test_a_runner_up_within_the_noise():
    (found,) = which_run_to_keep(grid({0.1: [0.5, 0.52, 0.54], 1.0: [0.7, 0.72, 0.74]}))
    assert found.summary.endswith("The runner-up is lr0.1-seed1 with 0.52: 0.02 behind, no more than chance explains (0.0786).")
    assert found.confidence is Confidence.MEDIUM


def test_the_cheapest_among_equals():
    jobs = [
        trial(f"{i}", value, lr=0.1, seed=i, seconds=seconds) for i, (value, seconds) in enumerate([(0.5, 900), (0.51, 300), (0.53, 10)])
    ]
    (found,) = which_run_to_keep(sweeps(*jobs))
    assert found.summary == (
        "Keep 1 at step 100: val_loss 0.51, of 3 jobs. 0 has 0.5, but 0.01 is no more than chance explains (0.0929), and it took longer."
    )


def test_without_seeds_the_distance_has_no_scale():
    (found,) = which_run_to_keep(grid({0.1: [0.8], 1.0: [0.9], 2.0: [0.7]}, measure=ACCURACY))
    assert found.summary == (
        "Keep lr1.0-seed0 at step 100: val_accuracy 0.9, of 3 jobs."
        " The runner-up is lr0.1-seed0 with 0.8, a distance of 0.1; how much seeds differ is not known."
    )
    assert found.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("no validation", grid({0.1: [0.5], 1.0: [0.6]}, measure=("training loss", "loss"))),
        ("one job ended", grid({0.1: [0.5], 1.0: [None]})),
        ("they still run", grid({0.1: [0.5], 1.0: [0.6]}, finished=False)),
    ],
)
def test_nothing_to_keep(reason, found):
    with pytest.raises(Missing, match="no two jobs that can be compared ended"):
        which_run_to_keep(found)
