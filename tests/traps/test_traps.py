"""What public event files do that looks like a fault and is none, or that readers stumble over: a test each.

The shapes and numbers are those of real logs; names of projects are in the comments.
"""

import math
import random
import shutil

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto

from tb_advisor import diagnose, load
from tb_advisor.diagnosis import Status
from tb_advisor.evidence import Evidence
from tests.builders import FIRST_SECOND, event_file, falling, scalar_event, tensor_event, write_events

NAN = math.nan


def said(logdir):
    """The rules whose findings default views show. No rule may fail."""
    report = diagnose(logdir, workers=1)
    assert [(o.rule, o.job, str(o.reason)) for o in report.outcomes if o.status is Status.ERROR] == []
    return {o.rule for o, d in report.diagnoses if d.shown}


def found(logdir, rule):
    """Every diagnosis of a rule, also those that are not shown."""
    return [d for o, d in diagnose(logdir, workers=1).diagnoses if o.rule == rule]


def rising(n, start, end, noise=0.02, seed=1):
    """A curve that goes from `start` to `end`, with noise in shares of the way."""
    generator = random.Random(seed)
    return [start + (end - start) * (i / (n - 1) + noise * generator.gauss(0, 1)) for i in range(n)]


def noisy(n, level, share=0.05, seed=2):
    generator = random.Random(seed)
    return [level * (1 + share * generator.gauss(0, 1)) for _ in range(n)]


OVERFITTING = {"loss": falling(40, end=0.1), "val_loss": [*falling(20), *(0.52 + 0.02 * i for i in range(20))]}
WITH_NAN = [*falling(40), *[NAN] * 10]


def test_01_a_metric_that_is_nan_or_minus_1_is_not_applicable(tmp_path):
    """detectron2 without objects of a size; COCO in the Object Detection API."""
    metrics = {"bbox/APs": [NAN] * 20, "bbox/AP": rising(20, 0.1, 0.4), "DetectionBoxes_Precision/mAP (small)": [-1.0] * 20}
    event_file(tmp_path / "run", {"total_loss": falling(20, noise=0.01), **metrics})
    assert said(tmp_path) == set()
    event_file(tmp_path / "broken", {"total_loss": [*falling(20), *[NAN] * 9]})
    assert said(tmp_path) == {"non-finite-loss"}


def test_02_explained_variance_that_is_nan_or_huge_at_first(tmp_path):
    """Stable-Baselines3 where the returns do not vary (CursedSeraphim)."""
    reward = rising(600, 1.0, 200.0)
    curves = {"rollout/ep_rew_mean": reward, "train/value_loss": noisy(600, 1.0), "train/loss": noisy(600, 0.5)}
    event_file(tmp_path / "nan", {**curves, "train/explained_variance": [*[NAN] * 511, *rising(89, 0.1, 0.9)]})
    event_file(tmp_path / "huge", {**curves, "train/explained_variance": [-3.6e9, -1.4e6, *rising(598, 0.1, 0.9)]})
    assert said(tmp_path) == set()


def test_03_a_gradient_norm_that_is_nan_in_the_first_step_of_mixed_precision(tmp_path):
    """VITS (Jiawch): the loss scaler lowers its scale and the step is left out."""
    norms = [NAN, *noisy(99, 5.0)]
    event_file(tmp_path / "g", {"loss": falling(100, noise=0.01), "grad_norm": norms})
    event_file(tmp_path / "gan", {"loss/g/total": noisy(100, 40.0), "loss/d/total": noisy(100, 2.5), "grad_norm_g": norms})
    assert said(tmp_path) == set()


@pytest.mark.parametrize("tag", ["value_loss", "train/critic_loss", "train/loss", "train/actor_loss"])
def test_04_losses_of_reinforcement_learning_that_rise_while_the_return_improves(tmp_path, tag):
    """Super-Mario: value loss 11 → 9294; DavidSeyser: actor loss 0 → 12."""
    event_file(tmp_path, {tag: rising(300, 11, 9294), "rollout/ep_rew_mean": rising(300, 5.0, 800.0)})
    assert said(tmp_path) == set()
    event_file(tmp_path / "supervised", {"train/loss": [*falling(150), *rising(150, 0.5, 90.0)], "train/accuracy": rising(300, 0.1, 0.8)})
    assert "loss-divergence" in said(tmp_path / "supervised")


