import pytest

from tb_advisor.evidence.roles import TagRole, roles, words
from tb_advisor.logdir.jobs import Job, Run
from tests.builders import series


def job(*run_tags, name="exp"):
    runs = {}
    for run, tag in run_tags:
        runs.setdefault(run, {})[tag] = series([1.0, 0.9, 0.8, 0.6, 0.5, 0.4], run=run, tag=tag)
    return Job(name, {run: Run(run, scalars, {}, "", (), 0, ()) for run, scalars in runs.items()})


def role_of(tag, run="exp"):
    assignments = roles(job((run, tag))).assignments
    return (assignments[0].role, assignments[0].evaluation) if assignments else None


# The tags of each writer as they stand in the event files of public projects, by the directory of their run below the job ("" is the
# job's own run). "v:" marks validation, None a tag without a role.
WRITERS = {
    "Keras callback": {
        "train": {
            "epoch_loss": "loss",
            "batch_loss": "loss",
            "epoch_lr": "learning_rate",
            "epoch_learning_rate": "learning_rate",
            "epoch_accuracy": "metric",
            "batch_accuracy": "metric",
            "epoch_AUC": "metric",
            "epoch_prc": "metric",
            "epoch_top3_accuracy": "metric",
            "epoch_mystery": None,  # a metric of the user's own is no epoch
            "batch_steps_per_second": "throughput",
        },
        "validation": {
            "epoch_loss": "v:loss",
            "evaluation_loss_vs_iterations": "v:loss",
            "evaluation_accuracy_vs_iterations": "v:metric",
        },
    },
    "Keras callback of TensorFlow 1": {
        "": {"loss": "loss", "val_loss": "v:loss", "lr": "learning_rate", "acc": "metric", "val_acc": "v:metric"},
    },
    "Keras hparams demo": {"": {"batch_loss": "loss", "accuracy": "metric"}},
    "TensorFlow loops": {
        "": {
            "loss": "loss",
            "train_loss": "loss",
            "Loss": "loss",
            "test_loss": "v:loss",
            "val_loss": "v:loss",
            "accuracy": "metric",
            "acc": "metric",
            "train_accuracy": "metric",
            "test_accuracy": "v:metric",
            "test_F1Score_left": "v:metric",
        },
        "test": {"v_loss": "v:loss", "v_accuracy": "v:metric"},
        "val": {"loss": "v:loss"},
    },
    "TensorFlow loops, adversarial": {
        "": {
            "generator_loss": "loss",
            "discriminator_loss": "loss",
            "critic_loss": "loss",
            "critic_gradient_penality": None,
            "1. Pre-training autoencoder/2. Gradient norm - embedder": "gradient_norm",
            "3. TimeGAN training - GAN/3. Gradient norm - generator": "gradient_norm",
            "3. TimeGAN training - GAN/1. Unsupervised loss": "loss",
        },
    },
    "TensorFlow loops, reinforcement learning": {
        "": {
            "Score": "return",
            "Average reward": "return",
            "Epsilon (EpsilonGreedyStrategy)": None,
            "Steps per episode": "episode_length",
            "loss": "loss",
        },
    },
    "Estimator": {
        "": {
            "loss": "loss",
            "loss_1": "loss",
            "OptimizeLoss/loss": "loss",
            "average_loss": "loss",
            "cross_entropy_1": "loss",
            "global_step/sec": "throughput",
            "global_step/sec_1": "throughput",
            "enqueue_input/queue/enqueue_input/random_shuffle_queuefraction_over_250_of_750_full": None,
            "global_vars/Variable/sec": None,
        },
        "eval": {
            "loss": "v:loss",
            "accuracy": "v:metric",
            "auc": "v:metric",
            "accuracy_baseline": None,
            "auc_precision_recall": "v:metric",
            "prediction/mean": None,
            "label/mean": None,
        },
    },
    "TensorFlow Object Detection": {
        "train": {
            "Loss/total_loss": "loss",
            "Loss/localization_loss": "loss",
            "Loss/classification_loss": "loss",
            "Loss/regularization_loss": "loss",
            "learning_rate": "learning_rate",
            "steps_per_sec": "throughput",
        },
        "eval": {
            "Loss/total_loss": "v:loss",
            "DetectionBoxes_Precision/mAP": "v:metric",
            "DetectionBoxes_Precision/mAP@.50IOU": "v:metric",
            "DetectionBoxes_Precision/mAP (small)": "v:metric",
            "DetectionBoxes_Recall/AR@100 (large)": "v:metric",
        },
    },
    "Lightning": {
        "": {
            "train_loss": "loss",
            "train_loss_step": "loss",
            "train_loss_epoch": "loss",
            "train/loss": "loss",
            "train/base_loss": "loss",
            "loss": "loss",
            "episode/MSE Loss": "loss",
            "val_loss": "v:loss",
            "valid_loss": "v:loss",
            "ptl/val_loss": "v:loss",
            "val/loss": "v:loss",
            "val_contrastive_divergence": "v:loss",
            "lr-SGD": "learning_rate",
            "lr-Adam": "learning_rate",
            "lr-AdamW": "learning_rate",
            "lr-AdamW/pg1": "learning_rate",
            "lr-AdamW/pg2": "learning_rate",
            "train/grad_norm": "gradient_norm",
            "grad_2.0_norm_total": "gradient_norm",
            "val_acc": "v:metric",
            "train_acc": "metric",
            "test_acc": "v:metric",
            "val_ExpRate": "v:metric",
            "val/top_5_accuracy": "v:metric",
            "val_acc_mean_pos": "v:metric",
            "epoch": "epoch",
            "hp_metric": None,
            "DeviceStatsMonitor.on_train_batch_start/allocated_bytes.all.current": "memory",
            "DeviceStatsMonitor.on_train_batch_start/reserved_bytes.all.peak": "memory",
            "DeviceStatsMonitor.on_train_batch_start/allocated_bytes.all.allocated": None,
            "DeviceStatsMonitor.on_train_batch_start/allocated_bytes.all.freed": None,
            "DeviceStatsMonitor.on_train_batch_start/cpu_vm_percent": "memory",
            "DeviceStatsMonitor.on_train_batch_start/cpu_percent": None,
        },
    },
    "Hugging Face Trainer": {
        "": {
            "train/loss": "loss",
            "train/train_loss": "loss",
            "eval/loss": "v:loss",
            "train/learning_rate": "learning_rate",
            "train/grad_norm": "gradient_norm",
            "eval/accuracy": "v:metric",
            "eval/f1": "v:metric",
            "eval/precision": "v:metric",
            "eval/recall": "v:metric",
            "train/epoch": "epoch",
            "train/train_runtime": None,
            "train/train_samples_per_second": "throughput",
            "train/train_steps_per_second": "throughput",
            "eval/runtime": None,
            "eval/samples_per_second": "v:throughput",
            "eval/steps_per_second": "v:throughput",
            "train/total_flos": None,
        },
    },
    "Hugging Face TRL, preferences": {
        "": {"train/loss": "loss", "eval/loss": "v:loss", "eval/rewards/chosen": None, "eval/rewards/accuracies": "v:metric"},
    },
    "Stable-Baselines3": {
        "": {
            "train/loss": "loss",
            "train/value_loss": "loss",
            "train/policy_gradient_loss": "loss",
            "train/entropy_loss": "entropy",
            "train/actor_loss": "loss",
            "train/critic_loss": "loss",
            "train/ent_coef_loss": "loss",
            "train/ent_coef": None,
            "eval/mean_reward": "v:return",
            "eval/mean_ep_length": "v:episode_length",
            "eval/success_rate": "v:metric",
            "train/learning_rate": "learning_rate",
            "rollout/ep_rew_mean": "return",
            "rollout/ep_len_mean": "episode_length",
            "rollout/success_rate": "metric",
            "rollout/exploration rate": None,
            "train/approx_kl": "kl",
            "train/clip_fraction": "clip_fraction",
            "train/clip_range": None,
            "train/explained_variance": "explained_variance",
            "train/std": None,
            "time/fps": "throughput",
        },
    },
    "RLlib": {
        "": {
            "ray/tune/info/learner/default_policy/total_loss": "loss",
            "ray/tune/info/learner/default_policy/policy_loss": "loss",
            "ray/tune/info/learner/default_policy/vf_loss": "loss",
            "ray/tune/info/learner/default_policy/entropy": "entropy",
            "ray/tune/info/learner/default_policy/kl": "kl",
            "ray/tune/info/learner/default_policy/cur_kl_coeff": None,
            "ray/tune/info/learner/default_policy/cur_lr": "learning_rate",
            "ray/tune/info/learner/default_policy/vf_explained_var": "explained_variance",
            "ray/tune/episode_reward_mean": "return",
            "ray/tune/episode_reward_min": None,
            "ray/tune/episode_reward_max": None,
            "ray/tune/iterations_since_restore": None,
            "ray/tune/time_this_iter_s": "step_time",
            "ray/tune/timers/learn_throughput": "throughput",
            "ray/tune/timers/sample_time_ms": None,
            "ray/tune/perf/ram_util_percent": "memory",
            "ray/tune/perf/cpu_util_percent": None,
        },
    },
    "Unity ML-Agents": {
        "": {
            "Losses/Policy Loss": "loss",
            "Losses/Value Loss": "loss",
            "Losses/Baseline Loss": "loss",
            "Losses/GAIL Loss": "loss",
            "Losses/Curiosity Forward Loss": "loss",
            "Losses/Pretraining Loss": "loss",
            "Policy/Learning Rate": "learning_rate",
            "Policy/GAIL Grad Mag Loss": "loss",
            "Environment/Cumulative Reward": "return",
            "Environment/Cumulative Reward_hist": None,
            "Environment/Group Cumulative Reward": "return",
            "Environment/Episode Length": "episode_length",
            "Policy/Extrinsic Reward": None,  # the cumulative reward once more
            "Self-play/ELO": "metric",
            "Policy/Entropy": "entropy",
            "Policy/Epsilon": None,
            "Policy/Beta": None,
            "Environment/Lesson Number/ball_touch": None,
        },
    },
    "babyai, rl-starter": {
        "": {
            "policy_loss": "loss",
            "value_loss": "loss",
            "grad_norm": "gradient_norm",
            "rreturn_mean": "return",
            "rreturn_std": None,
            "rreturn_min": None,
            "rreturn_max": None,
            "return_mean": "return",
            "success_rate": "metric",
            "entropy": "entropy",
            "value": None,
            "update": None,
            "frames": None,
            "FPS": "throughput",
            "duration": None,  # seconds since the beginning
        },
    },
    "CleanRL": {
        "": {
            "charts/episodic_return": "return",
            "charts/SPS": "throughput",
            "losses/value_loss": "loss",
            "losses/entropy": "entropy",
            "losses/approx_kl": "kl",
            "losses/clipfrac": "clip_fraction",
            "losses/explained_variance": "explained_variance",
        },
    },
    "YOLOv5 and v9": {
        "": {
            "train/box_loss": "loss",
            "train/obj_loss": "loss",
            "train/cls_loss": "loss",
            "train/dfl_loss": "loss",
            "val/box_loss": "v:loss",
            "val/obj_loss": "v:loss",
            "val/cls_loss": "v:loss",
            "x/lr0": "learning_rate",
            "x/lr1": "learning_rate",
            "x/lr2": "learning_rate",
            "metrics/precision": "v:metric",
            "metrics/recall": "v:metric",
            "metrics/mAP_0.5": "v:metric",
            "metrics/mAP_0.5:0.95": "v:metric",
            "metrics/cells_mAP": "v:metric",
        },
    },
    "Ultralytics v8": {
        "": {
            "train/box_loss": "loss",
            "val/box_loss": "v:loss",
            "lr/pg0": "learning_rate",
            "lr/pg1": "learning_rate",
            "lr/pg2": "learning_rate",
            "metrics/precision(B)": "v:metric",
            "metrics/recall(B)": "v:metric",
            "metrics/mAP50(B)": "v:metric",
            "metrics/mAP50-95(B)": "v:metric",
        },
    },
    "detectron2": {
        "": {
            "total_loss": "loss",
            "loss_cls": "loss",
            "loss_box_reg": "loss",
            "loss_rpn_cls": "loss",
            "loss_rpn_loc": "loss",
            "lr": "learning_rate",
            "fast_rcnn/cls_accuracy": "metric",
            "fast_rcnn/fg_cls_accuracy": "metric",
            "bbox/AP": "v:metric",
            "bbox/AP50": "v:metric",
            "bbox/APs": "v:metric",
            "bbox/AP-person": "v:metric",
            "time": "step_time",
            "data_time": "data_time",
            "eta_seconds": None,
        },
    },
    "Coqui": {
        "": {
            "TrainIterStats/loss": "loss",
            "TrainIterStats/loss_mel_ce": "loss",
            "TrainEpochStats/avg_loss": "loss",
            "EvalStats/avg_loss": "v:loss",
            "EvalStats/avg_loss_mel_ce": "v:loss",
            "TrainIterStats/current_lr": "learning_rate",
            "TrainEpochStats/avg_grad_norm": "gradient_norm",
            "TrainIterStats/step_time": "step_time",
            "TrainIterStats/loader_time": "data_time",
            "TrainEpochStats/epoch_time": "step_time",
        },
    },
    "VITS": {
        "": {
            "loss/g/total": "loss",
            "loss/g/mel": "loss",
            "loss/g/kl": "loss",
            "loss/g/dur": "loss",
            "loss/g/fm": "loss",
            "loss/d/total": "loss",
            "loss/d_r/0": "loss",
            "loss/d_r/5": "loss",
            "loss/g/0": "loss",
            "learning_rate": "learning_rate",
            "grad_norm_g": "gradient_norm",
            "grad_norm_d": "gradient_norm",
        },
        "eval": {"loss/g/total": "v:loss"},
    },
    "FastSpeech 2": {
        "train": {
            "Loss/total_loss": "loss",
            "Loss/mel_loss": "loss",
            "Loss/mel_postnet_loss": "loss",
            "Loss/pitch_loss": "loss",
            "Loss/energy_loss": "loss",
            "Loss/duration_loss": "loss",
        },
        "val": {"Loss/total_loss": "v:loss", "Loss/mel_loss": "v:loss"},
    },
    "CatBoost": {"learn": {"Logloss": "loss"}, "test": {"Logloss": "v:loss", "AUC": "v:metric"}},
    "PyTorch loops": {
        "": {
            "loss": "loss",
            "train_loss": "loss",
            "Loss/train": "loss",
            "loss/loss_tr": "loss",
            "train/loss": "loss",
            "test_loss": "v:loss",
            "Loss/val": "v:loss",
            "Loss/test": "v:loss",
            "val/loss": "v:loss",
            "learning_rate": "learning_rate",
            "lr-AdamW": "learning_rate",
            "test_accuracy": "v:metric",
            "Accuracy/train": "metric",
            "Accuracy/test": "v:metric",
            "train/acc": "metric",
            "val/acc": "v:metric",
            "val/acc_mean_pos": "v:metric",
            "epoch": "epoch",
            "lg_loss_scale": None,
            "text_summary": None,
        },
    },
}


