"""Which tag plays which role: one table, read top to bottom.

A tag is cut into words (at every sign that is no letter or digit, and inside CamelCase): ``train/ValidLoss_1`` → train,
valid, loss, 1. Whole words are compared, never parts of words: `value_loss` is no validation loss. Whether a tag
belongs to training or to validation is said by its own words, the last one that names a split, else by the directory of
its run below the job (``train/``, ``validation/``, ``eval/``, ``loss_val/``).

Sources: the tags that Keras, TensorFlow (Estimator, Object Detection), Lightning, the Hugging Face Trainer, Stable-Baselines3, RLlib,
ML-Agents, YOLO, detectron2, Coqui, VITS, FastSpeech 2, CatBoost and hand-written loops write, from the event files of public projects.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath

import numpy as np

from tb_advisor.logdir.jobs import EVALUATION_SPLITS, TRAINING_SPLITS, Job
from tb_advisor.series import Series

TRAIN_WORDS = TRAINING_SPLITS | {"tr", "trainiterstats", "trainepochstats"}
EVAL_WORDS = EVALUATION_SPLITS | {"holdout", "heldout", "evalstats"}
REINFORCEMENT_LEARNING = "reinforcement-learning"

# Words of losses that do not fall in a healthy run: reinforcement learning and adversarial training.
RL_LOSS_WORDS = frozenset(
    "policy value vf entropy actor critic kl ent coef td q qf advantage baseline gail curiosity surrogate alpha".split()
)
GAN_LOSS_WORDS = frozenset("g d gen disc generator discriminator adv adversarial critic gan dis fake real".split())
RL_WORDS = frozenset("reward rew rewards rreturn return returns episode rollout".split())


@dataclass(frozen=True)
class Row:
    """One row of the table. `phrases` are runs of consecutive words, any of which gives the role; so does one phrase of each set
    of `together`. `without` are phrases that forbid it, `task` is the only task whose jobs have it.
    """

    role: str
    phrases: tuple[str, ...]
    without: frozenset[str] = frozenset()
    together: tuple[frozenset[str], ...] = ()
    task: str = ""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LOSS_WORDS = _words("loss losses")
GRADIENT_WORDS = _words("grad grads gradient gradients gradnorm")
_NORM_WORDS = _words("norm norms l2 magnitude mag")
# Metrics that fall as a model gets better, also where another word of the tag names one that rises (a rank of an accuracy).
LOWER_IS_BETTER = _words(
    "perplexity ppl mae rmse mse nrmse rmsle msle mape smape mase error err errors wer cer fid lpips eer bpb bpc misclassification fpr fnr"
    " brier crps ece hd95"
) | {"mean pos", "median pos", "mean rank", "median rank"}
HIGHER_IS_BETTER = _words(
    "accuracy accuracies acc acc1 acc5 auc auroc roc prc f1 fscore f1score precision recall map map50 map75 ap ap50 ap75 aps apm apl iou"
    " miou dice dsc jaccard bleu chrf meteor cider rouge rouge1 rouge2 rougel psnr ssim r2 spearman spearmanr pearson pearsonr mrr ndcg"
    " top1 top5 kappa mcc sensitivity specificity success elo"
) | {"exp rate", "exact match"}
ACCURACY_WORDS = _words("accuracy acc acc1 top1")
# Average precision of detections and the like is measured on held-out data, whatever the tag says of it.
_HELD_OUT_WORDS = _words("map map50 map75 ap ap50 ap75 aps apm apl")
# Where no tag is called a loss, these play its role.
_LOSS_LIKE_WORDS = _words("mse rmse msle rmsle mae")
# So do these, where beside them stands nothing but the split and how it was gathered. A cost is minimised; an objective may be maximised.
_LOSS_BY_ANOTHER_NAME = _words("cost objective")
_GATHERED_WORDS = _words("epoch step batch avg average mean total")

_NO_MODEL_WORDS = _words("weight weights param params parameters update updates activation activations")
_COUNTED_WORDS = _words(
    "step steps sample samples image images img imgs token tokens tok example examples iteration iterations iter iters its it frame frames"
    " batch batches sequences utterances records rows words episodes"
)
_SEVERAL = sorted(word for word in _COUNTED_WORDS if word.endswith("s") or word in ("img", "tok", "it"))
_PER_SECOND = frozenset({"per s", "per sec", "per second"})
_SPREAD_WORDS = _words("min max std hist")

TABLE = (
    Row(
        "learning_rate",
        ("learning rate", "learningrate", "lr", "lrs", "lrate", "lr0", "lr1", "lr2"),
        LOSS_WORDS | _words("scale scaler multiplier factor"),
    ),
    Row("gradient_norm", ("gradnorm", "gnorm"), LOSS_WORDS, (GRADIENT_WORDS, _NORM_WORDS)),
    Row("gradient_norm", ("global norm", "total norm"), LOSS_WORDS | _NO_MODEL_WORDS),
    Row(
        "memory",
        (
            *("memory", "mem", "rss", "uss", "vram", "ram", "vm percent", "memallocated", "allocated bytes", "reserved bytes"),
            *("active bytes", "bytes in use"),
        ),
        # Lightning's DeviceStatsMonitor also writes how much was ever allocated and freed, which only rises.
        LOSS_WORDS
        | _words("replay buffer bank queue capacity size len length disk free available limit bandwidth clock")
        | {"all allocated", "all freed", "pool allocated", "pool freed"},
        (_words("allocated reserved alloc active used"), _words("gb gib mb mib kb kib bytes")),
    ),
    Row("memory", ("resident set",), LOSS_WORDS),
    Row(
        "data_time",
        (
            *("data time", "loader time", "load time", "loading time", "fetch time", "dataloader time", "dataloading time"),
            "data loading time",
        ),
        LOSS_WORDS,
    ),
    Row(
        "throughput",
        # A step_s is the time of a step; a step_sec is what tools that allow no slash make of global_step/sec.
        ("fps", "sps", "throughput", "step sec", *(f"{many} {unit}" for many in _SEVERAL for unit in ("s", "sec"))),
        LOSS_WORDS,
        (_COUNTED_WORDS, _PER_SECOND),
    ),
    Row(
        "step_time",
        (
            *("step time", "iter time", "iteration time", "batch time", "epoch time", "step duration", "step timing", "step seconds"),
            *("step ms", "iter ms", "step s", "time this iter s", "time per step"),
        ),
        LOSS_WORDS,
        (
            _words("time seconds sec secs s ms duration"),
            frozenset({"per step", "per batch", "per iteration", "per iter", "per epoch", "per train step"}),
        ),
    ),
    Row(
        "episode_length",
        ("ep len", "ep length", "episode length", "episode len", "episodic length", "steps per episode"),
        LOSS_WORDS | _SPREAD_WORDS,
    ),
    Row(
        "return",
        ("cumulative reward", "return mean", "rreturn mean", "mean return", "average return", "ep return", "ep ret", "eval return"),
        LOSS_WORDS | _SPREAD_WORDS | _words("extrinsic intrinsic chosen rejected margins accuracies model"),
        (_words("reward rewards rew episodic"), _words("mean episode average avg ep eval return rollout score")),
    ),
    Row("explained_variance", ("explained variance", "explained var")),
    Row("clip_fraction", ("clip fraction", "clipfrac", "clip frac")),
    Row("kl", ("approx kl", "approxkl"), _words("coef coeff")),
    Row("kl", ("kl",), LOSS_WORDS | _words("coef coeff weight beta target")),
    # Stable-Baselines3 logs the negative entropy as train/entropy_loss.
    Row("entropy", ("entropy",), _words("cross coef coeff target bonus weight"), task=REINFORCEMENT_LEARNING),
    Row("entropy", ("entropy",), LOSS_WORDS | _words("cross coef coeff target bonus weight binary categorical softmax sparse xent focal")),
    Row(
        "loss",
        (
            *("loss", "losses", "logloss", "mlogloss", "nll", "bce", "ce", "xent", "crossentropy", "cross entropy", "elbo"),
            "contrastive divergence",
        ),
        frozenset({"loss scale", "loss scaler", "loss weight", "loss weights", "values"}),
    ),
    Row(
        "metric",
        tuple(sorted(HIGHER_IS_BETTER | LOWER_IS_BETTER)),
        frozenset(
            {"hist", "std", "baseline", "td", "grad acc", "acc steps", "feature map", "attention map", "depth map", "success threshold"}
        ),
    ),
)

# Tags that mean something only where they say nothing else but the split.
_WHOLE = {
    "epoch": "epoch",
    "current epoch": "epoch",
    "time": "step_time",
    "reward": "return",
    "rewards": "return",
    "return": "return",
    "score": "return",
    "cost": "loss",
}

# Words that say how a number was gathered, not which loss or metric it is.
_PLAIN_WORDS = (
    TRAIN_WORDS
    | EVAL_WORDS
    | LOSS_WORDS
    | _words("epoch step batch avg average mean total running base evaluation vs iterations optimize optimizeloss stats iter ptl objective")
    | _words("logloss nll xent crossentropy cross entropy 1 loss1 metrics metric scores performance v trainer")
)
# The same of a gradient norm: what is left names the layer.
_PLAIN_NORM_WORDS = (
    GRADIENT_WORDS
    | _NORM_WORDS
    | (_PLAIN_WORDS - {"1"})
    | _words(
        "gnorm global all overall before after pre post clip clipping clipped unclipped preclip raw optim optimizer model network debug"
    )
)
_ORDER_OF_NORM = re.compile(r"\b(grads?|gradients?) (\d 0|2|inf) (?=norms?\b)")


@dataclass(frozen=True)
class TagRole:
    """What the user says of the tags that match `pattern` (a tag, or a glob): the role, empty for none.

    `evaluation` is None where the names tell the split, `lower_is_better` where they tell the direction. `because` says
    where it was set.
    """

    pattern: str
    role: str
    evaluation: bool | None = None
    lower_is_better: bool | None = None
    because: str = ""


@dataclass(frozen=True)
class Assignment:
    """One series and its role. `evaluation` tells validation from training, `words` is what the tag was cut into (and the key of
    `add_scalars`, which made the curve's run).

    `because` says which words gave the role, `split_because` where the split was found, empty where nothing says it. `tag_role`
    is what the user set.
    """

    series: Series
    role: str
    evaluation: bool
    words: tuple[str, ...]
    because: str = ""
    split_because: str = ""
    tag_role: TagRole | None = None

    @property
    def part(self) -> frozenset[str]:
        """The words that tell this loss from the job's main loss, this metric from others, the layer of a gradient norm; empty
        for the main loss and the global norm.
        """
        if self.tag_role is not None and self.role == "loss":
            return frozenset()
        if self.role == "gradient_norm":
            return _layer_of(self.words)
        return frozenset("accuracy" if word == "acc" else word for word in self.words) - _PLAIN_WORDS

    @property
    def higher_is_better(self) -> bool | None:
        """The direction of a metric or return, None for what has none."""
        if self.role == "return":
            return True
        if self.role != "metric":
            return None
        if self.tag_role is not None and self.tag_role.lower_is_better is not None:
            return not self.tag_role.lower_is_better
        return _phrase_of(LOWER_IS_BETTER, self.words) is None

    @property
    def split(self) -> str:
        """``validation`` or ``training``."""
        return "validation" if self.evaluation else "training"

    @property
    def reason(self) -> str:
        """Why it has this role and this split, in a few words."""
        if self.tag_role is not None:
            return self.because
        return f"{self.because}; {self.split} from {self.split_because}" if self.split_because else self.because


@dataclass(frozen=True)
class Unassigned:
    """A series without a role, and why."""

    series: Series
    because: str


@dataclass(frozen=True)
class Roles:
    """The roles of a job's tags, and what they say about the job. `unassigned` are the tags without a role."""

    assignments: tuple[Assignment, ...]
    task: str
    unassigned: tuple[Unassigned, ...] = ()

    def of(self, role: str, *, evaluation: bool | None = None) -> list[Assignment]:
        """Every assignment of `role`, of training or validation only where `evaluation` is given."""
        return [a for a in self.assignments if a.role == role and evaluation in (None, a.evaluation)]

    def by_role(self) -> Mapping[str, tuple[Series, ...]]:
        """Roles in the order of the table, each with its series. Losses and metrics are told apart by split, training first."""
        groups: dict[str, list[Series]] = defaultdict(list)
        for role in dict.fromkeys((*(row.role for row in TABLE), *_WHOLE.values())):
            for a in sorted(self.of(role), key=lambda a: a.evaluation):
                groups[f"{a.split}_{role}" if role in SPLIT_ROLES else role].append(a.series)
        return {role: tuple(members) for role, members in groups.items()}


SPLIT_ROLES = frozenset({"loss", "metric"})


def roles(job: Job, tag_roles: tuple[TagRole, ...] = ()) -> Roles:
    """The role of every scalar tag of the job, where it has one. What the user set in `tag_roles` comes first."""
    cut = _spelled_out([(series, _words_of(job, series)) for series in job.scalars if len(series)])
    task = _task_of([tag_words for _, tag_words in cut])
    assignments: list[Assignment] = []
    unassigned: list[Unassigned] = []
    others: list[Assignment] = []
    for series, tag_words in cut:
        evaluation, split_because = _split_of(words(_below(job.name, series.run)), tag_words, task)
        chosen = _chosen(series.tag, tag_roles)
        if chosen is not None:
            if not chosen.role:
                unassigned.append(Unassigned(series, chosen.because))
                continue
            evaluation = evaluation if chosen.evaluation is None else chosen.evaluation
            assignments.append(Assignment(series, chosen.role, evaluation, tag_words, chosen.because, split_because, chosen))
            continue
        role, because = _role_of(tag_words, task)
        if not role:
            unassigned.append(Unassigned(series, "no word of it names a role"))
            others.append(Assignment(series, "loss", evaluation, tag_words, split_because=split_because))
        elif because == '"time"' and _is_clock(series):
            unassigned.append(Unassigned(series, "a clock: it rises with every point"))
        else:
            assignments.append(Assignment(series, role, evaluation, tag_words, because, split_because))
    if not any(a.role == "loss" for a in assignments):
        losses = _losses_by_another_name(others)
        assignments += losses
        unassigned = [u for u in unassigned if not any(u.series is a.series for a in losses)]
    return Roles(tuple(_seen_together(assignments)), task, tuple(unassigned))


@lru_cache(maxsize=10_000)
def words(name: str) -> tuple[str, ...]:
    """`name` in lower-case words: ``train/ValidLoss_1`` → ("train", "valid", "loss", "1"), ``valloss`` → ("val", "loss"),
    ``it/s`` → ("it", "per", "s").
    """
    spelled = _ONE_WORD.sub(lambda match: f" {match[0].lower()}", _RATE.sub(r" per \1", name))
    spaced = _CAMEL_CASE.sub(" ", spelled)
    found: list[str] = []
    for word in re.split(r"[^0-9a-z]+", spaced.lower()):
        compound = _COMPOUND.fullmatch(word)
        found += [part for part in compound.groups() if part] if compound else [word] if word else []
    return tuple(found)


_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[0-9])(?=[A-Z][a-z])")
# Capitals that do not begin a word.
_ONE_WORD = re.compile(
    r"mAP|mIoU|IoU|[KMGT]iB|AP[sml](?![a-z])|AdamW|(?:Leaky|P|R)?ReLU|SiLU|TrainIterStats|TrainEpochStats|EvalStats|OptimizeLoss"
)
_RATE = re.compile(r"/(s|sec|second)(?=$|[_ ]\d+$)", re.IGNORECASE)
_SPLITS = "|".join(sorted(TRAINING_SPLITS | EVALUATION_SPLITS, key=len, reverse=True))
_COMPOUND = re.compile(f"({_SPLITS})(loss|acc|accuracy|error)|(loss|acc|accuracy|error)({_SPLITS})")


