"""The model stays far from its training examples, not only from new ones.

## Why it matters

A model that cannot follow the data that it sees is too small for the task, too strongly regularized, or not trained well: its
learning rate is too low or too high, or it was stopped early. More data and better regularization, which help against
overfitting, make it worse.

## How it is found

A loss alone does not say what the task allows, so that an anchor is needed. With an accuracy it is this: in the whole run no
smoothed accuracy of training or validation rose above `max_accuracy` (70%), and the training loss, smoothed over a sixth of
the run, never fell below `min_left` (50%) of its start, which is the logarithm of the number of classes for a model that
knows nothing. (Healthy classifiers among the runs that this was tried on end above 85% and below 45% of their start, label
smoothing included.) Where a penalty lifts the start, the loss may end at the level of a guess instead: within
`guess_tolerance` (10%) of the negative logarithm of the accuracy, which is where a model ends that gives the same probability
to 1/accuracy classes. More than `max_classes` (20) outcomes, told by the lower of the first loss and its start, are not judged:
what comes next in a text is random by nature, and a good model of it is right less than half of the time. The loss tells the
number k of outcomes only of a model that knows nothing, which is right in about 1/k of the cases: where the first accuracy is
more than `max_over_guess` (2.5) times that (a first epoch brings up to twice as much to a model that ends low; a pretrained
language model starts at 3 times and more), the model knew something at the start, and nothing is said.

Where only the prediction of numbers is measured (MAE, RMSE, R² …), the loss must stay above `min_left_of_regression` (75%) of
its start: the model explains little more than a constant would.

A loss that has levelled off may be at the noise in the data, which no model gets below: clicks, prices and wrong labels look
so, and the log cannot tell them from a model that is too small. Flat is a loss whose last fifth lies less than
`min_noise_ratio` (2) standard errors below the fifth before it, or whose second half brought less than `min_progress` (20%) of
its fall. The confidence is low where it is flat and only numbers are predicted, or the accuracy has come `max_learned` (25%)
of the way from a guess among k to always right, in training and validation alike (`max_difference`, 0.1), for noise is in both
and a penalty on training alone is not. (Models that were too small for their task or too strongly penalized ended at
22% or less, good ones of noisy labels at 31% to 60%.)

The loss must have moved by `min_fall` (5%), or nothing is learned at all, which is another diagnosis; it must not end above
its start; and the job must be over. Fewer than `min_points` (10) points say nothing.

## When it is wrong

Labels that are so noisy that the best model is hardly better than a guess. A task with many classes in its first hours of
training looks the same as one that is stuck.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.losses import finite_points
from tb_advisor.evidence.metrics import Accuracies, Metric
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.series import Series

# Shares of the progress: in the last quarter, of a loss that falls as it did before (a fifth on a straight line, as levels are
# medians), and in the second half, of one that still falls, if ever more slowly.
_STILL_FALLS, _SLOWS_DOWN = 0.18, 0.1
_OF_A_PLATEAU = (
    "less-regularization",
    "larger-model",
    "tune-learning-rate",
    "stronger-architecture",
    "feature-engineering",
    "train-longer",
)
_OF_A_SLOW_FALL = (
    "tune-learning-rate",
    "larger-model",
    "less-regularization",
    "train-longer",
    "stronger-architecture",
    "feature-engineering",
)


@rule(
    category="optimization",
    fixes=(
        "train-longer",
        "tune-learning-rate",
        "raise-learning-rate",
        "less-regularization",
        "larger-model",
        "stronger-architecture",
        "feature-engineering",
    ),
)
def underfitting(
    train_loss: Series,
    accuracies: Accuracies,
    metrics: tuple[Metric, ...],
    finished: bool,
    *,
    max_accuracy: float = 0.7,
    max_classes: int = 20,
    max_over_guess: float = 2.5,
    min_left: float = 0.5,
    min_left_of_regression: float = 0.75,
    guess_tolerance: float = 0.1,
    min_fall: float = 0.05,
    max_learned: float = 0.25,
    max_difference: float = 0.1,
    min_progress: float = 0.2,
    min_noise_ratio: float = 2.0,
    min_points: int = 10,
) -> Iterator[Diagnosis]:
    """One diagnosis over the whole run."""
    loss = finite_points(train_loss, min_points)
    known = [a.finite for a in (accuracies.train, accuracies.val) if a is not None and len(set(a.finite.steps.tolist())) >= 3]
    if not known and not any(metric.is_of_regression for metric in metrics):
        raise Missing("no accuracy and no metric of a regression says how far the model is from what the task allows")
    start, lowest = loss.start, float(loss.smoothed(share=1 / 6).min())
    if not finished or start <= 0 or lowest < 0 or lowest > (1 - min_fall) * start or loss.end >= start:
        return
    left = lowest / start
    falls = loss.fall_at_end >= min_noise_ratio and loss.progress_since(0.5) >= min_progress
    at_noise = not falls
    if known:
        if max(float(accuracy.smoothed().max()) for accuracy in known) > max_accuracy:
            return
        guesses = _guesses(loss.end, known[0].end, guess_tolerance)
        classes = max(2.0, math.exp(min(float(loss.values[0]), start, 20.0)))
        knew_nothing = min(float(accuracy.values[0]) for accuracy in known) <= max_over_guess / classes
        if not guesses and (left < min_left or classes > max_classes or not knew_nothing):
            return
        ends = [accuracy.end for accuracy in known]
        learned = (min(ends) - 1 / classes) / (1 - 1 / classes)
        at_noise = at_noise and not guesses and learned >= max_learned and max(ends) - min(ends) <= max_difference
    elif left < min_left_of_regression:
        return
    first, last = int(loss.steps[0]), int(loss.steps[-1])
    far = len(known) == 2 and max(a.end for a in known) <= 0.5 and left >= 0.6
    yield Diagnosis(
        _message(loss, known),
        severity=Severity.WARNING,
        confidence=Confidence.LOW if at_noise else Confidence.HIGH if far else Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        impact=Impact("loss", Message("{left:%} of the training loss at the start is left.", left=loss.end / start)),
        fixes=_fixes(loss),
        explains=("unfinished-training",),
        exhibits=(
            SeriesExhibit(
                ((loss.run, loss.tag),),
                (Mark(first, last, Message("{left:%} of the loss is left", left=loss.end / start)),),
            ),
        ),
    )


def _fixes(loss: Series) -> tuple[str, ...]:
    """What to try first: a loss that falls as before needs more steps or longer ones, a plateau another model; between the two it may be
    either. Empty for the rule's own order.
    """
    if loss.progress_since(0.75) >= _STILL_FALLS:
        return ()
    return _OF_A_SLOW_FALL if loss.progress_since(0.5) >= _SLOWS_DOWN else _OF_A_PLATEAU


def _guesses(loss: float, accuracy: float, tolerance: float) -> bool:
    """Whether a cross entropy is that of a guess among equals of which `accuracy` are right."""
    return 0 < accuracy < 1 and abs(loss + math.log(accuracy)) <= tolerance * loss


def _message(loss: Series, known: list[Series]) -> Message:
    ends = tuple(accuracy.end for accuracy in known)
    if not ends:
        template = "Training loss went from {start} to {end} only: the model explains little more than a constant would."
        return Message(template, start=loss.start, end=loss.end)
    template = "Accuracy ends at {accuracy:%}, and the training loss at {end}, {left:%} of its start."
    if len(ends) == 2:
        template = (
            "Training and validation accuracy end at {accuracy:%} and {val:%}, and the training loss at {end}, {left:%} of its start."
        )
    return Message(template, accuracy=ends[0], val=ends[-1], end=loss.end, left=loss.end / loss.start)
