import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.message import Missing
from tb_advisor.rules.search_space_edge import search_space_edge
from tests.trial_builders import ACCURACY, grid, sweeps, trial


def test_the_highest_rate_is_best():
    (found,) = search_space_edge(grid({0.01: [0.9, 0.92, 0.91], 0.1: [0.7, 0.72, 0.71], 1.0: [0.5, 0.52, 0.51]}))
    assert found.summary == (
        "The best val_loss, 0.51, is at the highest lr that was tried, 1 (lr1.0-seed0); at 0.1 it is 0.71."
        " Chance explains a difference of 0.0227."
    )
    assert found.confidence is Confidence.HIGH
    assert [row[0] for row in found.exhibits[0].rows] == ["lr0.01-seed0", "lr0.1-seed0", "lr1.0-seed0"]


def test_the_lowest_rate_is_best_by_an_accuracy():
    (found,) = search_space_edge(grid({0.01: [0.9, 0.92, 0.91], 0.1: [0.8, 0.82, 0.81], 1.0: [0.6, 0.62, 0.61]}, measure=ACCURACY))
    assert found.summary.startswith("The best val_accuracy, 0.91, is at the lowest lr that was tried, 0.01")


def test_a_difference_near_the_noise_is_less_certain():
    (found,) = search_space_edge(grid({0.01: [0.9, 0.92, 0.94], 0.1: [0.7, 0.72, 0.74], 1.0: [0.64, 0.66, 0.68]}))
    assert found.confidence is Confidence.MEDIUM


def test_without_seeds_a_steady_trend_is_found_with_low_confidence():
    (found,) = search_space_edge(grid({0.01: [0.9], 0.1: [0.7], 1.0: [0.5]}))
    assert found.confidence is Confidence.LOW


def test_the_only_rate_that_trained():
    (found,) = search_space_edge(grid({0.1: [0.5], 1.0: [None], 10.0: [None]}))
    assert found.summary.startswith("Only the lowest lr that was tried, 0.1, trained at all")


def test_the_best_of_the_other_hyperparameters_counts():
    trials = [
        trial(f"{lr} {bs} {seed}", 2 - lr + abs(bs - 64) / 64 + seed / 100, lr=lr, bs=bs, seed=seed)
        for lr in (0.1, 0.2, 0.3)
        for bs in (32, 64, 128)
        for seed in (0, 1, 2)
    ]
    (found,) = search_space_edge(sweeps(*trials))
    assert (found.values["name"], found.values["value"], found.values["job"]) == ("lr", 0.3, "0.3 64 0")


@pytest.mark.parametrize(
    ("reason", "values", "name"),
    [
        ("the best lies inside", {0.01: [0.9, 0.92, 0.91], 0.1: [0.5, 0.52, 0.51], 1.0: [0.7, 0.72, 0.71]}, "lr"),
        ("no more than noise", {0.01: [0.9, 0.92, 0.94], 0.1: [0.70, 0.72, 0.74], 1.0: [0.69, 0.71, 0.73]}, "lr"),
        ("beyond it training fails", {0.01: [0.9, 0.92, 0.91], 0.1: [0.5, 0.52, 0.51], 1.0: [None, None, None]}, "lr"),
        ("nothing lies below zero", {0.0: [0.5, 0.52, 0.51], 0.1: [0.7, 0.72, 0.71], 0.3: [0.9, 0.92, 0.91]}, "dropout"),
        ("nor below one layer", {1: [0.5, 0.52, 0.51], 2: [0.7, 0.72, 0.71], 3: [0.9, 0.92, 0.91]}, "layers"),
        ("a plateau without seeds", {0.01: [0.9], 0.1: [0.51], 1.0: [0.5]}, "lr"),
        ("a zig-zag without seeds", {0.01: [0.6], 0.1: [0.9], 1.0: [0.5]}, "lr"),
    ],
)
def test_clear(reason, values, name):
    assert search_space_edge(grid(values, name)) == []


def test_jitter_of_the_curves_counts_where_seeds_do_not_tell():
    values = {0.01: [0.9], 0.1: [0.7], 1.0: [0.5]}
    assert search_space_edge(grid(values, jitter=0.05))
    assert search_space_edge(grid(values, jitter=0.15)) == []


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("two values", grid({0.1: [0.9, 0.91], 1.0: [0.5, 0.51]})),
        ("words", sweeps(*(trial(word, 0.5, optimizer=word) for word in ("sgd", "adam", "lion")))),
        ("a budget", grid({10: [0.9], 20: [0.8], 40: [0.7]}, "epochs")),
        ("a random search", sweeps(*(trial(f"{i}", 1 - i / 10, lr=i / 100, wd=(7 * i) % 5 / 10 + i / 1000) for i in range(1, 6)))),
    ],
)
def test_nothing_to_judge(reason, found):
    with pytest.raises(Missing, match="no hyperparameter was tried with 3 numbers"):
        search_space_edge(found)