def _words_of(job: Job, series: Series) -> tuple[str, ...]:
    """The words of the tag, and those of the key with which `add_scalars` made the run of this one curve."""
    tag_words = words(series.tag)
    run_words = words(_below(job.name, series.run))
    return run_words if run_words[: len(tag_words)] == tag_words else tag_words


def _spelled_out(cut: list[tuple[Series, tuple[str, ...]]]) -> list[tuple[Series, tuple[str, ...]]]:
    """The same with `te` as `test` in a job that writes `tr` for training: on its own it may mean anything (a text encoder)."""
    if not any("tr" in tag_words for _, tag_words in cut):
        return cut
    return [(series, tuple("test" if word == "te" else word for word in tag_words)) for series, tag_words in cut]


def _chosen(tag: str, tag_roles: tuple[TagRole, ...]) -> TagRole | None:
    """What the user says of a tag: by its exact name before the first glob that matches."""
    exact = next((chosen for chosen in tag_roles if chosen.pattern == tag), None)
    return exact or next((chosen for chosen in tag_roles if fnmatchcase(tag, chosen.pattern)), None)


@lru_cache(maxsize=10_000)
def _role_of(tag_words: tuple[str, ...], task: str = "") -> tuple[str, str]:
    """The role and the words that gave it, empty where there is none."""
    for row in TABLE:
        if row.task not in ("", task) or _phrase_of(row.without, tag_words):
            continue
        phrase = _phrase_of(row.phrases, tag_words)
        if phrase:
            return row.role, f'"{phrase}"'
        together = [_phrase_of(phrases, tag_words) for phrases in row.together]
        if together and all(together):
            return row.role, ", ".join(f'"{phrase}"' for phrase in together)
    rest = " ".join(word for word in tag_words if word not in TRAIN_WORDS | EVAL_WORDS)
    return (_WHOLE[rest], f'"{rest}"') if rest in _WHOLE else ("", "")


