"""The losses of a job: all of them, and the pair of curves that a practitioner would compare."""

from __future__ import annotations

from tb_advisor.evidence.roles import GAN_LOSS_WORDS, RL_LOSS_WORDS, Assignment, Roles
from tb_advisor.message import Missing
from tb_advisor.series import Series

_LOOKED_FOR = {
    False: "epoch_loss in a run train/, train/loss, Loss/train, train_loss, loss",
    True: "epoch_loss in a run validation/, val/loss, eval/loss, Loss/val, val_loss, loss in a run eval/",
}
_SPECIAL = {
    "reinforcement-learning": "the losses of reinforcement learning do not fall in a healthy run",
    "gan": "adversarial losses do not fall in a healthy run",
}


def losses(roles: Roles) -> tuple[Series, ...]:
    """Every loss of the job, all points: training before validation, the main one first. Raises `Missing` where there is none."""
    found = tuple(a.series for a in sorted(roles.of("loss"), key=lambda a: (a.evaluation, *_rank(a, None))))
    if not found:
        raise Missing("no tag plays the role of a loss (looked for a word loss, nll or cross entropy)")
    return found


def train_loss(roles: Roles) -> Series:
    """The training loss: the total where parts are logged too, without what a restart did again.

    Raises `Missing` where there is none, and for reinforcement learning and adversarial training, whose losses say
    nothing by their level.
    """
    return _main_loss(roles, evaluation=False).series.surviving


def val_loss(roles: Roles) -> Series:
    """The validation loss that belongs to the training loss: the same loss, on the same axis where there is one.

    Raises `Missing` where there is none.
    """
    return _main_loss(roles, evaluation=True).series.surviving


def _main_loss(roles: Roles, *, evaluation: bool) -> Assignment:
    if roles.task in _SPECIAL:
        raise Missing(_SPECIAL[roles.task])
    named = [a for a in roles.of("loss", evaluation=evaluation) if not _is_special(a)]
    if not named:
        split = "val_loss" if evaluation else "train_loss"
        raise Missing("no tag plays the role of {role} (looked for {names})", role=split, names=_LOOKED_FOR[evaluation])
    train = None if not evaluation else _train_or_none(roles)
    return min(named, key=lambda a: _rank(a, train))


def _rank(a: Assignment, train: Assignment | None) -> tuple[object, ...]:
    """Smaller is better: the main loss before its parts, epoch means before running means, the partner of `train`, val
    before test, more points.
    """
    by_iteration = "batch" in a.words or "iterations" in a.words
    other_part = train is not None and a.part != train.part
    other_axis = train is not None and not a.series.shares_axis_with(train.series)
    is_test = bool({"test", "testing"} & {*a.words, *a.series.run.lower().split("/")})
    return other_part, len(a.part), by_iteration, other_axis, is_test, -len(a.series), a.series.run, a.series.tag


def _train_or_none(roles: Roles) -> Assignment | None:
    try:
        return _main_loss(roles, evaluation=False)
    except Missing:
        return None


def _is_special(a: Assignment) -> bool:
    return bool(a.part & (RL_LOSS_WORDS | GAN_LOSS_WORDS)) and "entropy" not in a.part
