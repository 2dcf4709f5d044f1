"""TensorBoard's chart draws a sample of the points, and what matters may not be among them.

## Why it matters

TensorBoard keeps 1,000 points of each scalar tag, picked at random (reservoir sampling), and draws these. A single NaN
or a spike of one point among 50,000 is in the chart with a chance of 2%: the curve looks healthy. The Advisor reads
every point.

## How it is found

A loss has more than `sample_size` (1,000, TensorBoard's default of `--samples_per_plugin scalars`) points, and among
them values that are NaN or infinite, or spikes (as the rule loss-spikes finds them). With n points the chance that one
of them is drawn is 1,000/n, and 1 - (1 - 1,000/n)^k that any of k is. It is said where that chance is at most
`max_chance` (50%). The last point is always drawn and does not count.

## When it is wrong

TensorBoard was started with `--samples_per_plugin scalars=0` or a larger sample; a log directory does not tell.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import Loss
from tb_advisor.evidence.spikes import find_spikes
from tb_advisor.message import Message
from tb_advisor.rule import rule
from tb_advisor.series import Series, Steps


@rule(category="logging", fixes=("draw-every-point",))
def chart_hides_points(losses: tuple[Loss, ...], *, sample_size: int = 1000, max_chance: float = 0.5) -> Iterator[Diagnosis]:
    """One diagnosis for the loss whose points are most likely hidden."""
    hidden = []
    for loss in losses:
        if len(loss.series) > sample_size:
            steps = _special(loss.series)
            if len(steps):
                hidden.append((1 - (1 - sample_size / len(loss.series)) ** len(steps), loss.series, steps))
    if not hidden:
        return
    chance, series, steps = min(hidden, key=lambda entry: entry[0])
    if chance > max_chance:
        return
    some = "any of the {count} that matter, the first at step {first},"
    yield Diagnosis(
        Message(
            "{tag} has {points} points, of which TensorBoard's chart draws {sample}: "
            + ("the one at step {first}, which matters," if len(steps) == 1 else some)
            + " is among them with a chance of {chance:%}.",
            tag=series.tag,
            points=len(series),
            sample=sample_size,
            count=len(steps),
            first=int(steps[0]),
            chance=chance,
        ),
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        onset_step=int(steps[0]),
        last_step=int(steps[-1]),
        exhibits=(
            SeriesExhibit(
                ((series.run, series.tag),),
                tuple(Mark(step, step, Message("{value}", value=series.value_at(step))) for step in steps[:20].tolist()),
            ),
        ),
    )


def _special(series: Series) -> Steps:
    """The steps of points that matter: not finite, or the top of a spike; without the last point, which is always drawn."""
    finite = series.finite
    broken = series.steps[~np.isfinite(series.values)]
    spikes = np.array(find_spikes(finite).steps if len(finite) > 30 else (), dtype=np.int64)
    steps: Steps = np.unique(np.concatenate([broken, spikes]))
    return steps[:-1] if len(steps) and steps[-1] == series.steps[-1] else steps