def of_writers():
    for writer, directories in WRITERS.items():
        run_tags = [(f"exp/{below}" if below else "exp", tag) for below, tags in directories.items() for tag in tags]
        for below, tags in directories.items():
            for tag, expected in tags.items():
                yield pytest.param(run_tags, f"exp/{below}" if below else "exp", tag, expected, id=f"{writer}-{below}-{tag}")


@pytest.mark.parametrize(("run_tags", "run", "tag", "expected"), list(of_writers()))
def test_the_tags_of_every_writer(run_tags, run, tag, expected):
    found = [a for a in roles(job(*run_tags)).assignments if (a.series.run, a.series.tag) == (run, tag)]
    assert [("v:" if a.evaluation else "") + a.role for a in found] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("ValidLoss", ("loss", True)),
        ("valloss", ("loss", True)),
        ("lossVal", ("loss", True)),
        ("trainacc", ("metric", False)),
        ("training/val_loss", ("loss", True)),  # the last word that names a split is the one
        ("train/value_loss", ("loss", False)),  # "value" is no "val"
        ("my/cost", None),
        ("cost", ("loss", False)),
        ("train/grad_norm/fc1.weight", ("gradient_norm", False)),
        ("grads/layer_norm.weight", ("gradient_norm", False)),
        ("weights/global_norm", None),
        ("param_norm", None),
        ("layer_norm/gamma", None),
        ("cuda/reserved_GiB", ("memory", False)),
        ("gpu.0.memoryAllocated", ("memory", False)),
        ("replay_memory/size", None),
        ("allocated_mb", ("memory", False)),
        ("gpu/usedGiB", ("memory", False)),
        ("max_mem_alloc_mb", ("memory", False)),
        ("resident_set_size", ("memory", False)),
        ("disk_used_gb", None),
        ("free_memory_mb", None),
        ("memory_free_mb", None),
        ("perf/examples_per_sec", ("throughput", False)),
        ("it/s", ("throughput", False)),
        ("perf/tokens/s", ("throughput", False)),
        ("tokens_s", ("throughput", False)),
        ("global_step_sec", ("throughput", False)),
        ("time/step_time_s", ("step_time", False)),
        ("iter_ms", ("step_time", False)),
        ("sec_per_step", ("step_time", False)),
        ("time/step_s", ("step_time", False)),
        ("grad_acc_steps", None),
        ("val_mIoU", ("metric", True)),
        ("td_error", None),
        ("kl_weight", None),
        ("epoch/valid_top1", ("metric", True)),
        ("heldout/accuracy", ("metric", True)),
        ("train/entropy_loss", ("loss", False)),  # outside reinforcement learning it is short for cross entropy
    ],
)
def test_whole_words_decide(tag, expected):
    assert role_of(tag) == expected