@pytest.mark.parametrize(
    "curves",
    [
        {"generator_loss": rising(200, 0.5, -9.7), "critic_loss": rising(200, -8.0, -1.0)},
        {"loss": rising(200, -0.114, 0.0, 0.3), "val_contrastive_divergence": rising(200, -0.1, 0.1, 0.5)},
        {"train/entropy_loss": rising(200, -1.4, -0.3), "rollout/ep_rew_mean": rising(200, 5.0, 190.0)},
        {"train/policy_gradient_loss": noisy(200, -0.002, 2.0), "rollout/ep_rew_mean": rising(200, 5.0, 190.0)},
        {"train/ent_coef_loss": rising(200, -31.0, 0.1), "rollout/ep_rew_mean": rising(200, 5.0, 190.0)},
    ],
    ids=["wasserstein", "contrastive-divergence", "entropy", "policy-gradient", "entropy-coefficient"],
)
def test_05_losses_below_zero_that_drift(tmp_path, curves):
    event_file(tmp_path, curves)
    assert said(tmp_path) == set()


@pytest.mark.parametrize(
    "tag", ["val/box_loss", "val/loss", "train/cls_loss", "train/accuracy", "val/accuracy", "TrainEpochStats/avg_grad_norm"]
)
def test_06_a_tag_that_is_zero_all_the_time_was_never_measured(tmp_path, tag):
    """YOLOv9 validation losses, the class loss of a single class, the accuracy of a regression, Coqui's gradient norm."""
    event_file(tmp_path, {"train/box_loss": falling(60, noise=0.01), "train/loss": falling(60, 4.0, 1.0, noise=0.02), tag: [0.0] * 60})
    assert said(tmp_path) == set()


def test_07_placeholders_that_never_change(tmp_path):
    event_file(tmp_path / "dqn", {"Average reward": [1.0] * 100, "loss": noisy(100, 0.3), "rollout/ep_len_mean": [1.0] * 100})
    event_file(tmp_path / "lightning", {"hp_metric": [-1.0] * 30, "train_loss": falling(30), "val_loss": falling(30, end=0.6)})
    assert said(tmp_path) == set()


def test_08_a_rank_that_is_called_an_accuracy_falls_as_the_model_gets_better(tmp_path):
    """phlippe's SimCLR: acc_mean_pos 22.9 → 1.6."""
    ranks = rising(100, 22.9, 1.6)
    event_file(
        tmp_path,
        {"train/loss": falling(100), "val/loss": falling(100, end=0.55), "val/acc_mean_pos": ranks, "val/acc": rising(100, 0.2, 0.8)},
    )
    assert said(tmp_path) == set()
    (job,) = load(tmp_path).jobs
    assert {a.series.tag: a.higher_is_better for a in Evidence(job)["roles"].of("metric")} == {"val/acc": True, "val/acc_mean_pos": False}


def test_09_losses_that_are_sums_over_different_batches(tmp_path):
    """An Estimator's loss is the sum over the batch, which is another one in evaluation."""
    event_file(tmp_path / "regressor", {"loss": falling(40, 3.0e6, 1.3e6, noise=2e4)})
    event_file(tmp_path / "regressor" / "eval", {"loss": falling(8, 3.6e7, 1.53e7)}, steps=range(0, 40, 5))
    event_file(tmp_path / "classifier", {"loss": falling(40, 120.0, 20.0, noise=1.0), "average_loss": falling(40, 1.2, 0.2, noise=0.01)})
    event_file(
        tmp_path / "classifier" / "eval", {"loss": falling(8, 12.0, 2.2), "average_loss": falling(8, 1.2, 0.22)}, steps=range(0, 40, 5)
    )
    assert said(tmp_path) == set()


