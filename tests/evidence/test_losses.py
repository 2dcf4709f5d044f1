import pytest

from tb_advisor.evidence import Evidence
from tb_advisor.evidence.roles import TagRole
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tests.builders import series


def evidence(*curves, name="exp"):
    runs = {}
    for curve in curves:
        runs.setdefault(curve.run, {})[curve.tag] = curve
    return Evidence(Job(name, {run: Run(run, scalars, {}, "", (), 0, ()) for run, scalars in runs.items()}))


def curve(run, tag, n=10, step=1):
    return series([1.0] * n, step=step, run=run, tag=tag)


@pytest.mark.parametrize(
    ("curves", "train", "val"),
    [
        # Keras writes the validation loss twice, on different axes
        (
            [
                curve("exp/train", "epoch_loss"),
                curve("exp/train", "batch_loss", 900),
                curve("exp/validation", "epoch_loss"),
                curve("exp/validation", "evaluation_loss_vs_iterations", 10, 90),
            ],
            ("exp/train", "epoch_loss"),
            ("exp/validation", "epoch_loss"),
        ),
        # Lightning
        (
            [curve("exp", "train_loss_step", 100), curve("exp", "train_loss_epoch", 10, 10), curve("exp", "val_loss", 10, 10)],
            ("exp", "train_loss_step"),
            ("exp", "val_loss"),
        ),
        # Hugging Face adds a run average as a last single point
        (
            [curve("exp", "train/loss"), curve("exp", "train/train_loss", 1), curve("exp", "eval/loss", 4, 2)],
            ("exp", "train/loss"),
            ("exp", "eval/loss"),
        ),
        # parts beside the total
        (
            [curve("exp", "Loss/box_loss"), curve("exp", "Loss/total_loss"), curve("exp/eval", "Loss/total_loss")],
            ("exp", "Loss/total_loss"),
            ("exp/eval", "Loss/total_loss"),
        ),
        # parts only: the validation loss is that of the same part
        (
            [curve("exp", "train/box_loss"), curve("exp", "train/cls_loss"), curve("exp", "val/cls_loss"), curve("exp", "val/box_loss")],
            ("exp", "train/box_loss"),
            ("exp", "val/box_loss"),
        ),
        # validation before test
        ([curve("exp", "loss"), curve("exp", "test_loss"), curve("exp", "val_loss")], ("exp", "loss"), ("exp", "val_loss")),
    ],
)
def test_the_pair_that_a_practitioner_would_compare(curves, train, val):
    found = evidence(*curves)
    assert [(s.run, s.tag) for s in (found["train_loss"], found["val_loss"])] == [train, val]


def test_missing_losses_say_what_was_looked_for():
    with pytest.raises(Missing, match=r"val_loss \(looked for epoch_loss in a run validation/, val/loss"):
        evidence(curve("exp", "loss"))["val_loss"]


def test_losses_of_reinforcement_learning_are_not_judged_by_their_level():
    with pytest.raises(Missing, match="reinforcement learning"):
        evidence(curve("exp", "train/loss"), curve("exp", "rollout/ep_rew_mean"))["train_loss"]


def test_losses_of_contrastive_divergence_are_not_judged_by_their_level():
    with pytest.raises(Missing, match="contrastive divergence"):
        evidence(curve("exp", "loss"), curve("exp", "loss_contrastive_divergence"))["train_loss"]


def test_the_loss_that_the_user_names_is_judged_whatever_the_task():
    found = evidence(curve("exp", "my/cost"), curve("exp", "train/loss"), curve("exp", "rollout/ep_rew_mean"))
    named = Evidence(found["job"], (TagRole("my/cost", "loss", False),))
    assert named["train_loss"].tag == "my/cost"


def test_a_total_comes_before_a_loss_of_no_other_name():
    assert evidence(curve("exp", "loss"), curve("exp", "total_loss"))["train_loss"].tag == "total_loss"


def test_a_loss_that_is_zero_all_the_time_was_never_measured():
    zero = series([0.0] * 10, run="exp", tag="val_loss")
    with pytest.raises(Missing, match="val_loss is zero all the time"):
        evidence(curve("exp", "loss"), zero)["val_loss"]
    assert evidence(curve("exp", "loss"), zero, curve("exp", "test_loss"))["val_loss"].tag == "test_loss"


def test_all_losses_are_there_for_the_search_for_nan():
    found = evidence(curve("exp", "train/value_loss"), curve("exp", "rollout/ep_rew_mean"))["losses"]
    assert [loss.name for loss in found] == ["Training loss (train/value_loss)"]


def test_the_main_loss_is_told_from_its_parts():
    found = evidence(curve("exp", "train/aux_loss"), curve("exp", "train/loss"), curve("exp", "val/loss"))["losses"]
    assert [(loss.series.tag, loss.is_validation, loss.is_main) for loss in found] == [
        ("train/loss", False, True),
        ("train/aux_loss", False, False),
        ("val/loss", True, True),
    ]


def test_a_training_that_started_again_is_its_last_part():
    series = curve("exp", "loss", 6)
    series.steps[:] = [0, 1, 2, 0, 1, 2]
    assert len(evidence(series)["losses"][0].series) == 3


def test_points_that_all_have_one_step_cannot_be_judged_over_steps():
    with pytest.raises(Missing, match=r"all 10 points of loss have step 0, .*global_step"):
        evidence(curve("exp", "loss", step=0))["train_loss"]


def test_evidence_is_derived_once_and_its_absence_remembered():
    found = evidence(curve("exp", "loss"))
    assert found["roles"] is found["roles"]
    for _ in range(2):
        with pytest.raises(Missing):
            found["val_loss"]
