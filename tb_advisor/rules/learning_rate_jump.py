"""The learning rate jumps up in mid-run, or is still rising when the run ends.

## Why it matters

A rate many times higher than what the model was trained with so far throws away what it has learned, often for good.
A rate that still rises at the end means that the warm-up was longer than the run: the model was never trained at the
rate that was meant, and never at a falling one.

## How it is found

A jump is a point at least `min_jump` (8) times as high as every point before it: a restart of the schedule returns to
a peak that was there before, and the largest drop in common use, a factor of 10, has no counterpart upwards. The
first `skip_share` (10%) of the run and the first two points belong to the warm-up. The rate is still rising when its
maximum lies in the last `end_share` (7%) of a finished run, is above `min_rise` (3) times the first point, and at
least `min_rising` (80%) of its changes go up. Fewer than `min_points` (5) points say nothing.

## When it is wrong

A search for the best learning rate raises it on purpose until the loss breaks. Training in phases may raise the rate
with each phase; a run that was stopped early may end in its warm-up.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(category="optimization", fixes=("plot-schedule", "shorter-warm-up", "schedule-length"))
def learning_rate_jump(
    learning_rate: Series,
    finished: bool,
    *,
    min_jump: float = 8.0,
    skip_share: float = 0.1,
    end_share: float = 0.07,
    min_rise: float = 3.0,
    min_rising: float = 0.8,
    min_points: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis: the largest jump, or a rate that rises to the end."""
    rate = finite_points(learning_rate, min_points)
    jump = _largest_jump(rate, skip_share)
    if jump is not None and rate.values[jump] >= min_jump * rate.values[:jump].max():
        yield _jumped(rate, jump, min_jump)
    elif finished:
        changes = np.diff(rate.values)
        changes = changes[changes != 0]
        first, highest = float(rate.values[0]), float(rate.values.max())
        rises = len(changes) >= min_points - 1 and float(np.mean(changes > 0)) >= min_rising
        at_end = rate.share_of_run(int(rate.steps[rate.values.argmax()])) >= 1 - end_share
        if rises and at_end and highest > max(0.0, min_rise * first):
            yield _still_rising(rate)


def _largest_jump(rate: Series, skip_share: float) -> int | None:
    """The point that is highest against all points before it, after the warm-up. None where there is none."""
    before = np.maximum.accumulate(rate.values)[:-1]
    after = rate.values[1:]
    ratio = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
    ratio[:2] = 0
    at = int(ratio.argmax()) + 1
    return at if ratio[at - 1] > 0 and rate.share_of_run(int(rate.steps[at])) >= skip_share else None


def _jumped(rate: Series, at: int, min_jump: float) -> Diagnosis:
    before, after = float(rate.values[:at].max()), float(rate.values[at])
    step, last = int(rate.steps[at]), int(rate.steps[-1])
    back = np.flatnonzero(rate.values[at:] <= 2 * before)
    end = int(rate.steps[at + back[0]]) if len(back) else last
    jumped = "The learning rate jumped to {after} at step {step}, {ratio} times its highest value before ({before})"
    return Diagnosis(
        Message(
            jumped + ("; it was back by step {end}." if len(back) else " and stays high."),
            after=after,
            step=step,
            ratio=after / before,
            before=before,
            end=end,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if after >= 2 * min_jump * before else Confidence.MEDIUM,
        onset_step=step,
        last_step=end,
        explains=("loss-spikes", "oscillating-loss"),
        exhibits=(SeriesExhibit(((rate.run, rate.tag),), (Mark(step, end, Message("{before} → {after}", before=before, after=after)),)),),
    )


def _still_rising(rate: Series) -> Diagnosis:
    first, last = int(rate.steps[0]), int(rate.steps[-1])
    start, end = float(rate.values[0]), float(rate.values.max())
    return Diagnosis(
        Message(
            "The learning rate rises from {start} to {end} and is still rising at the last step, {last}.", start=start, end=end, last=last
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if len(rate) >= 10 and end >= 6 * start else Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        impact=Impact(
            "time",
            Message("The whole run ({seconds:duration}) was a warm-up.", seconds=rate.seconds_after(first)),
            1.0,
        ),
        explains=("unfinished-training", "underfitting"),
        exhibits=(SeriesExhibit(((rate.run, rate.tag),), (Mark(first, last, Message("still rising")),)),),
    )