def _phrase_of(phrases: tuple[str, ...] | frozenset[str], tag_words: tuple[str, ...]) -> str | None:
    """The first of these phrases (the alphabetically first of a set) that stands among the words."""
    text = f" {' '.join(tag_words)} "
    return next((phrase for phrase in (phrases if isinstance(phrases, tuple) else sorted(phrases)) if f" {phrase} " in text), None)


def _split_of(run_words: tuple[str, ...], tag_words: tuple[str, ...], task: str) -> tuple[bool, str]:
    """Whether it is of validation, and what says so."""
    for where, names in (("the tag", tag_words), ("its run", run_words)):
        for word in reversed(names):
            if word in EVAL_WORDS | TRAIN_WORDS:
                return word in EVAL_WORDS, f'"{word}" in {where}'
    if "v" in tag_words and LOSS_WORDS.intersection(tag_words) and task != REINFORCEMENT_LEARNING:
        return True, '"v" in the tag'
    return False, ""


def _losses_by_another_name(others: list[Assignment]) -> list[Assignment]:
    """What plays the loss in a job where nothing is called one: a cost, or an objective of both splits that falls in training, for one that
    rises may be maximised.
    """
    found: dict[str, list[Assignment]] = defaultdict(list)
    for a in others:
        named = set(a.words) - TRAIN_WORDS - EVAL_WORDS - _GATHERED_WORDS
        if len(named) == 1 and named <= _LOSS_BY_ANOTHER_NAME:
            word = named.pop()
            found[word].append(replace(a, because=f'"{word}", as nothing is called a loss'))
    objectives = found["objective"]
    training = [a.series.finite for a in objectives if not a.evaluation and len(a.series.finite)]
    minimised = any(a.evaluation for a in objectives) and bool(training) and all(curve.end < curve.start for curve in training)
    return found["cost"] or (objectives if minimised else [])


