"""Which tag plays which role: one table, read top to bottom.

A tag is cut into words (at every sign that is no letter or digit, and inside CamelCase): ``train/ValidLoss_1`` → train,
valid, loss, 1. Whole words are compared, never parts of words: `value_loss` is no validation loss. Whether a tag
belongs to training or to validation is said by the directory of its run below the job (``train/``, ``validation/``,
``eval/``, ``loss_val/``), else by a word of the tag.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tb_advisor.logdir.jobs import EVALUATION_SPLITS, TRAINING_SPLITS, Job
from tb_advisor.series import Series

TRAIN_WORDS = TRAINING_SPLITS | {"tr", "trainiterstats", "trainepochstats"}
EVAL_WORDS = EVALUATION_SPLITS | {"v", "holdout", "evalstats"}

# Words of losses that do not fall in a healthy run: reinforcement learning, adversarial and contrastive-divergence training.
RL_LOSS_WORDS = frozenset(
    "policy value vf entropy actor critic kl ent coef td q qf advantage baseline gail curiosity surrogate alpha".split()
)
GAN_LOSS_WORDS = frozenset("g d gen disc generator discriminator adv adversarial critic gan dis fake real".split())
RL_WORDS = frozenset("reward rew rewards rreturn return returns episode rollout".split())


@dataclass(frozen=True)
class Row:
    """One row of the table. `phrases` are runs of consecutive words, any of which gives the role; so does one word of each set
    of `together`. `without` are words that forbid it.
    """

    role: str
    phrases: tuple[str, ...]
    without: frozenset[str] = frozenset()
    together: tuple[frozenset[str], ...] = ()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NO_LOSS = _words("loss losses")
GRADIENT_WORDS = _words("grad grads gradient gradients gradnorm")
_NORM_WORDS = _words("norm norms l2 magnitude")
# Metrics that fall as a model gets better, also where another word of the tag names one that rises (a rank of an accuracy).
LOWER_IS_BETTER = _words("perplexity ppl mae rmse mse mape smape error err errors wer cer fid lpips rank pos eer bpb bpc misclassification")
HIGHER_IS_BETTER = _words(
    "accuracy acc auc auroc roc prc f1 fscore f1score precision recall map ap ap50 ap75 map50 iou miou dice bleu rouge psnr ssim r2"
    " spearman pearson mrr ndcg top1 top5 exprate kappa mcc sensitivity specificity success"
)
_COUNTED = _words("samples steps step tokens images img examples iterations its frames batches")
ACCURACY_WORDS = _words("accuracy acc")

TABLE = (
    Row("learning_rate", ("learning rate", "learningrate", "lr", "lr0", "lr1", "lr2"), _NO_LOSS | {"scale", "multiplier"}),
    Row("gradient_norm", ("gradnorm",), _NO_LOSS, (GRADIENT_WORDS, _NORM_WORDS)),
    Row("gradient_norm", ("global norm",), _NO_LOSS | {"weight", "param"}),
    Row(
        "memory",
        (
            "memory",
            "mem",
            "rss",
            "vram",
            "ram",
            "memallocated",
            "bytes in use",
        ),
        _NO_LOSS | _words("replay buffer disk free available limit"),
        (_words("allocated reserved alloc active used"), _words("bytes kb kib mb mib gb gib")),
    ),
    Row("data_time", ("data time", "loader time", "load time", "loading time", "fetch time", "dataloader time"), _NO_LOSS),
    Row(
        "throughput",
        (
            "step sec",
            *(f"{unit} {second}" for unit in sorted(_COUNTED - {"step"}) for second in ("s", "sec")),
            "it s",
            "tok s",
            "fps",
            "sps",
            "throughput",
        ),
        _NO_LOSS,
        (_words("per"), _words("second sec s"), _COUNTED),
    ),
    Row(
        "step_time",
        (
            "step time",
            "iter time",
            "iteration time",
            "batch time",
            "epoch time",
            "step duration",
            "time this iter s",
            "time per step",
            "step ms",
            "iter ms",
        ),
        _NO_LOSS,
        (_words("per"), _words("step batch iteration iter epoch"), _words("time seconds sec secs s ms duration")),
    ),
    Row("episode_length", ("ep len", "ep length", "episode length", "episode len", "episodic length", "steps per episode"), _NO_LOSS),
    Row(
        "return",
        ("cumulative reward", "return mean", "rreturn mean", "mean return", "average return", "ep return", "ep ret"),
        _NO_LOSS | _words("min max std extrinsic intrinsic"),
        (_words("reward rewards rew episodic"), _words("mean episode average avg ep eval return rollout score")),
    ),
    Row("explained_variance", ("explained variance", "explained var")),
    Row("clip_fraction", ("clip fraction", "clipfrac", "clip frac")),
    Row("kl", ("kl", "approxkl"), _NO_LOSS | {"coef", "coeff", "weight"}),
    Row("entropy", ("entropy",), _words("cross coef coeff binary categorical softmax sparse xent focal bonus weight")),
    Row("loss", ("loss", "losses", "logloss", "nll", "xent", "crossentropy", "cross entropy", "elbo"), _words("scale scaler weight")),
    Row("metric", tuple(sorted(HIGHER_IS_BETTER | LOWER_IS_BETTER)), _words("hist std")),
    Row("epoch", ("epoch",), frozenset({"time"})),
)

# Words that say how a number was gathered, not which loss or metric it is.
_PLAIN_WORDS = (
    TRAIN_WORDS
    | EVAL_WORDS
    | _words(
        "loss losses epoch step batch avg average mean total running base evaluation vs iterations optimizeloss stats iter ptl objective"
    )
    | _words("logloss nll xent crossentropy cross entropy 1 loss1 metrics performance")
)
# The same of a gradient norm: what is left names the layer.
_PLAIN_NORM_WORDS = GRADIENT_WORDS | _NORM_WORDS | _PLAIN_WORDS | _words("global all 2 0 inf before after clip clipping preclip optim")


@dataclass(frozen=True)
class Assignment:
    """One series and its role. `evaluation` tells validation from training, `words` is what the tag was cut into, `because` the
    words that gave the role.
    """

    series: Series
    role: str
    evaluation: bool
    words: tuple[str, ...]
    because: str = ""

    @property
    def part(self) -> frozenset[str]:
        """The words that tell this loss from the job's main loss, this metric from others, the layer of a gradient norm; empty
        for the main loss and the global norm.
        """
        if self.role == "gradient_norm":
            return frozenset(self.words) - _PLAIN_NORM_WORDS
        return frozenset("accuracy" if word == "acc" else word for word in self.words) - _PLAIN_WORDS

    @property
    def higher_is_better(self) -> bool | None:
        """The direction of a metric or return, None for what has none."""
        if self.role == "return":
            return True
        return None if self.role != "metric" else not LOWER_IS_BETTER.intersection(self.words)


@dataclass(frozen=True)
class Roles:
    """The roles of a job's tags, and what they say about the job."""

    assignments: tuple[Assignment, ...]
    task: str

    def of(self, role: str, *, evaluation: bool | None = None) -> list[Assignment]:
        """Every assignment of `role`, of training or validation only where `evaluation` is given."""
        return [a for a in self.assignments if a.role == role and evaluation in (None, a.evaluation)]

    def by_role(self) -> Mapping[str, tuple[Series, ...]]:
        """Roles in the order of the table, each with its series. Losses and metrics are told apart by split."""
        groups: dict[str, list[Series]] = defaultdict(list)
        for role in dict.fromkeys(row.role for row in TABLE):
            for a in self.of(role):
                split = ("validation " if a.evaluation else "training ") if role in ("loss", "metric") else ""
                groups[f"{split}{role}".replace(" ", "_")].append(a.series)
        return {role: tuple(members) for role, members in groups.items()}


