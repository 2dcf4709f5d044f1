"""The policy stopped exploring, or its updates are far too large, and the return does not improve.

## Why it matters

A policy without entropy takes the same action whatever it sees: it collects no new experience, and no later update
brings it back. Updates beyond the trust region destroy what was learned before.

## How it is found

Entropy: that of a discrete policy (never below zero) falls to `max_entropy` (5%) of its start before `latest` (60%)
of the run and stays there. A policy that has solved its task is certain as well, so the return must end no better
than it began, by `min_noise_ratio` (3) times its jitter, or have lost half of its best improvement. The entropy of
continuous actions has no zero that means anything and is not judged.

Updates: the median KL divergence of the second half of the run is above `max_kl` (0.1) and more than
`max_clip_fraction` (0.5) of the samples are clipped. PPO aims at 0.01 to 0.03 and at 0.1 to 0.2 (`target_kl` of
Spinning Up and of Stable-Baselines3's zoo). The return must not improve there either.

## When it is wrong

Tasks in which one action is right in every state, and returns that are only logged scaled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.evidence.returns import Policy
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="reinforcement-learning",
    fixes=("entropy-bonus", "smaller-policy-updates", "normalize-rewards", "keep-best-policy"),
)
def policy_collapse(
    policy: Policy,
    episode_return: Series,
    *,
    max_entropy: float = 0.05,
    latest: float = 0.6,
    max_kl: float = 0.1,
    max_clip_fraction: float = 0.5,
    min_noise_ratio: float = 3.0,
    min_points: int = 20,
) -> Iterator[Diagnosis]:
    """One diagnosis for the entropy, and one for the updates where the entropy is not the reason."""
    returns = finite_points(episode_return, min_points)
    entropy, kl, clipped = (
        s if s is not None and len(s) >= min_points else None for s in (policy.entropy, policy.kl, policy.clip_fraction)
    )
    if entropy is None and (kl is None or clipped is None):
        raise Missing("the policy's entropy and its updates have fewer than {least} finite points", least=min_points)
    if not _is_no_better(returns, min_noise_ratio * returns.noise):
        return
    lost_at = _lost_at(entropy, max_entropy) if entropy is not None else None
    if entropy is not None and lost_at is not None and entropy.share_of_run(int(entropy.steps[lost_at])) <= latest:
        yield _of_entropy(entropy, lost_at, returns)
    elif kl is not None and clipped is not None:
        median_kl, median_clipped = (float(np.median(s.values[len(s) // 2 :])) for s in (kl, clipped))
        if median_kl > max_kl and median_clipped > max_clip_fraction:
            yield _of_updates(kl, median_kl, median_clipped, max_kl)


def _is_no_better(returns: Series, noise: float) -> bool:
    """Whether the return ends where it began, or has lost half of what it had gained."""
    gained = float(returns.smoothed(share=0.1, least=5).max()) - returns.start
    kept = returns.end - returns.start
    return kept <= noise or kept <= 0.5 * gained


def _lost_at(entropy: Series, max_entropy: float) -> int | None:
    """The point from which on the entropy stays near zero."""
    if entropy.start <= 0 or float(entropy.values.min()) < 0:
        return None
    above = np.flatnonzero(entropy.smoothed() > max_entropy * entropy.start)
    after = int(above[-1]) + 1 if len(above) else 0
    return after if after < len(entropy) else None


def _of_entropy(entropy: Series, lost_at: int, returns: Series) -> Diagnosis:
    step, last = int(entropy.steps[lost_at]), int(entropy.steps[-1])
    return Diagnosis(
        Message(
            "The policy's entropy fell from {start} to {end} (near zero since step {step}); the mean return went from {before} to {after}.",
            start=entropy.start,
            end=entropy.end,
            step=step,
            before=returns.start,
            after=returns.end,
        ),
        Severity.ERROR,
        Confidence.HIGH if entropy.end <= 0.01 * entropy.start else Confidence.MEDIUM,
        onset_step=step,
        last_step=last,
        exhibits=(
            SeriesExhibit(((entropy.run, entropy.tag),), (Mark(step, last, Message("no exploration")),)),
            SeriesExhibit(((returns.run, returns.tag),)),
        ),
        explains=("reward-collapse", "no-return-improvement"),
    )


def _of_updates(kl: Series, median_kl: float, median_clipped: float, max_kl: float) -> Diagnosis:
    small = np.flatnonzero(kl.smoothed() <= max_kl)
    step, last = int(kl.steps[min(int(small[-1]) + 1, len(kl) - 1)] if len(small) else kl.steps[0]), int(kl.steps[-1])
    return Diagnosis(
        Message(
            "Updates of the policy are too large (median KL {kl}, {clipped:%} of the samples clipped) and the return does not improve.",
            kl=median_kl,
            clipped=median_clipped,
        ),
        Severity.ERROR,
        Confidence.MEDIUM,
        onset_step=step,
        last_step=last,
        exhibits=(SeriesExhibit(((kl.run, kl.tag),), (Mark(step, last, Message("updates too large")),)),),
        fixes=("smaller-policy-updates", "normalize-rewards", "entropy-bonus", "keep-best-policy"),
        explains=("reward-collapse", "no-return-improvement"),
    )
