"""The loss zig-zags around a level that no longer falls.

## Why it matters

Steps that are too long jump from one side of the valley to the other. A lower learning rate, or one that falls, goes
down where this run only goes to and fro; the checkpoint that remains at the end is a matter of luck.

## How it is found

The first third of the run is left out. In the rest the training loss is averaged between evaluations (in at most 30
blocks), which takes out the noise of single batches. It must fall by less than `max_progress` (40%) from the first to
the last third of that part (by their medians, which one burst does not move), at more than `min_level` (12%) of the
start: what is left of a converged loss is noise. Where a first explosion lifts the start, its first point is the start.
The averages must change by `min_change` (6%, the median) from one to the next and turn round in at least
`min_reversals` (a third) of the cases.

The validation loss, which has no batches, must do the same at such a level: that is what tells it from small batches,
whose noise leaves a smooth validation loss. Two more things tell waves from noise on the way down. A validation loss
below its start whose later value is the lower in more than `max_falling` (75%) of all pairs still improves; so does a
training loss that falls in more than `max_train_falling` (85%) of them, for means of many batches show a trend more
clearly (in real waves up to 80%). And waves must go on to the end: where the last third changes by less than half of
`min_change`, noise (or a learning rate that fell) has settled.

Without a validation loss, or with fewer than `min_evaluations` (15), twice the change is asked for and the confidence
is low; fewer than half of that are not looked at. A learning rate that comes back (warm restarts, cycles) makes such
waves by design and is silent. Fewer than `min_points` (15) points say nothing, and a curve that begins with a restart
does not show the level at which it started.

## When it is wrong

A validation set of a few dozen examples, or one that changes between evaluations, zig-zags by itself. Data that are
sorted, or several data sets in turn, make waves in the training loss. Losses of reinforcement learning and adversarial
training are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.evidence.learning_rate import comes_back
from tb_advisor.evidence.losses import Loss, finite_points, main_validation
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Floats, Series, share_rising

MOST_BLOCKS = 30
_LEAST_OF_END = 5


@rule(category="stability", fixes=("lower-learning-rate", "decay-learning-rate", "clip-gradients"))
def oscillating_loss(
    train_loss: Series,
    losses: tuple[Loss, ...],
    circumstances: Circumstances,
    *,
    max_progress: float = 0.4,
    min_level: float = 0.12,
    min_change: float = 0.06,
    min_reversals: float = 1 / 3,
    max_falling: float = 0.75,
    max_train_falling: float = 0.85,
    min_evaluations: int = 15,
    min_points: int = 15,
) -> Iterator[Diagnosis]:
    """One diagnosis for the part of the run after its first third."""
    loss = finite_points(train_loss, min_points)
    if any(restart <= loss.steps[max(3, len(loss) // 20)] for restart in circumstances.restarts):
        raise Missing("{tag} begins with a restart: the level at which it started is gone", tag=loss.tag)
    if any(comes_back(rate) for rate in circumstances.learning_rates[:1]):
        return
    val = main_validation(losses)
    known = val is not None and len(val) >= min_evaluations
    tail = loss[len(loss) // 3 :]
    blocks = _means(tail.values, min(MOST_BLOCKS, len(tail), len(val) - len(val) // 3 if val is not None and known else MOST_BLOCKS))
    before, after = _thirds(blocks)
    if blocks.min() <= 0 or _comes_down(blocks, _start(loss), max_progress, min_level, max_train_falling):
        return
    curves = [blocks]
    if val is not None and len(val) >= min_evaluations / 2:
        later = val[len(val) // 3 :]
        curves.append(later.values)
        levels = later.levels(min(MOST_BLOCKS, len(later)))
        settled = _zigzag(later.values[-max(_LEAST_OF_END, len(later) // 3) :])[0] < min_change / 2
        if known and (settled or _comes_down(levels, _start(val), max_progress, min_level, max_falling)):
            return
    zigzags = [_zigzag(values) for values in curves]
    change, reversals = (min(numbers) for numbers in zip(*zigzags, strict=True))
    if change < (min_change if known else 2 * min_change) or reversals < min_reversals:
        return
    first, last = int(tail.steps[0]), int(tail.steps[-1])
    clear_cut = change >= 2 * min_change and reversals >= 1.2 * min_reversals
    yield Diagnosis(
        Message(
            "Training loss goes up and down by {change:%} at a time; from step {first} to the end its level went from {before} to {after}.",
            change=zigzags[0][0],
            first=first,
            before=before,
            after=after,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.LOW if not known else Confidence.HIGH if clear_cut else Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        impact=Impact(
            "time",
            Message(
                "{share:%} of the run ({seconds:duration}) brought no progress.",
                share=1 - loss.share_of_run(first),
                seconds=loss.seconds_after(first),
            ),
            1 - loss.share_of_run(first),
        ),
        explains=("overtraining", "loss-spikes", "noisy-validation"),
        exhibits=(SeriesExhibit(((loss.run, loss.tag),), (Mark(first, last, Message("±{change:%}", change=zigzags[0][0] / 2)),)),),
    )


def _means(values: Floats, blocks: int) -> Floats:
    """The means of about equal blocks, shape ``(blocks,)``."""
    return np.array([block.mean() for block in np.array_split(values, blocks)])


def _thirds(values: Floats) -> tuple[float, float]:
    """The medians of the first and the last third."""
    third = max(1, len(values) // 3)
    return float(np.median(values[:third])), float(np.median(values[-third:]))


def _comes_down(values: Floats, start: float, max_progress: float, min_level: float, max_falling: float) -> bool:
    """Whether a loss makes progress, by its thirds or in nearly all pairs of values, or has come down to what is noise. One that
    is above its start makes none.
    """
    before, after = _thirds(values)
    level = float(np.median(values))
    progress = after <= (1 - max_progress) * before or 1 - share_rising(values) > max_falling
    return level < start and (progress or level <= min_level * start)


def _start(series: Series) -> float:
    """The level at the start, or the first point where that is lower: an explosion in the first steps is no level."""
    return min(float(series.values[0]), series.start)


def _zigzag(values: Floats) -> tuple[float, float]:
    """The median relative change from one value to the next, and how often the direction turns, 0 to 1."""
    changes = np.diff(values)
    middle = np.abs(values[1:] + values[:-1]) / 2
    relative = np.divide(np.abs(changes), middle, out=np.zeros_like(changes), where=middle > 0)
    return float(np.median(relative)), float(np.mean(np.sign(changes[1:]) * np.sign(changes[:-1]) < 0))
