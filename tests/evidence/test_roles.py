import pytest

from tb_advisor.evidence.roles import roles, words
from tb_advisor.logdir.jobs import Job, Run
from tests.builders import series


def job(*run_tags, name="exp"):
    runs = {}
    for run, tag in run_tags:
        runs.setdefault(run, {})[tag] = series([1.0, 0.5, 0.4], run=run, tag=tag)
    return Job(name, {run: Run(run, scalars, {}, "", (), 0, ()) for run, scalars in runs.items()})


def role_of(tag, run="exp"):
    assignments = roles(job((run, tag))).assignments
    return (assignments[0].role, assignments[0].evaluation) if assignments else None


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("epoch_loss", ("loss", False)),
        ("train/loss", ("loss", False)),
        ("Loss/train", ("loss", False)),
        ("train_loss_step", ("loss", False)),
        ("OptimizeLoss/loss", ("loss", False)),
        ("Logloss", ("loss", False)),
        ("cross_entropy_1", ("loss", False)),
        ("val_loss", ("loss", True)),
        ("ValidLoss", ("loss", True)),
        ("eval/loss", ("loss", True)),
        ("ptl/val_loss", ("loss", True)),
        ("EvalStats/avg_loss", ("loss", True)),
        ("train/value_loss", ("loss", False)),  # reinforcement learning: "value" is no "val"
        ("lr-AdamW/pg1", ("learning_rate", False)),
        ("x/lr0", ("learning_rate", False)),
        ("epoch_learning_rate", ("learning_rate", False)),
        ("Policy/Learning Rate", ("learning_rate", False)),
        ("train/grad_norm", ("gradient_norm", False)),
        ("grad_2.0_norm_total", ("gradient_norm", False)),
        ("rollout/ep_rew_mean", ("return", False)),
        ("eval/accuracy", ("metric", True)),
        ("epoch_accuracy", ("metric", False)),
        ("metrics/mAP_0.5", ("metric", False)),
        ("train/policy_gradient_loss", ("loss", False)),  # no gradient norm
        ("perf/tokens/s", ("throughput", False)),
        ("global_step/sec", ("throughput", False)),
        ("time/step_time_s", ("step_time", False)),
        ("cuda/reserved_GiB", ("memory", False)),
        ("allocated_mb", ("memory", False)),
        ("memory_free_mb", None),
        ("lg_loss_scale", None),
        ("text_summary", None),
    ],
)
def test_real_tag_names(tag, expected):
    assert role_of(tag) == expected


@pytest.mark.parametrize("run", ["exp/validation", "exp/eval", "exp/test", "exp/loss_val"])
def test_the_run_below_the_job_says_that_it_is_validation(run):
    assert role_of("loss", run) == ("loss", True)


def test_the_name_of_the_job_itself_says_nothing():
    assert roles(job(("test/val_run", "loss"), name="test/val_run")).assignments[0].evaluation is False


@pytest.mark.parametrize(
    ("tags", "task"),
    [
        (["train/loss", "val/loss"], "supervised"),
        (["rollout/ep_rew_mean", "train/loss"], "reinforcement-learning"),
        (["Losses/Policy Loss", "Environment/Cumulative Reward"], "reinforcement-learning"),
        (["train/approx_kl", "train/loss"], "reinforcement-learning"),
        (["generator_loss", "discriminator_loss"], "gan"),
        (["loss/g/total", "loss/d/total"], "gan"),
        (["loss", "reward_model/accuracy"], "supervised"),
    ],
)
def test_the_task_is_read_from_the_tags(tags, task):
    assert roles(job(*(("exp", tag) for tag in tags))).task == task


def test_words_are_cut_at_signs_and_inside_camel_case():
    assert words("train/ValidLoss_1") == ("train", "valid", "loss", "1")
    assert words("usedGiB") == ("used", "gib")
