import math
import time

import numpy as np
import pytest

from tb_advisor.advise import diagnose
from tb_advisor.evidence import Evidence
from tb_advisor.evidence.hparams import NAME, TEXT
from tb_advisor.evidence.sweeps import DIVERGED, ENDED, LOST, RUNNING, STUCK
from tb_advisor.logdir.jobs import find_families, load
from tb_advisor.message import Missing
from tb_advisor.rules import all_rules
from tests.builders import event_file, falling
from tests.trial_builders import ACCURACY, LOSS, finish, grid, sweeps, trial


def groups(*trials):
    return [sorted(t.job for t in sweep.trials) for sweep in sweeps(*trials)]


def test_jobs_with_the_same_hyperparameters_by_name_are_compared():
    found = groups(trial("a", 0.5, lr=0.1), trial("b", 0.6, lr=0.2), trial("c", 0.7, momentum=0.9), trial("d", 0.7, momentum=0.5))
    assert found == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    ("reason", "other"),
    [
        ("another kind of task", trial("b", 0.6, lr=0.2, task="reinforcement-learning")),
        ("another measure", trial("b", 0.6, lr=0.2, measure=("validation loss", "val_mse"))),
        ("a loss of another scale", trial("b", 60.0, lr=0.2, start=200.0, end=60.0)),
        ("another name, where the plugin does not say that they belong together", trial("b", 0.6, lr=0.2, source=NAME, rest="spirals")),
    ],
)
def test_other_tasks_are_not_compared(reason, other):
    first = trial("a", 0.5, lr=0.1, source=other.hyperparameters[0].source, rest="digits")
    with pytest.raises(Missing, match="no two of these jobs"):
        sweeps(first, other)


def test_models_of_other_vocabularies_are_not_compared():
    with pytest.raises(Missing, match="no two of these jobs"):
        sweeps(trial("a", 0.5, source=TEXT, lr=0.1, vocab_size=30), trial("b", 0.5, source=TEXT, lr=0.2, vocab_size=50))


def test_jobs_side_by_side_without_hyperparameters_are_no_sweep():
    with pytest.raises(Missing, match="the hyperparameters of 1 of 3 jobs are known"):
        sweeps(trial("a", 0.5, lr=0.1), trial("b", 0.6), trial("c", 0.7))


def test_a_job_alone_has_nothing_to_compare_with():
    with pytest.raises(Missing, match="no other job"):
        sweeps(trial("a", 0.5, lr=0.1))


def test_a_loss_that_the_hyperparameters_change_is_not_compared():
    def with_accuracy(job, smoothing):
        loss, accuracy = trial(job, 0.5, label_smoothing=smoothing), trial(job, 0.9, measure=ACCURACY)
        return type(loss)(**{**vars(loss), "bests": (*loss.bests, *accuracy.bests)})

    (sweep,) = sweeps(with_accuracy("a", 0.0), with_accuracy("b", 0.1))
    assert sweep.measure == ACCURACY
    with pytest.raises(Missing):
        sweeps(trial("a", 0.5, label_smoothing=0), trial("b", 0.5, label_smoothing=0.1))


def test_what_varies():
    (sweep,) = sweeps(trial("a", 0.5, bs=32, lr=0.1, seed=1, depth=2), trial("b", 0.6, bs=64, lr=0.2, seed=2, depth=2))
    assert (sweep.varying, sweep.tuned) == (("lr", "bs", "seed"), ("lr", "bs"))
    columns, rows = sweep.table(sweep.ranked)
    assert columns == ("job", "lr", "bs", "seed", "val_loss", "step", "status")
    assert rows == (("a", 0.1, 32, 1, 0.5, 100, ENDED), ("b", 0.2, 64, 2, 0.6, 100, ENDED))


def test_how_jobs_ended():
    jobs = {
        LOST: trial("lost", None, lr=1),
        DIVERGED: trial("diverged", 1.5, lr=2, end=9.0),
        STUCK: trial("stuck", 2.0, lr=3, end=2.0),
        RUNNING: trial("running", 0.9, lr=4, finished=False),
        ENDED: trial("ended", 0.5, lr=5),
    }
    (sweep,) = sweeps(*jobs.values())
    assert {t.job: sweep.status(t) for t in jobs.values()} == {t.job: status for status, t in jobs.items()}
    assert [math.isinf(sweep.cost(jobs[status])) for status in (LOST, DIVERGED, STUCK, RUNNING, ENDED)] == [True, True, True, False, False]


def test_noise_is_pooled_over_the_better_half_of_what_was_repeated():
    (sweep,) = grid({0.1: [0.50, 0.52, 0.54], 0.2: [0.60, 0.62, 0.64], 0.3: [1.0, 2.0, 3.0]})
    assert (sweep.noise.deviation, sweep.noise.freedom, sweep.noise.jobs, sweep.noise.by_seed) == (pytest.approx(0.02), 4, 6, True)
    assert sweep.noise.least_difference() == pytest.approx(2.78 * math.sqrt(2) * 0.02)
    assert sweep.noise.least_difference(3, 3) == pytest.approx(2.78 * math.sqrt(2 / 3) * 0.02)


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("one job a configuration", {0.1: [0.5], 0.2: [0.6]}),
        ("two jobs of one", {0.1: [0.5, 0.6], 0.2: [0.6]}),
        ("the others failed", {0.1: [0.5, None, None], 0.2: [0.6]}),
        ("copies of one job", {0.1: [0.5, 0.5, 0.5], 0.2: [0.6, 0.6, 0.6]}),
    ],
)
def test_noise_is_not_known(reason, values):
    (sweep,) = grid(values)
    assert sweep.noise is None


