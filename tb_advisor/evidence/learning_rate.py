"""The learning rate of a job: of each parameter group, and of the group that stands for the job."""

from __future__ import annotations

import numpy as np

from tb_advisor.evidence.roles import Roles
from tb_advisor.message import Missing
from tb_advisor.series import Series


def learning_rates(roles: Roles) -> tuple[Series, ...]:
    """The learning rate of every parameter group and optimizer, finite points only; empty where none is logged.

    The one that stands for the job comes first: a group that is trained at all (a frozen backbone has the rate 0) and
    has most points, in the order of the tags, for frameworks number the groups. YOLOv5's last group, the biases, starts
    at ten times the rate of the others and falls to it.
    """
    series = [a.series.surviving.finite for a in roles.of("learning_rate", evaluation=False)]
    return tuple(sorted((s for s in series if len(s)), key=lambda s: (not (s.values > 0).any(), -len(s), s.run, s.tag)))


def learning_rate(learning_rates: tuple[Series, ...]) -> Series:
    """The learning rate that stands for the job, finite points only. Raises `Missing` where none is logged."""
    if not learning_rates:
        raise Missing("no tag plays the role of a learning rate (looked for learning_rate, train/learning_rate, lr, lr-Adam)")
    return learning_rates[0]


def comes_back(rate: Series, share: float = 0.5) -> bool:
    """Whether the learning rate rises again after it had fallen: warm restarts and cyclic schedules.

    It falls below half of `share` of its peak so far and is later above `share` of that peak.
    """
    peak = np.maximum.accumulate(rate.values)
    fallen = np.maximum.accumulate(rate.values < share / 2 * peak)
    return bool((fallen & (rate.values > share * peak)).any())