def test_10_running_means_that_start_again_in_each_epoch(tmp_path):
    """Keras batch_loss: ten saw teeth; a loop that gives every batch the number of its epoch as step (jonahschlie)."""
    epochs = falling(10, 2.0, 0.3)
    teeth = [level + 0.4 * level / (1 + batch / 20) for level in epochs for batch in range(150)]
    event_file(tmp_path / "keras" / "train", {"batch_loss": teeth})
    event_file(tmp_path / "keras" / "validation", {"evaluation_loss_vs_iterations": falling(10, 2.0, 0.35)}, steps=range(150, 1501, 150))
    event_file(tmp_path / "epochs", {"train_loss": teeth}, steps=[epoch for epoch in range(10) for _ in range(150)])
    assert said(tmp_path) == set()


def test_11_an_environment_that_changes_by_design(tmp_path):
    """The reward changes its sign in mid-training and the agent learns again (CursedSeraphim)."""
    reward = [*rising(100, 0.0, 2200.0), *rising(20, 2200.0, -2000.0), *rising(180, -2000.0, 1900.0)]
    event_file(tmp_path, {"rollout/ep_rew_mean": reward, "train/loss": noisy(300, 0.5, 0.3), "train/value_loss": noisy(300, 30.0, 0.3)})
    assert said(tmp_path) == set()


def test_12_a_long_plateau_before_learning_begins(tmp_path):
    """hereismari: at ln 10 for a third of the run, then it learns."""
    steps = range(0, 10000, 100)
    loss = [*noisy(30, math.log(10), 0.001), *falling(70, 2.3, 1.49, noise=0.01)]
    event_file(tmp_path, {"OptimizeLoss/loss": loss}, steps=steps)
    event_file(tmp_path / "eval", {"accuracy": [*noisy(6, 0.1), *rising(14, 0.3, 0.977, 0.01)]}, steps=range(0, 10000, 500))
    assert said(tmp_path) == set()
    event_file(tmp_path / "never", {"OptimizeLoss/loss": noisy(100, math.log(10), 0.001)}, steps=steps)
    assert "loss-not-decreasing" in said(tmp_path / "never")


def test_13_a_high_floor_of_the_loss_at_a_high_accuracy(tmp_path):
    """Softmax applied twice: the loss cannot fall below 1.46."""
    curves = {"loss": falling(60, 2.3, 1.47, noise=0.003), "val_loss": falling(60, 2.3, 1.49, noise=0.003)}
    event_file(tmp_path, {**curves, "acc": rising(60, 0.2, 0.97, 0.01), "val_acc": rising(60, 0.2, 0.96, 0.01)})
    assert said(tmp_path) == set()


def test_14_validation_loss_that_rises_while_the_accuracy_still_creeps_up_is_overfitting(tmp_path):
    """phlippe's ViT: +58%; the model gets more sure of its mistakes, not worse at ranking classes."""
    val_loss = [*falling(30, 1.9, 0.784), *rising(150, 0.784, 1.24, 0.01)]
    val_acc = [*rising(30, 0.3, 0.74, 0.01), *rising(150, 0.74, 0.775, 0.05)]
    event_file(tmp_path, {"train_loss": falling(180, 1.9, 0.007), "val_loss": val_loss, "val_acc": val_acc})
    assert "overfitting" in said(tmp_path)


@pytest.mark.parametrize("height", [80.0, 6.6e4])
def test_15_an_epoch_mean_that_jumps_in_the_second_epoch(tmp_path, height):
    """N-BEATS in Lightning: 9 → 80 → normal."""
    event_file(tmp_path, {"train_loss_epoch": [9.0, height, *falling(98, 8.0, 3.0, noise=0.05)], "val_loss": falling(100, 9.0, 3.2)})
    assert said(tmp_path) == set()


def test_16_runs_that_are_copies_of_each_other(tmp_path):
    first = event_file(tmp_path / "version_0", OVERFITTING)
    for version in ("version_8", "version_16"):
        shutil.copytree(first.parent, tmp_path / version)
    report = diagnose(tmp_path)
    texts = {job.name: [d.summary for o, d in report.diagnoses if o.job == job.name] for job in report.jobs}
    assert texts.keys() == {"version_0", "version_8", "version_16"}
    assert texts["version_0"] == texts["version_8"] == texts["version_16"] != []


