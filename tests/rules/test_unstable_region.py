import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.unstable_region import unstable_region
from tests.trial_builders import grid, sweeps, trial


def test_all_jobs_with_a_high_rate_failed():
    (found,) = unstable_region(grid({0.1: [0.5, 0.5, 0.6], 1.0: [0.6, 0.7, 0.7], 10.0: [None, None, None], 100.0: [None, None, None]}))
    assert found.summary == (
        "All 6 jobs with lr of 10 or more failed (6 NaN, 0 diverged, 0 without progress); of 6 below it 6 trained, up to lr 1."
    )
    assert found.confidence is Confidence.HIGH


def test_divergence_and_dead_networks_belong_to_the_region():
    jobs = [trial(f"{lr}", 0.5, lr=lr) for lr in (0.1, 0.2, 0.3)]
    jobs += [trial("3", 8.0, lr=3, end=9.0), trial("10", None, lr=10), trial("30", 2.0, lr=30, end=2.0)]
    (found,) = unstable_region(sweeps(*jobs))
    assert [found.values[name] for name in ("border", "nan", "diverged", "stuck")] == [3, 1, 1, 1]


def test_a_region_may_lie_below():
    (found,) = unstable_region(grid({4: [None, None], 8: [None, 0.5], 32: [0.5, 0.5], 64: [0.5, 0.5]}, "bs"))
    assert "All 2 jobs with bs of 4 or less failed" in found.summary
    assert found.confidence is Confidence.MEDIUM


def test_the_hyperparameter_that_explains_most_is_named():
    jobs = [
        trial(f"{lr} {bs} {seed}", None if lr == 1 else 0.5, lr=lr, bs=bs, seed=seed)
        for lr in (0.1, 0.3, 1)
        for bs in (32, 64)
        for seed in (0, 1)
    ]
    (found,) = unstable_region(sweeps(*jobs))
    assert (found.values["name"], found.values["border"], found.values["failed"]) == ("lr", 1, 4)


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("all trained", {0.1: [0.5, 0.5], 1.0: [0.6, 0.6]}),
        ("one seed trained", {0.1: [0.5, 0.5], 1.0: [0.6, 0.6], 10.0: [None, 0.9]}),
        ("a single failed job", {0.1: [0.5], 1.0: [0.6], 10.0: [None]}),
        ("failures everywhere", {0.1: [0.5, None], 1.0: [None, 0.6], 10.0: [None, None]}),
        ("failed in the middle", {0.1: [0.5, 0.5], 1.0: [None, None], 10.0: [0.6, 0.6]}),
    ],
)
def test_clear(reason, values):
    assert unstable_region(grid(values)) == []


def test_without_a_job_that_trained_there_is_no_border():
    assert unstable_region(sweeps(*(trial(f"{lr}", 8.0, lr=lr, end=9.0) for lr in (1, 2, 3)))) == []


def test_too_low_a_rate_is_no_instability():
    jobs = [trial(f"{lr}", 2.0, lr=lr, end=2.0) for lr in (1e-7, 1e-6)] + [trial(f"{lr}", 0.5, lr=lr) for lr in (0.1, 0.2, 0.3)]
    assert unstable_region(sweeps(*jobs)) == []


def test_words_have_no_region():
    with pytest.raises(Missing, match="no hyperparameter was tried with several numbers"):
        unstable_region(sweeps(trial("a", 0.5, optimizer="sgd"), trial("b", None, optimizer="adam")))
