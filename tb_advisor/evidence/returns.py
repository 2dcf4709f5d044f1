"""What a reinforcement-learning job says about its policy: return, entropy, size of the updates, value function."""

from __future__ import annotations

from dataclasses import dataclass

from tb_advisor.evidence.roles import RL_WORDS, Roles, words
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing
from tb_advisor.series import Series

# The level of the return says nothing about the policy: opponents and lessons get harder as it gets better.
_MOVING_TARGETS = {"elo": "the agents play against each other", "lesson": "a curriculum makes the task harder"}


_NEGATED = frozenset({"loss", "losses"})


@dataclass(frozen=True, eq=False)
class Policy:
    """Its entropy, the approximate KL divergence of each update, and the share of samples whose update was clipped: finite points
    without what a restart did again, None where it is not logged.
    """

    entropy: Series | None = None
    kl: Series | None = None
    clip_fraction: Series | None = None


def episode_return(job: Job, roles: Roles) -> Series:
    """The mean return of an episode during training, without what a restart did again; an evaluation's where only that is logged.

    Raises `Missing` where there is none, and where its level says nothing about the policy: self-play, curricula.
    """
    found = [a for a in roles.of("return") if roles.task == "reinforcement-learning" or RL_WORDS.intersection(a.words)]
    if not found:
        raise Missing("no tag plays the role of a return (looked for rollout/ep_rew_mean, episodic_return, Cumulative Reward)")
    for series in job.scalars:
        named = set(words(series.tag)) | ({"elo"} if {"self", "play"} <= set(words(series.tag)) else set())
        for word, why in _MOVING_TARGETS.items():
            if word in named:
                raise Missing("{tag} is logged: {why}, so that the return is no measure", tag=series.tag, why=why)
    return max(found, key=lambda a: (not a.evaluation, len(a.series))).series.surviving


def policy(roles: Roles) -> Policy:
    """What is logged of the policy. Raises `Missing` where there is nothing."""
    found = Policy(_entropy(roles), _of(roles, "kl"), _of(roles, "clip_fraction"))
    if roles.task != "reinforcement-learning" or (found.entropy is None and (found.kl is None or found.clip_fraction is None)):
        raise Missing("neither the policy's entropy (looked for entropy, entropy_loss) nor approx_kl with clip_fraction")
    return found


def explained_variance(roles: Roles) -> Series:
    """The share of the return's variance that the value function explains. Raises `Missing` where it is not logged."""
    found = _of(roles, "explained_variance")
    if found is None:
        raise Missing("no tag plays the role of explained variance (looked for train/explained_variance)")
    return found


def _entropy(roles: Roles) -> Series | None:
    """The entropy, positive for a discrete policy: `entropy_loss` is the negative entropy (stable_baselines3/ppo/ppo.py)."""
    found = max(roles.of("entropy"), key=lambda a: len(a.series), default=None)
    if found is None:
        return None
    series = found.series.surviving.finite
    if not _NEGATED & set(found.words):
        return series
    return Series(series.steps, series.wall_times, -series.values, series.run, series.tag)


def _of(roles: Roles, role: str) -> Series | None:
    found = max(roles.of(role), key=lambda a: len(a.series), default=None)
    return found.series.surviving.finite if found else None
