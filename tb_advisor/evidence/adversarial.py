"""The two losses of adversarial training, which belong together."""

from __future__ import annotations

from dataclasses import dataclass

from tb_advisor.evidence.roles import Roles
from tb_advisor.message import Missing
from tb_advisor.series import Series

_GENERATOR = frozenset({"g", "gen", "generator"})
_DISCRIMINATOR = frozenset({"d", "dis", "disc", "discriminator", "critic"})


@dataclass(frozen=True, eq=False)
class AdversarialLosses:
    """The loss of the generator and that of the discriminator, finite points only, without what a restart did again."""

    generator: Series
    discriminator: Series


def adversarial_losses(roles: Roles) -> AdversarialLosses:
    """The pair of losses: of each side the one with the fewest further words, which is the total.

    Raises `Missing` where there is no such pair, and where a loss takes values below zero: Wasserstein and hinge losses say
    nothing by their level.
    """
    if roles.task != "gan":
        raise Missing("no pair of adversarial losses (looked for generator and discriminator, G and D)")
    sides = []
    for names in (_GENERATOR, _DISCRIMINATOR):
        found = [a for a in roles.of("loss", evaluation=False) if names.intersection(a.words)]
        if not found:
            raise Missing("no training loss of the {side}", side=sorted(names)[-1])
        series = min(found, key=lambda a: (len(a.words), -len(a.series))).series.surviving.finite
        if len(series) and float(series.values.min()) < 0:
            raise Missing("{tag} takes values below zero, so that its level says nothing about the balance", tag=series.tag)
        sides.append(series)
    return AdversarialLosses(*sides)