@pytest.mark.parametrize("run", ["exp/validation", "exp/eval", "exp/test", "exp/loss_val"])
def test_the_run_below_the_job_says_that_it_is_validation(run):
    assert role_of("loss", run) == ("loss", True)


def test_the_tag_says_it_before_its_run():
    assert role_of("val_loss", "exp/train") == ("loss", True)


def test_the_name_of_the_job_itself_says_nothing():
    assert roles(job(("test/val_run", "loss"), name="test/val_run")).assignments[0].evaluation is False


def test_v_is_validation_but_value_in_reinforcement_learning():
    assert role_of("v_loss") == ("loss", True)
    (loss,) = roles(job(("exp", "v_loss"), ("exp", "episodic_return"))).of("loss")
    assert not loss.evaluation


def test_a_clock_is_no_step_time():
    runs = {"exp": Run("exp", {"time": series(range(10), run="exp", tag="time")}, {}, "", (), 0, ())}
    found = roles(Job("exp", runs))
    assert (found.assignments, found.unassigned[0].because) == ((), "a clock: it rises with every point")


def test_an_error_plays_the_loss_where_nothing_is_called_one():
    assert [(a.role, a.evaluation) for a in roles(job(("exp", "MSE/train"), ("exp", "MSE/test"))).assignments] == [
        ("loss", False),
        ("loss", True),
    ]
    assert {a.role for a in roles(job(("exp", "loss"), ("exp", "MSE/test"))).assignments} == {"loss", "metric"}


