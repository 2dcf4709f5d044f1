"""Which job and checkpoint of a family has the best validation, and how sure that is.

## Why it matters

A search ends with one checkpoint. The last one of a job is rarely its best, and the best number of many noisy ones is
partly luck: a job that is as good within the noise and got there sooner is the better choice.

## How it is found

Jobs that may be compared (see `sweeps`) and ended are ranked by their best validation value, or by the best level of the
return of a policy. The best one is named. Where the effect of chance is known from jobs that differ only by seed, jobs
within one standard deviation of the best are its equals (that of its own configuration where three of its jobs ended;
the one-standard-error rule of Breiman et al., Classification and Regression Trees, 1984), and of these the one that
reached its best value soonest is named, where that took less than `max_time` (80%) of the time. The runner-up is the
next best job that is not kept, with its distance beside the difference that chance explains between two jobs. Without
jobs that differ only by seed the noise is not known: the best is named with low confidence. Jobs that failed or still
run are left out.

## When it is wrong

The validation set chose the hyperparameters and the checkpoint, so that its best value is too good by a little: a test
set has the last word. A measure that is logged on different data in different jobs cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity, TableExhibit
from tb_advisor.evidence.sweeps import Sweep, noise_of
from tb_advisor.evidence.trials import Trial
from tb_advisor.message import Message, Missing, Value
from tb_advisor.rule import rule


@rule(category="sweeps", fixes=("keep-best-checkpoint", "more-seeds"))
def which_run_to_keep(sweeps: tuple[Sweep, ...], *, max_time: float = 0.8) -> Iterator[Diagnosis]:
    """One diagnosis a group of comparable jobs of which two or more ended."""
    judged = [(sweep, ended) for sweep in sweeps if sweep.is_validation and len(ended := sweep.ended(sweep.trials)) > 1]
    if not judged:
        raise Missing("no two jobs that can be compared ended with a validation loss, a validation metric or a return")
    for sweep, ended in judged:
        bests = {trial.job: best for trial in ended if (best := sweep.best(trial)) is not None}
        noise, top = sweep.noise, ended[0]
        deviation = _deviation(sweep, top)
        equals = [trial for trial in ended if sweep.cost(trial) - sweep.cost(top) <= deviation]
        soonest = min(equals, key=lambda trial: bests[trial.job].seconds)
        keep = soonest if bests[soonest.job].seconds <= max_time * bests[top.job].seconds else top
        runner_up = next(trial for trial in ended if trial is not keep)
        kept, second = bests[keep.job], bests[runner_up.job]
        message = Message(
            "Keep {job} at step {step}: {tag} {value}, of {count} jobs.",
            job=keep.job,
            step=kept.step,
            tag=sweep.tag,
            value=kept.value,
            count=len(ended),
        )
        least = None if noise is None else noise.least_difference()
        message += _distance(kept.value, second.value, runner_up.job, least, is_best=keep is top)
        is_clear = least is not None and abs(kept.value - second.value) > least
        yield Diagnosis(
            message,
            severity=Severity.INFO,
            confidence=Confidence.LOW if noise is None else Confidence.HIGH if is_clear else Confidence.MEDIUM,
            exhibits=(
                TableExhibit(Message("Jobs, best first"), *sweep.table(sweep.ranked)),
                SeriesExhibit(
                    sweep.curves([keep, *(trial for trial in ended if trial is not keep)]),
                    (Mark(kept.step, kept.step, Message("keep {job}, step {step}", job=keep.job, step=kept.step)),),
                ),
            ),
        )


def _deviation(sweep: Sweep, top: Trial) -> float:
    """The standard deviation of the best job's configuration, or of all where it is not known; 0 where none is."""
    own = next(sweep.ended(group) for group in sweep.configurations if top in group)
    noise = noise_of([[sweep.cost(trial) for trial in own]], least_freedom=2) or sweep.noise
    return 0.0 if noise is None else noise.deviation


def _distance(kept: float, second: float, job: str, least: float | None, *, is_best: bool) -> Message:
    """What is said of the runner-up."""
    values: dict[str, Value] = {"runner_up": job, "second": second, "distance": abs(kept - second)}
    if least is None:
        return Message(
            " The runner-up is {runner_up} with {second}, a distance of {distance}; how much seeds differ is not known.", **values
        )
    if abs(kept - second) > least:
        return Message(
            " The runner-up is {runner_up} with {second}: {distance} behind, where chance explains {least}.", **values, least=least
        )
    if is_best:
        return Message(
            " The runner-up is {runner_up} with {second}: {distance} behind, no more than chance explains ({least}).", **values, least=least
        )
    return Message(
        " {runner_up} has {second}, but {distance} is no more than chance explains ({least}), and it took longer.", **values, least=least
    )