def _seen_together(assignments: list[Assignment]) -> list[Assignment]:
    """What only the other tags of the job tell: metrics of a detector are measured on held-out data, an error plays the loss where
    nothing else does.
    """
    has_loss = any(a.role == "loss" for a in assignments)
    beside_validation = any(a.role == "loss" and a.words[0] in EVAL_WORDS for a in assignments)
    found = []
    for a in assignments:
        if a.role == "metric" and a.tag_role is None:
            if not a.split_because and _HELD_OUT_WORDS.intersection(a.words):
                a = replace(a, evaluation=True, split_because="what it measures")
            elif not a.split_because and beside_validation and a.words[0] == "metrics":
                a = replace(a, evaluation=True, split_because="validation losses beside it")
            if not has_loss and _LOSS_LIKE_WORDS.intersection(a.words):
                a = replace(a, role="loss")
        found.append(a)
    return found


def _is_clock(series: Series) -> bool:
    return len(series) > 4 and bool((np.diff(series.values) > 0).all())


def _layer_of(tag_words: tuple[str, ...]) -> frozenset[str]:
    """What a gradient norm names beside itself, each number with the word before it: ``grad_norm/dense_1/kernel`` → dense.1,
    kernel.
    """
    parts: list[str] = []
    for word in _ORDER_OF_NORM.sub(r"\1 ", " ".join(tag_words)).split():
        if word.isdigit() and parts:
            parts[-1] += f".{word}"
        else:
            parts.append(word)
    return frozenset(parts) - _PLAIN_NORM_WORDS


def _below(job: str, run: str) -> str:
    """The part of the run's name below its job's directory, empty for the job's own run."""
    if run == job:
        return ""
    return run if job == "." else PurePosixPath(run).relative_to(job).as_posix()


def _task_of(all_words: list[tuple[str, ...]]) -> str:
    """What kind of training it is: its losses do not fall in a healthy run unless it is ``supervised``."""
    losses = [set(tag_words) for tag_words in all_words if LOSS_WORDS.intersection(tag_words)]
    found = {(role, because) for role, because in map(_role_of, all_words)}
    if any({"policy", "actor"} & names for names in losses) or ("kl", '"approx kl"') in found:
        return REINFORCEMENT_LEARNING
    if any(role in ("return", "episode_length") and because != '"score"' for role, because in found):
        return REINFORCEMENT_LEARNING
    if ("loss", '"contrastive divergence"') in found or any({"contrastive", "divergence"} <= names for names in losses):
        return "energy-based"
    generator = any({"g", "gen", "generator"} & names for names in losses)
    discriminator = any({"d", "dis", "disc", "discriminator", "critic"} & names for names in losses)
    spelled_out = any({"generator", "discriminator"} & names for names in losses)
    return "gan" if spelled_out or (generator and discriminator) else "supervised"
