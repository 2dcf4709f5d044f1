import pytest

from tb_advisor.evidence.metrics import partner_of
from tb_advisor.message import Missing
from tests.builders import series
from tests.evidence.test_losses import evidence


def curve(run, tag, values=(0.2, 0.5, 0.7, 0.8), step=1, seconds=1.0):
    return series(values, step=step, seconds=seconds, run=run, tag=tag)


@pytest.mark.parametrize(
    ("curves", "train", "val"),
    [
        # Keras writes running means of batches, and the validation accuracy twice
        (
            [
                curve("exp/train", "batch_accuracy", [0.5] * 400),
                curve("exp/train", "epoch_accuracy"),
                curve("exp/validation", "epoch_accuracy"),
                curve("exp/validation", "evaluation_accuracy_vs_iterations", step=100),
            ],
            ("exp/train", "epoch_accuracy"),
            ("exp/validation", "epoch_accuracy"),
        ),
        # Lightning
        (
            [
                curve("exp", "train_acc_step", [0.5] * 40),
                curve("exp", "train_acc_epoch", step=10),
                curve("exp", "val_acc", step=10),
                curve("exp", "test_acc", [0.7] * 9, step=10),
            ],
            ("exp", "train_acc_epoch"),
            ("exp", "val_acc"),
        ),
        # add_scalars: a run a curve
        (
            [curve("exp/accuracy_train", "accuracy"), curve("exp/accuracy_val", "accuracy")],
            ("exp/accuracy_train", "accuracy"),
            ("exp/accuracy_val", "accuracy"),
        ),
        # The top 1 of training goes with the top 1 of validation
        (
            [
                curve("exp", "train/acc_top1"),
                curve("exp", "train/acc_top5"),
                curve("exp", "val/acc"),
                curve("exp", "val/acc_top1"),
                curve("exp", "val/acc_top5"),
            ],
            ("exp", "train/acc_top1"),
            ("exp", "val/acc_top1"),
        ),
        # torchvision
        (
            [curve("exp", "train/acc1"), curve("exp", "train/acc5"), curve("exp", "test/acc5"), curve("exp", "test/acc1")],
            ("exp", "train/acc1"),
            ("exp", "test/acc1"),
        ),
        ([curve("exp", "top1_train"), curve("exp", "top1_valid")], ("exp", "top1_train"), ("exp", "top1_valid")),
        # detectron2's way: what is of training does not say so
        ([curve("exp", "cls_accuracy"), curve("exp", "validation_accuracy")], ("exp", "cls_accuracy"), ("exp", "validation_accuracy")),
        (
            [curve("exp", "cls_accuracy"), curve("exp", "train_accuracy"), curve("exp", "validation_accuracy")],
            ("exp", "train_accuracy"),
            ("exp", "validation_accuracy"),
        ),
    ],
)
def test_the_accuracies_that_belong_together(curves, train, val):
    found = evidence(*curves)
    assert [(found[name].run, found[name].tag) for name in ("train_accuracy", "val_accuracy")] == [train, val]


def test_percentages_become_shares():
    assert evidence(curve("exp", "val_acc", [11.0, 55.0, 92.5]))["val_accuracy"].values.tolist() == [0.11, 0.55, 0.925]


@pytest.mark.parametrize(
    "other",
    [
        curve("exp", "val/acc_mean_pos", [22.9, 1.6]),  # a rank: lower is better
        curve("exp", "val/top_5_accuracy"),
        curve("exp", "val/bbox_accuracy", [-1.0, -1.0]),
        curve("exp", "val/acc", [float("nan")] * 3),
        curve("exp", "val/f1"),
        curve("exp", "val/acc5"),
        curve("exp", "val/fast_rcnn/cls_accuracy"),
        curve("exp", "val/top1_error"),
    ],
)
def test_what_is_no_accuracy(other):
    with pytest.raises(Missing, match="no tag plays the role of val_accuracy"):
        evidence(curve("exp", "train/acc"), other)["val_accuracy"]


def test_only_one_split_is_logged():
    found = evidence(curve("exp", "eval/accuracy"))["accuracies"]
    assert found.train is None and found.val.tag == "eval/accuracy"


def test_adversarial_training_has_no_accuracy_of_its_own():
    found = evidence(curve("exp", "d_loss"), curve("exp", "g_loss"), curve("exp", "accuracy"))
    with pytest.raises(Missing, match="the discriminator's"):
        found["train_accuracy"]


def test_every_metric_has_its_split_direction_and_partner():
    metrics = evidence(curve("exp", "val_mae"), curve("exp", "train_f1"), curve("exp", "val_f1"), curve("exp", "val_loss"))["metrics"]
    assert [(m.series.tag, m.is_validation, m.higher_is_better) for m in metrics] == [
        ("train_f1", False, True),
        ("val_f1", True, True),
        ("val_mae", True, False),
    ]
    assert metrics[0].name == "Training metric (train_f1)"
    assert partner_of(metrics[0], metrics).series.tag == "val_f1"
    assert [m.is_of_regression for m in metrics] == [False, False, True]


def test_no_metric_is_said():
    with pytest.raises(Missing, match="no tag plays the role of a metric"):
        evidence(curve("exp", "loss"))["metrics"]


def test_an_accuracy_that_is_always_zero_was_not_measured():
    with pytest.raises(Missing, match="train_accuracy"):
        evidence(curve("exp/train", "epoch_accuracy", [0.0] * 20), curve("exp/train", "epoch_loss"))["train_accuracy"]