def roles(job: Job) -> Roles:
    """The role of every scalar tag of the job, where it has one."""
    assignments = []
    all_words = []
    for series in job.scalars:
        tag_words = words(series.tag)
        all_words.append(tag_words)
        role, because = _role_of(tag_words)
        if role and len(series):
            run_words = words(_below(job.name, series.run))
            assignments.append(Assignment(series, role, _is_evaluation(run_words, tag_words), tag_words, because))
    return Roles(tuple(assignments), _task_of(all_words))


def words(name: str) -> tuple[str, ...]:
    """`name` in lower-case words: ``train/ValidLoss_1`` → ("train", "valid", "loss", "1"), ``valloss`` → ("val", "loss")."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", _BINARY_UNIT.sub(r"\1ib", name))
    found: list[str] = []
    for word in re.split(r"[^0-9a-z]+", spaced.lower()):
        compound = _COMPOUND.fullmatch(word)
        found += compound.groups() if compound else [word] if word else []
    return tuple(found)


_BINARY_UNIT = re.compile(r"(?<![A-Z])([KMGT])iB(?![A-Za-z])")
_COMPOUND = re.compile(f"({'|'.join(sorted(TRAINING_SPLITS | EVALUATION_SPLITS, key=len, reverse=True))})(loss|acc|accuracy|error)")


def _role_of(tag_words: tuple[str, ...]) -> tuple[str, str]:
    """The role and the words that gave it, empty where there is none."""
    text = f" {' '.join(tag_words)} "
    for row in TABLE:
        if row.without.intersection(tag_words):
            continue
        for phrase in row.phrases:
            if f" {phrase} " in text:
                return row.role, phrase
        if row.together and all(names.intersection(tag_words) for names in row.together):
            return row.role, " ".join(word for word in tag_words if any(word in names for names in row.together))
    whole = _WHOLE.get(" ".join(tag_words), "")
    return whole, " ".join(tag_words) if whole else ""


# Tags that mean something only where they say nothing else.
_WHOLE = {"time": "step_time", "duration": "step_time", "reward": "return", "return": "return", "score": "return"}


def _is_evaluation(run_words: tuple[str, ...], tag_words: tuple[str, ...]) -> bool:
    for names in (run_words, tag_words):
        for word in names:
            if word in EVAL_WORDS:
                return True
            if word in TRAIN_WORDS:
                return False
    return False


def _below(job: str, run: str) -> str:
    """The part of the run's name below its job's directory, empty for the job's own run."""
    if run == job:
        return ""
    return run if job == "." else PurePosixPath(run).relative_to(job).as_posix()


def _task_of(all_words: list[tuple[str, ...]]) -> str:
    losses = [set(tag_words) for tag_words in all_words if _NO_LOSS & set(tag_words)]
    rewarded = any(RL_WORDS & set(tag_words) for tag_words in all_words)
    if any({"policy", "loss"} <= names or {"actor", "loss"} <= names for names in losses):
        return "reinforcement-learning"
    if rewarded and any(RL_LOSS_WORDS & names for names in losses):
        return "reinforcement-learning"
    if any({"approx", "kl"} <= set(tag_words) or {"ep", "rew", "mean"} <= set(tag_words) for tag_words in all_words):
        return "reinforcement-learning"
    generator = any({"g", "gen", "generator"} & names for names in losses)
    discriminator = any({"d", "dis", "disc", "discriminator", "critic"} & names for names in losses)
    return "gan" if generator and discriminator else "supervised"