def test_17_files_beside_the_events_that_are_none(tmp_path):
    """Unity's events.out.tfevents….meta are YAML."""
    path = event_file(tmp_path, {"loss": WITH_NAN})
    path.with_name(path.name + ".meta").write_text("fileFormatVersion: 2\nguid: 4f3b\nDefaultImporter:\n  externalObjects: {}\n" * 2)
    assert said(tmp_path) == {"non-finite-loss"}
    (note,) = diagnose(tmp_path).notes
    assert "is not an event file" in str(note.text)


@pytest.mark.parametrize(
    "name",
    [
        "events.out.tfevents",
        "events.out.tfevents.ResNet",
        "000000000000_worker_0.tfevents",
        "events.out.tfevents.1584267895.host.v2",
        "events.out.tfevents.1584267895.host.19536.10843.v2",
        "events.out.tfevents.1584267895.host.42.0",
        "events.out.tfevents.host",
    ],
)
def test_18_names_of_event_files(tmp_path, name):
    event_file(tmp_path, {"loss": WITH_NAN}).rename(tmp_path / name)
    assert said(tmp_path) == {"non-finite-loss"}


def test_19_no_version_at_the_beginning(tmp_path):
    """CatBoost."""
    for directory, values in (("learn", falling(40)), ("test", [*falling(20), *(0.52 + 0.03 * i for i in range(20))])):
        write_events(tmp_path / directory, [scalar_event("Logloss", i, value, FIRST_SECOND + i) for i, value in enumerate(values)], "")
    assert said(tmp_path) == {"overfitting"}


def test_20_files_that_hold_a_header_alone(tmp_path):
    for index in range(5):
        write_events(tmp_path / "empty", [Event(wall_time=FIRST_SECOND + index, file_version="brain.Event:2")], f"{index}.host")
        write_events(tmp_path / "run", [Event(wall_time=FIRST_SECOND + index, file_version="brain.Event:2")], f"{index}.host")
    event_file(tmp_path / "run", {"loss": WITH_NAN})
    report = diagnose(tmp_path)
    assert {o.job for o, d in report.diagnoses if d.shown} == {"run"}
    assert [(job.name, job.points) for job in report.jobs] == [("empty", 0), ("run", 50)]
    assert report.notes == ()


