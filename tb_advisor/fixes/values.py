"""Numbers for snippets that a run tells: each from its evidence, and where it comes from.

A value is a function of evidence by name, like a rule, and of the `diagnosis` that the fix is for. It gives None where the log
does not tell; the snippet's own number then stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tb_advisor.diagnosis import Diagnosis
from tb_advisor.evidence.hparams import Hyperparameter
from tb_advisor.evidence.trace_steps import InputKind, StepTimes
from tb_advisor.message import Message
from tb_advisor.series import Series

# So that a percentile means something.
_ENOUGH_NORMS = 10
_MOST_WORKERS = 16


@dataclass(frozen=True)
class RunValue:
    """A number of the run: what it is in words, and the functions that find it, of which the first that tells one counts."""

    source: Message
    of: tuple[Callable[..., float | None], ...]


def rate(learning_rates: tuple[Series, ...], hyperparameters: tuple[Hyperparameter, ...]) -> float | None:
    """The highest learning rate that was logged, else the one among the hyperparameters; above zero."""
    logged = float(learning_rates[0].values.max()) if learning_rates else 0.0
    named = setting(hyperparameters, "learning rate") or 0.0
    return logged if 0 < logged < math.inf else named if named > 0 else None


def rate_before_rise(learning_rate: Series, diagnosis: Diagnosis) -> float | None:
    """The learning rate before it rose by half or more, within the five points before the onset and behind the first tenth of the run;
    None where it did not rise there.
    """
    onset = diagnosis.onset_step
    if onset is None or not len(learning_rate) or learning_rate.share_of_run(onset) < 0.1:
        return None
    at = int(np.searchsorted(learning_rate.steps, onset, side="right"))
    nearby = learning_rate.values[max(0, at - 6) : at + 1]
    return float(nearby[0]) if len(nearby) > 1 and float(nearby.max()) >= 1.5 * float(nearby[0]) > 0 else None


def lower_rate(learning_rates: tuple[Series, ...], hyperparameters: tuple[Hyperparameter, ...]) -> float | None:
    """A tenth of the `rate`."""
    found = rate(learning_rates, hyperparameters)
    return found / 10 if found else None


def higher_rate(learning_rates: tuple[Series, ...], hyperparameters: tuple[Hyperparameter, ...]) -> float | None:
    """Ten times the `rate`."""
    found = rate(learning_rates, hyperparameters)
    return 10 * found if found else None


def clip_norm(gradient_norm: Series, diagnosis: Diagnosis) -> float | None:
    """The 90th percentile of the gradient norm before the trouble began; of all of it where that was with the first point."""
    norms = gradient_norm.finite
    onset = diagnosis.onset_step
    if len(norms) and onset is not None and onset > int(norms.steps[0]):
        norms = norms[norms.steps < onset]
    found = float(np.quantile(norms.values, 0.9)) if len(norms) >= _ENOUGH_NORMS else 0.0
    return found if 0 < found < math.inf else None


def best_step(val_loss: Series) -> int | None:
    """The step of the lowest validation loss."""
    finite = val_loss.finite
    return int(finite.steps[finite.values.argmin()]) if len(finite) else None


def patience(val_loss: Series) -> int | None:
    """One evaluation more than the longest wait for an improvement on the way to the best one, and 3 at least."""
    values = val_loss.finite.values
    if len(values) < 2:
        return None
    improved = np.flatnonzero(values < np.minimum.accumulate(np.append(np.inf, values[:-1])))
    return max(3, 1 + int(np.diff(improved).max(initial=1)))


def named_batch(hyperparameters: tuple[Hyperparameter, ...]) -> int | None:
    """The batch size among the hyperparameters."""
    named = setting(hyperparameters, "batch size", "per device train batch size", "train batch size")
    return round(named) if named is not None and named >= 1 and named == round(named) else None


def captured_batch(step_times: tuple[StepTimes, ...]) -> int | None:
    """How many elements a stage of tf.data takes for each batch, where the log has a capture of both."""
    for times in step_times:
        stages = times.pipeline.stages if times.pipeline is not None else ()
        for stage in stages:
            taken = [other.calls for other in stages if other.path.rpartition("::")[0] == stage.path]
            size = max(taken, default=0) / stage.calls if stage.name in ("Batch", "ParallelBatch") and stage.calls > 0 else 0.0
            if size >= 2 and abs(size - round(size)) < 0.1:
                return round(size)
    return None


def workers(step_times: tuple[StepTimes, ...]) -> int | None:
    """As many workers as loading takes longer than the rest of the step, where the DataLoader loads in the training process itself."""
    for times in step_times:
        if times.kind is InputKind.DATA_LOADER and not times.workers:
            wait, rest = float(times.wait_ms.mean()), float((times.period_ms - times.wait_ms).mean())
            return min(_MOST_WORKERS, max(2, math.ceil(wait / rest) + 1)) if rest > 0 else _MOST_WORKERS
    return None


def setting(hyperparameters: tuple[Hyperparameter, ...], *meanings: str) -> float | None:
    """The number of the first hyperparameter with one of these meanings; None where there is none."""
    return next((h.number for meaning in meanings for h in hyperparameters if h.meaning == meaning), None)


VALUES: Mapping[str, RunValue] = {
    "rate": RunValue(Message("the highest learning rate of this run"), (rate,)),
    "lower_rate": RunValue(
        Message("a tenth of the highest learning rate of this run, or the rate before it jumped"), (rate_before_rise, lower_rate)
    ),
    "higher_rate": RunValue(Message("ten times the highest learning rate of this run"), (higher_rate,)),
    "clip_norm": RunValue(Message("the 90th percentile of the gradient norm before the trouble began"), (clip_norm,)),
    "best_step": RunValue(Message("the step of the lowest validation loss"), (best_step,)),
    "patience": RunValue(Message("one evaluation more than this run waited for an improvement on the way to its best"), (patience,)),
    "batch": RunValue(Message("the batch size of this run"), (named_batch, captured_batch)),
    "workers": RunValue(Message("the workers that load as fast as the rest of the step runs"), (workers,)),
}