def splits_of(*tags):
    return {a.series.tag: (a.role, a.evaluation, a.part) for a in roles(job(*(("exp", tag) for tag in tags))).assignments}


def test_te_is_test_where_tr_is_training():
    assert splits_of("tr_loss", "te_loss", "te_acc") == {
        "tr_loss": ("loss", False, set()),
        "te_loss": ("loss", True, set()),
        "te_acc": ("metric", True, {"accuracy"}),
    }
    assert splits_of("train/loss", "train/te_loss")["train/te_loss"] == ("loss", False, {"te"})  # of a text encoder


@pytest.mark.parametrize(("train", "val"), [("epoch/train_cost", "epoch/valid_cost"), ("train/objective", "heldout/objective")])
def test_a_loss_by_another_name(train, val):
    found = splits_of(train, val, "valid_acc")
    assert (found[train][:2], found[val][:2]) == (("loss", False), ("loss", True))
    assert found[train][2] == found[val][2]
    assert not {train, val} & set(splits_of(train, val, "train/nll"))


@pytest.mark.parametrize("tags", [("train/objective",), ("objective/kl_cost",), ("train/control_cost", "test/control_cost")])
def test_what_is_no_loss_by_another_name(tags):
    assert not any(role == "loss" for role, _, _ in splits_of(*tags).values())