@pytest.mark.parametrize(
    ("damage", "points"),
    [
        (lambda data: b"", 0),
        (lambda data: data[: data.rindex(b"loss") - 24], 49),
        (lambda data: data[: len(data) // 2], 24),
        (lambda data: data[:-4] + bytes(byte ^ 255 for byte in data[-4:]), 49),
    ],
    ids=["zero-bytes", "length-without-payload", "cut-inside-a-record", "bad-checksum"],
)
def test_21_damaged_files_are_read_as_far_as_they_go(tmp_path, damage, points):
    whole = event_file(tmp_path / "whole", {"loss": falling(50)}).read_bytes()
    path = event_file(tmp_path / "logs", {"loss": falling(50)})
    path.write_bytes(damage(whole))
    report = diagnose(tmp_path / "logs")
    assert sum(job.points for job in report.jobs) == pytest.approx(points, abs=1)
    assert said(tmp_path / "logs") <= {"damaged-event-file"}


@pytest.mark.parametrize(
    "trainings",
    [
        [(falling(100, noise=0.01, seed=seed), range(100)) for seed in range(3)],
        [(falling(100, noise=0.01), range(49, 5049, 50)), (falling(30, noise=0.01), range(49, 1549, 50))],  # bhecker, version_6
        [(falling(100, 1.9, 1.19), range(100)), (falling(40, 1.59, 1.15), range(92, 132))],  # Kirschberg: 8 epochs back, recovers
    ],
    ids=["from-scratch", "second-shorter", "resumed-from-a-checkpoint"],
)
@pytest.mark.parametrize("in_one_file", [True, False])
def test_22_several_trainings_in_one_directory(tmp_path, trainings, in_one_file):
    """The last one is judged; where it begins is no jump of the loss."""
    events, now = [], FIRST_SECOND
    for values, steps in trainings:
        points = enumerate(zip(steps, values, strict=True))
        events.append([scalar_event("loss", step, value, now + i) for i, (step, value) in points])
        now += len(values) + 30
    if in_one_file:
        events = [[event for each in events for event in each]]
    for index, each in enumerate(events):
        write_events(tmp_path, each, f"{index}.host")
    assert said(tmp_path) <= {"restart-overlap"}


def test_23_what_a_restart_did_again_is_kept_but_not_judged(tmp_path):
    """Files of PyTorch have no SessionLog.START, so that TensorBoard shows both branches."""
    event_file(tmp_path, {"loss": [*falling(50), *[NAN] * 10, *falling(60, 0.6, 0.3)]}, steps=[*range(60), *range(40, 100)])
    (job,) = load(tmp_path).jobs
    (loss,) = job.scalars
    assert (len(loss), len(loss.segments), len(loss.surviving)) == (120, 2, 100)
    assert said(tmp_path) <= {"restart-overlap"}


def test_24_resumed_runs_begin_at_a_large_step_and_have_gaps(tmp_path):
    """SoccerPPO begins at 5.65 million and jumps from 3 to 7 million."""
    event_file(tmp_path / "late", {"loss": noisy(50, 0.4, 0.02)}, steps=range(5_650_000, 5_700_000, 1000))
    gap = [*range(0, 3_000_000, 60_000), *range(7_000_000, 10_000_000, 60_000)]
    event_file(tmp_path / "gap", {"loss": falling(100, noise=0.01), "val_loss": falling(100, end=0.55)}, steps=gap)
    assert said(tmp_path) == set()


@pytest.mark.parametrize(("first", "step"), [(0, 1), (1, 1), (49, 50), (2048, 2048), (50_000, 50_000), (313, 313)])
def test_25_whatever_a_step_counts_the_verdict_is_the_same(tmp_path, first, step):
    steps = [first + step * i for i in range(40)]
    event_file(tmp_path, OVERFITTING, steps=steps)
    assert said(tmp_path) == {"overfitting"}
    (diagnosis,) = found(tmp_path, "overfitting")
    assert diagnosis.onset_step == first + 19 * step


def test_26_values_that_are_logged_again_at_the_same_step(tmp_path):
    """Ultralytics logs the best model's metrics once more, Lightning the epoch twice and the learning rate four times a step."""
    events = []
    for i, (train, val, accuracy) in enumerate(zip(falling(200), falling(200, end=0.55), rising(200, 0.1, 0.6), strict=True)):
        events += [scalar_event(tag, i, value, FIRST_SECOND + i) for tag, value in (("train/loss", train), ("val/loss", val))]
        events += [scalar_event("epoch", i, i // 2, FIRST_SECOND + i)] * 2 + [scalar_event("lr-Adam", i, 1e-3, FIRST_SECOND + i)] * 4
        events += [scalar_event("metrics/mAP50(B)", i, accuracy, FIRST_SECOND + i)] * (2 if i == 199 else 1)
    write_events(tmp_path, events)
    assert said(tmp_path) == set()
    assert all(len(series.segments) == 1 for series in load(tmp_path).jobs[0].scalars)


def test_27_evaluations_at_one_single_step(tmp_path):
    """damiano00: one to three values, all at the last step."""
    event_file(tmp_path, {"loss": falling(60, noise=0.01)}, steps=range(0, 3000, 50))
    event_file(tmp_path / "eval", {"loss": [0.9, 0.95, 1.3], "accuracy": [0.6, 0.6, 0.5]}, steps=[3000] * 3)
    assert said(tmp_path) == set()


@pytest.mark.parametrize("form", ["simple_value", "tensor", "tensor without metadata after the first"])
def test_28_scalars_of_every_kind(tmp_path, form):
    """PyTorch, TensorFlow 1 and CatBoost write simple_value without metadata, TensorFlow 2 tensors with metadata at first."""
    events = [Event(wall_time=FIRST_SECOND, file_version="brain.Event:2")]
    for i, value in enumerate(WITH_NAN):
        event = scalar_event("epoch_loss", i, value, FIRST_SECOND + i)
        if form != "simple_value":
            proto = TensorProto(dtype=1, tensor_content=np.float32(value).tobytes(), tensor_shape={})
            event = tensor_event("epoch_loss", i, proto)
            if i and form != "tensor":
                event.summary.value[0].ClearField("metadata")
        events.append(event)
    write_events(tmp_path / "train", events)
    assert said(tmp_path) == {"non-finite-loss"}


@pytest.mark.parametrize(
    ("run", "tag"),
    [
        (".", "3. TimeGAN training - GAN/1. Unsupervised loss"),
        (".", "loss (small), @.50:0.95"),
        ("logs/12M, Large Batch_1", "train/loss"),
        ("buffer_size=1000/seed_1", "train/loss"),
        ("results/oro_en_paño2/FPSBot", "Losses/Value Loss"),
    ],
)
def test_29_names_with_signs_and_other_letters(tmp_path, run, tag):
    event_file(tmp_path / run, {tag: WITH_NAN, "rollout/exploration rate": falling(50), "metrics/mAP_0.5:0.95": rising(50, 0.1, 0.4)})
    report = diagnose(tmp_path)
    assert [(o.job, o.rule, f"({tag})" in d.summary) for o, d in report.diagnoses if d.shown] == [(run, "non-finite-loss", True)]


def test_30_a_new_tag_in_each_epoch(tmp_path):
    """Kirschberg writes a text "Epoch N" each time: 334 tags, none of them a scalar."""
    events = [text_event(f"Epoch {i}", i) for i in range(334)]
    write_events(tmp_path, [*events, *(scalar_event("loss", i, value, FIRST_SECOND + i) for i, value in enumerate(falling(334)))])
    assert said(tmp_path) == set()
    (job,) = diagnose(tmp_path).jobs
    assert (job.tags, list(job.roles)) == (1, ["training_loss"])


def test_31_hyper_parameters_as_text_tell_the_writer_and_are_no_curve(tmp_path):
    write_events(tmp_path, [text_event("args/text_summary", 0), text_event("model_config/text_summary", 0)], "1.host.1")
    event_file(tmp_path, {"train/loss": falling(40), "eval/loss": falling(40, end=0.6)})
    (job,) = diagnose(tmp_path).jobs
    assert (job.writer, job.tags, said(tmp_path)) == ("huggingface", 2, set())


def test_32_one_metric_point_beside_many_losses(tmp_path):
    """The hparams demo logs the accuracy once, at step 1."""
    event_file(tmp_path / "run", {"batch_loss": falling(3000, noise=0.02)})
    event_file(tmp_path / "run", {"accuracy": [0.83]}, steps=[1], name="1700000001.host")
    assert said(tmp_path) == set()


def test_33_two_names_for_one_series_are_one_finding(tmp_path):
    loss, val_loss = OVERFITTING.values()
    event_file(tmp_path / "lightning", {"train_loss": loss, "valid_loss": val_loss, "ptl/val_loss": val_loss})
    event_file(tmp_path / "estimator", {"loss": loss, "loss_1": loss, "average_loss": loss})
    event_file(tmp_path / "estimator" / "eval", {"loss": val_loss, "average_loss": val_loss})
    for job in ("lightning", "estimator"):
        assert len(found(tmp_path / job, "overfitting")) == 1


def test_34_lightning_runs_that_hold_a_placeholder_alone(tmp_path):
    """27 runs with hp_metric = -1 and hyper-parameters: too short to say anything, and no failure."""
    event_file(tmp_path, {"hp_metric": [-1.0]})
    report = diagnose(tmp_path)
    assert report.diagnoses == ()
    judged = {o.rule: o.status for o in report.outcomes if o.status not in (Status.NOT_APPLICABLE, Status.CLEAR)}
    assert judged == {}
    status = {o.rule: o.status for o in report.outcomes}
    assert (status["overfitting"], status["loss-not-decreasing"]) == (Status.NOT_APPLICABLE, Status.NOT_APPLICABLE)


def text_event(tag, step):
    event = tensor_event(tag, step, TensorProto(dtype=7, string_val=[b"lr: 0.1"]), plugin="text")
    assert isinstance(event.summary, Summary)
    return event
