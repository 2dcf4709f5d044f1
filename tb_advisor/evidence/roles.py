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
    """One row of the table. `phrases` are runs of consecutive words, any of which gives the role; `without` are words
    that forbid it.
    """

    role: str
    phrases: tuple[str, ...]
    without: frozenset[str] = frozenset()


_NO_LOSS = frozenset({"loss", "losses"})

TABLE = (
    Row("learning_rate", ("learning rate", "lr", "lr0", "lr1", "lr2", "cur lr", "current lr"), _NO_LOSS),
    Row("gradient_norm", ("grad norm", "gradient norm", "grads norm", "gradnorm", "grad 2 0 norm", "gradients norm")),
    Row("memory", ("memory", "mem", "rss", "vram", "ram", "allocated bytes", "bytes in use"), _NO_LOSS | {"replay", "buffer"}),
    Row("throughput", ("samples per second", "steps per second", "steps per sec", "fps", "sec", "throughput", "it s"), _NO_LOSS),
    Row("step_time", ("step time", "iter time", "batch time", "time this iter s"), _NO_LOSS),
    Row("return", ("rew mean", "reward mean", "mean reward", "cumulative reward", "return mean", "rreturn mean", "episode reward")),
    Row("loss", ("loss", "losses", "logloss", "nll", "xent", "crossentropy", "cross entropy"), frozenset({"scale", "weight"})),
    Row("metric", ("accuracy", "acc", "auc", "f1", "precision", "recall", "map", "m ap", "iou", "dice", "perplexity", "mae", "rmse")),
    Row("epoch", ("epoch",), frozenset({"time"})),
)  # fmt: skip

# Words that say how a loss was gathered, not which loss it is.
_PLAIN_WORDS = TRAIN_WORDS | EVAL_WORDS | {
    "loss", "losses", "epoch", "step", "batch", "avg", "average", "mean", "total", "running", "base", "evaluation", "vs", "iterations",
    "optimizeloss", "stats", "iter", "ptl", "objective", "logloss", "nll", "xent", "crossentropy", "cross", "entropy", "1", "loss1",
}  # fmt: skip


@dataclass(frozen=True)
class Assignment:
    """One series and its role. `evaluation` tells validation from training, `words` is what the tag was cut into."""

    series: Series
    role: str
    evaluation: bool
    words: tuple[str, ...]

    @property
    def part(self) -> frozenset[str]:
        """The words that tell this loss from the job's main loss; empty for the main loss."""
        return frozenset(self.words) - _PLAIN_WORDS


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
        for row in TABLE:
            for a in self.of(row.role):
                split = ("validation " if a.evaluation else "training ") if row.role in ("loss", "metric") else ""
                groups[f"{split}{row.role}".replace(" ", "_")].append(a.series)
        return {role: tuple(members) for role, members in groups.items()}


def roles(job: Job) -> Roles:
    """The role of every scalar tag of the job, where it has one."""
    assignments = []
    all_words = []
    for series in job.scalars:
        tag_words = words(series.tag)
        all_words.append(tag_words)
        role = _role_of(tag_words)
        if role is not None and len(series):
            run_words = words(_below(job.name, series.run))
            assignments.append(Assignment(series, role, _is_evaluation(run_words, tag_words), tag_words))
    return Roles(tuple(assignments), _task_of(all_words))


def words(name: str) -> tuple[str, ...]:
    """`name` in lower-case words: ``train/ValidLoss_1`` → ("train", "valid", "loss", "1")."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return tuple(word for word in re.split(r"[^0-9a-z]+", spaced.lower()) if word)


def _role_of(tag_words: tuple[str, ...]) -> str | None:
    text = f" {' '.join(tag_words)} "
    for row in TABLE:
        if not row.without.intersection(tag_words) and any(f" {phrase} " in text for phrase in row.phrases):
            return row.role
    return None


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