def test_an_objective_that_rises_is_no_loss():
    scalars = {tag: series([1.0, 2.0, 3.0] * 3 + [9.0] * 3, run="exp", tag=tag) for tag in ("train/objective", "val/objective")}
    assert roles(Job("exp", {"exp": Run("exp", scalars, {}, "", (), 0, ())})).of("loss") == []


@pytest.mark.parametrize(
    ("tags", "task"),
    [
        (["train/loss", "val/loss"], "supervised"),
        (["rollout/ep_rew_mean", "train/loss"], "reinforcement-learning"),
        (["Losses/Policy Loss", "Environment/Cumulative Reward"], "reinforcement-learning"),
        (["train/approx_kl", "train/loss"], "reinforcement-learning"),
        (["critic_loss", "charts/episodic_return"], "reinforcement-learning"),
        (["loss", "Average reward"], "reinforcement-learning"),
        (["generator_loss", "discriminator_loss"], "gan"),
        (["loss/g/total", "loss/d/total"], "gan"),
        (["critic_loss", "gen_loss"], "gan"),
        (["generator_loss"], "gan"),
        (["loss", "loss_contrastive_divergence"], "energy-based"),
        (["loss", "val_contrastive_divergence"], "energy-based"),
        (["loss", "reward_model/accuracy"], "supervised"),
        (["train/loss", "eval/rewards/chosen"], "supervised"),
        (["train/kl_divergence", "train/loss"], "supervised"),
        (["loss", "score"], "supervised"),
    ],
)
def test_the_task_is_read_from_the_tags(tags, task):
    assert roles(job(*(("exp", tag) for tag in tags))).task == task