def test_jobs_with_other_words_in_their_names_are_other_configurations():
    trials = [trial(f"{rest}{i}", 0.5 + i / 100, lr=0.1, units=8, rest=rest) for rest in ("resnet", "densenet") for i in range(2)]
    (sweep,) = sweeps(*trials)
    assert [len(group) for group in sweep.configurations] == [2, 2]


def write_sweep(root, rates=(0.1, 0.01), seeds=(0, 1), name="sweep/lr{rate}/seed{seed}", lower=0.0):
    for rate in rates:
        for seed in seeds:
            curve = falling(20, end=lower + rate, noise=0.01, seed=seed)
            event_file(root / name.format(rate=rate, seed=seed), {"train_loss": curve, "val_loss": curve})


@pytest.mark.parametrize("name", ["sweep/lr{rate}/seed{seed}", "sweep/lr={rate}/runs/seed{seed}", "sweep/seed_{seed}/version_0/lr{rate}"])
def test_settings_in_nested_directories_are_one_family(tmp_path, name):
    write_sweep(tmp_path, name=name)
    (family,) = find_families(load(tmp_path).jobs)
    assert (family.name, len(family.jobs)) == ("sweep", 4)
    (sweep,) = Evidence(trials=tuple(Evidence(job)["trial"] for job in family.jobs))["sweeps"]
    assert sweep.varying == ("lr", "seed")
    assert sweep.measure == LOSS


def test_a_job_in_a_line(tmp_path):
    event_file(
        tmp_path / "lr0.1", {"train_loss": [4.0, 3.0, 2.0, 1.0], "val_loss": [4.0, 2.5, 3.0, 3.5], "val_accuracy": [0.125, 0.25, 0.75, 0.5]}
    )
    (job,) = load(tmp_path).jobs
    found = Evidence(job)["trial"]
    assert [(best.measure, best.value, best.step, best.seconds) for best in found.bests] == [
        (LOSS, 2.5, 1, 1.0),
        (ACCURACY, 0.75, 2, 2.0),
        (("training loss", "train_loss"), 1.0, 3, 3.0),
    ]
    assert (found.start, found.end, found.is_lost, found.last_step, found.seconds) == (4.0, 2.0, False, 3, 3.0)


def test_a_job_of_nothing(tmp_path):
    event_file(tmp_path, {"loss": [math.nan]})
    (job,) = load(tmp_path).jobs
    found = Evidence(job)["trial"]
    assert (found.bests, found.start, found.is_lost) == ((), None, True)


def test_unrelated_jobs_say_nothing(tmp_path):
    """Tasks side by side, as in a folder of logs: other losses, other scales, the same tags."""
    for name, start in (("digits-mlp", 2.3), ("spirals-mlp", 0.7), ("sine", 40.0), ("bert-cls", 1.1), ("resnet50", 4.6)):
        curve = falling(30, start=start, end=start / 10)
        event_file(tmp_path / name, {"train_loss": curve, "val_loss": curve})
    finish(tmp_path)
    report = diagnose(tmp_path, rules=[rule for rule in all_rules() if rule.of_family])
    assert report.diagnoses == ()
    assert {str(outcome.reason)[:45] for outcome in report.outcomes} == {"the hyperparameters of 0 of 5 jobs are known,"}


def test_tasks_side_by_side_with_their_learning_rate_in_the_name_say_nothing(tmp_path):
    for task, end in (("digits", 0.1), ("spirals", 0.3), ("sine", 0.01)):
        event_file(tmp_path / f"{task}_lr0.1", {"train_loss": falling(30), "val_loss": falling(30, end=end)})
    finish(tmp_path)
    report = diagnose(tmp_path, rules=[rule for rule in all_rules() if rule.of_family])
    assert report.diagnoses == ()


def test_rules_over_sweeps_need_no_points_in_memory(tmp_path):
    write_sweep(tmp_path, seeds=(0, 1, 2))
    finish(tmp_path)
    rules = [rule for rule in all_rules() if rule.of_family]
    whole = diagnose(tmp_path, rules=rules)
    assert {outcome.rule for outcome, _ in whole.diagnoses} == {"seed-noise", "which-run-to-keep"}
    assert diagnose(tmp_path, rules=rules, memory_bytes=10).outcomes == whole.outcomes


def test_five_hundred_jobs_are_compared_in_little_time():
    generator = np.random.default_rng(0)
    trials = tuple(
        trial(f"{i}", None if rate == 1 else float(generator.normal(1 + rate, 0.01)), lr=rate, wd=i // 25, seed=i % 5)
        for i in range(500)
        for rate in [10.0 ** -(i // 5 % 5)]
    )
    began = time.process_time()
    evidence = Evidence(trials=trials)
    for rule in all_rules():
        if rule.of_family:
            rule(evidence["sweeps"])
    assert time.process_time() - began < 3
