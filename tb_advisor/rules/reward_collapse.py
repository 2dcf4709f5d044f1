"""The mean return fell far below its best and stayed there.

## Why it matters

The policy forgot what it had learned: an update that was too large, a value function that broke, a replay buffer that
holds only failures. The last checkpoint is not the one to keep, and all steps since the best brought nothing.

## How it is found

On the return smoothed over a tenth of the run. What was learned is the way from the lowest level before the best to
the best. It counts where it is at least `min_noise_ratio` (4) times the return's jitter. The return collapsed where
at least `min_loss` (50%) of it is gone at the end, the best came before `latest_best` (80%) of the run, nothing in
the last fifth comes back above that, and the end is not on its way up by `max_recovery` (25%) of the fall. The best
is the best of many: the loss must be `min_noise_ratio` times the jitter, too.

A return that ends further below its start than it had risen above it points to an environment or a reward that
changed, not to a policy that forgot: such findings have low confidence. Where the log names self-play or lessons, the
return is no measure and the rule does not apply.

## When it is wrong

The task gets harder by plan, rewards are rescaled, or exploration is raised again at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="reinforcement-learning",
    fixes=("keep-best-policy", "smaller-policy-updates", "entropy-bonus", "normalize-rewards", "more-rollouts"),
)
def reward_collapse(
    episode_return: Series,
    *,
    min_loss: float = 0.5,
    min_noise_ratio: float = 4.0,
    latest_best: float = 0.8,
    max_recovery: float = 0.25,
    min_points: int = 20,
) -> Iterator[Diagnosis]:
    """One diagnosis from the best return on."""
    returns = finite_points(episode_return, min_points)
    smooth = returns.smoothed(share=0.1, least=5)
    best_at = int(smooth.argmax())
    best, end, lowest = float(smooth[best_at]), returns.end, float(smooth[: best_at + 1].min())
    learned, lost, noise = best - lowest, best - end, min_noise_ratio * returns.noise
    best_step, last = int(returns.steps[best_at]), int(returns.steps[-1])
    if not (learned > noise and lost > noise and lost >= min_loss * learned > 0) or returns.share_of_run(best_step) >= latest_best:
        return
    last_fifth = smooth[-max(3, len(smooth) // 5) :]
    if float(last_fifth.max()) > best - min_loss * learned or end - float(smooth[best_at:].min()) >= max_recovery * lost:
        return
    share, seconds = 1 - returns.share_of_run(best_step), returns.seconds_after(best_step)
    yield Diagnosis(
        Message(
            "The mean return was highest around step {best_step} ({best}) and ends at {end}; {lost:%} of what was learned is gone.",
            best_step=best_step,
            best=best,
            end=end,
            lost=lost / learned,
        ),
        severity=Severity.WARNING,
        confidence=_confidence(lost / learned, len(returns) - best_at),
        onset_step=best_step,
        last_step=last,
        impact=Impact(
            "time", Message("{share:%} of the run ({seconds:duration}) came after the best policy.", share=share, seconds=seconds), share
        ),
        exhibits=(
            SeriesExhibit(((returns.run, returns.tag),), (Mark(best_step, last, Message("return −{lost:%}", lost=lost / learned)),)),
        ),
    )


def _confidence(lost: float, points_after: int) -> Confidence:
    if lost > 2:
        return Confidence.LOW
    return Confidence.HIGH if lost >= 0.75 and points_after >= 20 else Confidence.MEDIUM