@pytest.mark.parametrize(
    ("tag", "higher"),
    [
        ("val_acc", True),
        ("val/top_5_accuracy", True),
        ("metrics/mAP_0.5", True),
        ("psnr", True),
        ("val/acc_mean_pos", False),
        ("top_5_error", False),
        ("eval/wer", False),
        ("perplexity/val", False),
        ("rollout/ep_rew_mean", True),
        ("learning_rate", None),
        ("loss", None),
    ],
)
def test_the_direction_of_a_metric(tag, higher):
    assert roles(job(("exp", tag))).assignments[0].higher_is_better is higher


@pytest.mark.parametrize(
    ("run", "tag", "part"),
    [
        ("exp", "train/grad_norm", set()),
        ("exp", "GradNorm", set()),
        ("exp", "gradients/global_norm", set()),
        ("exp", "grad_2.0_norm_total", set()),
        ("exp", "grad_norm_after_clipping", set()),
        ("exp", "grad_norm/fc1.weight", {"fc1", "weight"}),
        ("exp", "grad_2.0_norm/layers.2.weight", {"layers.2", "weight"}),
        ("exp", "grad_norm/dense_1/kernel", {"dense.1", "kernel"}),
        ("exp/grad_norm_encoder", "grad_norm", {"encoder"}),  # add_scalars("grad_norm", {"encoder": …})
        ("exp", "loss", set()),
        ("exp", "Loss/total_loss", set()),
        ("exp/validation", "evaluation_loss_vs_iterations", set()),
        ("exp", "train/box_loss", {"box"}),
        ("exp/losses_box", "losses", {"box"}),
        ("exp", "val_acc", {"accuracy"}),
        ("exp", "Metric/evaluation_accuracy", {"accuracy"}),
        ("exp", "scores/holdout_accuracy", {"accuracy"}),
    ],
)
def test_the_part_is_what_the_tag_names_beside_its_role(run, tag, part):
    assert roles(job((run, tag))).assignments[0].part == part


def test_each_assignment_says_why():
    keras, hand_written = roles(job(("exp/validation", "epoch_loss"), ("exp", "speed/img_per_sec"))).assignments
    assert keras.reason == '"loss"; validation from "validation" in its run'
    assert hand_written.reason == '"img", "per sec"'


def test_what_the_user_sets_comes_first():
    set_by_user = (
        TagRole("my/*", "", because="ignored in pyproject.toml"),
        TagRole("my/cost", "loss", True, because="set in pyproject.toml"),
        TagRole("my/score", "metric", True, lower_is_better=True),
    )
    found = roles(job(("exp", "my/cost"), ("exp", "my/loss"), ("exp", "my/score"), ("exp", "loss")), set_by_user)
    cost = found.of("loss", evaluation=True)[0]
    assert (cost.series.tag, cost.part, cost.reason) == ("my/cost", set(), "set in pyproject.toml")
    assert found.of("metric")[0].higher_is_better is False
    assert [(u.series.tag, u.because) for u in found.unassigned] == [("my/loss", "ignored in pyproject.toml")]


def test_roles_are_listed_by_split_in_the_order_of_the_table():
    found = roles(job(("exp", "val_loss"), ("exp", "loss"), ("exp", "lr"), ("exp", "epoch"), ("exp", "grad_norm"))).by_role()
    assert list(found) == ["learning_rate", "gradient_norm", "training_loss", "validation_loss", "epoch"]


def test_words_are_cut_at_signs_and_inside_camel_case():
    assert words("train/ValidLoss_1") == ("train", "valid", "loss", "1")
    assert words("mAP50/Top1Acc") == ("map50", "top1", "acc")
    assert words("usedGiB") == ("used", "gib")
    assert words("LeakyReLU_1/PReLU2") == ("leakyrelu", "1", "prelu2")
