"""The losses of a job: all of them, and the pair of curves that a practitioner would compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tb_advisor.evidence.roles import GAN_LOSS_WORDS, RL_LOSS_WORDS, Assignment, Roles
from tb_advisor.message import Missing
from tb_advisor.series import Series

MOST_POINTS_OF_ONE_STEP = 4
_LOOKED_FOR = {
    False: "epoch_loss in a run train/, train/loss, Loss/train, train_loss, loss",
    True: "epoch_loss in a run validation/, val/loss, eval/loss, Loss/val, val_loss, loss in a run eval/",
}
_SPECIAL = {
    "reinforcement-learning": "the losses of reinforcement learning do not fall in a healthy run",
    "gan": "adversarial losses do not fall in a healthy run",
    "energy-based": "the loss of contrastive divergence does not fall in a healthy run",
}


@dataclass(frozen=True)
class Loss:
    """One loss of a job, without what a restart did again. `is_main` tells the total from parts and auxiliary losses."""

    series: Series
    is_validation: bool
    is_main: bool

    @property
    def name(self) -> str:
        """What it is called in a sentence: its role, and its tag where the role alone would not tell it from others."""
        split = "Validation" if self.is_validation else "Training"
        return f"{split} loss ({self.series.tag})"


def losses(roles: Roles) -> tuple[Loss, ...]:
    """Every loss of the job: training before validation, the main one first. Raises `Missing` where there is none."""
    found = sorted(roles.of("loss"), key=lambda a: (a.evaluation, *_rank(a, None)))
    if not found:
        raise Missing("no tag plays the role of a loss (looked for a word loss, nll or cross entropy)")
    main = found[0].part
    return tuple(Loss(a.series.surviving, a.evaluation, a.part == main) for a in found)


def train_loss(roles: Roles) -> Series:
    """The training loss: the total where parts are logged too, without what a restart did again.

    Raises `Missing` where there is none, and for reinforcement learning and adversarial training, whose losses say
    nothing by their level.
    """
    return _with_steps(_main_loss(roles, evaluation=False).series.surviving)


def val_loss(roles: Roles) -> Series:
    """The validation loss that belongs to the training loss: the same loss, on the same axis where there is one.

    Raises `Missing` where there is none.
    """
    return _with_steps(_main_loss(roles, evaluation=True).series.surviving)


def main_validation(losses: Iterable[Loss]) -> Series | None:
    """The finite points of the main validation loss among these, None where there is none."""
    return next((loss.series.finite for loss in losses if loss.is_validation and loss.is_main), None)


def finite_points(series: Series, needed: int) -> Series:
    """The series without its NaN and infinite points. Raises `Missing` where fewer than `needed` are left."""
    if len(series.finite) < needed:
        raise Missing("{tag} has {count} finite points; {needed} are needed", tag=series.tag, count=len(series.finite), needed=needed)
    return series.finite


def _with_steps(series: Series) -> Series:
    steps = series.steps
    if len(steps) > MOST_POINTS_OF_ONE_STEP and steps[0] == steps[-1]:
        template = "all {count} points of {tag} have step {step}, so that they have no order in steps (pass global_step)"
        raise Missing(template, count=len(steps), tag=series.tag, step=int(steps[0]))
    return series


def _main_loss(roles: Roles, *, evaluation: bool) -> Assignment:
    set_by_user = [a for a in roles.of("loss", evaluation=evaluation) if a.tag_role]
    if roles.task in _SPECIAL and not set_by_user:
        raise Missing(_SPECIAL[roles.task])
    named = set_by_user or [a for a in roles.of("loss", evaluation=evaluation) if not _is_special(a)]
    if not named:
        split = "val_loss" if evaluation else "train_loss"
        raise Missing("no tag plays the role of {role} (looked for {names})", role=split, names=_LOOKED_FOR[evaluation])
    measured = [a for a in named if a.series.stored_values.any()]
    if not measured:
        raise Missing("{tag} is zero all the time: it was never measured", tag=named[0].series.tag)
    train = None if not evaluation else _train_or_none(roles)
    return min(measured, key=lambda a: _rank(a, train))


def _rank(a: Assignment, train: Assignment | None) -> tuple[object, ...]:
    """Smaller is better: the main loss before its parts, epoch means before running means, the partner of `train`, val
    before test, a total before what is not called so, more points.
    """
    by_iteration = "batch" in a.words or "iterations" in a.words
    other_part = train is not None and a.part != train.part
    other_axis = train is not None and not a.series.shares_axis_with(train.series)
    is_test = bool({"test", "testing"} & {*a.words, *a.series.run.lower().split("/")})
    no_total = "total" not in a.words
    return other_part, len(a.part), by_iteration, other_axis, is_test, no_total, -len(a.series), a.series.run, a.series.tag


def _train_or_none(roles: Roles) -> Assignment | None:
    try:
        return _main_loss(roles, evaluation=False)
    except Missing:
        return None


def _is_special(a: Assignment) -> bool:
    return bool(a.part & (RL_LOSS_WORDS | GAN_LOSS_WORDS)) and "entropy" not in a.part
