"""What differs between a job that failed and its nearest sibling that trained.

## Why it matters

A job that trained is a working recipe. The fewer things differ from it, the shorter the list of causes.

## How it is found

A job failed where its loss ended as NaN or infinite, diverged, or ended where it had started while siblings learned. Of
the jobs of the same task that ended well the nearest is the one with the fewest differing hyperparameters, then with the
nearest numbers (by their ratio), then with the better value. Seeds and the length
of the training are no causes. One diagnosis names the failed job with the fewest differences, up to `max_differences`
(3); its table has the others, one of each configuration.

## When it is wrong

What differs in code, data or libraries is not in the log. A difference is not yet a cause: set it back and see.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tb_advisor.diagnosis import Confidence, Diagnosis, SeriesExhibit, Severity, TableExhibit
from tb_advisor.evidence.hparams import Hyperparameter
from tb_advisor.evidence.sweeps import Sweep
from tb_advisor.evidence.trials import Trial
from tb_advisor.message import Message, Missing, Scalar, number
from tb_advisor.rule import rule

_MOST_ROWS = 50


@dataclass(frozen=True)
class _Pair:
    """A job that failed, its nearest sibling, and the names of what differs; `causes` are those that may explain a failure."""

    failed: Trial
    sibling: Trial
    differing: tuple[str, ...]
    causes: tuple[str, ...]


@rule(category="sweeps", fixes=("use-sibling-settings", "lower-learning-rate", "more-seeds"))
def what_differs(sweeps: tuple[Sweep, ...], *, max_differences: int = 3) -> Iterator[Diagnosis]:
    """One diagnosis a group of comparable jobs of which some failed and some trained."""
    for sweep in sweeps:
        trained = sweep.ended(sweep.trials)
        failed = [trial for group in sweep.configurations if (trial := next(filter(sweep.failed, group), None))][:_MOST_ROWS]
        if not trained or not failed:
            continue
        pairs = sorted((_nearest(sweep, trial, trained) for trial in failed), key=lambda p: (len(p.causes), len(p.differing), p.failed.job))
        if len(pairs[0].causes) <= max_differences:
            yield _diagnosis(sweep, pairs)
    if not any(sweep.ended(sweep.trials) for sweep in sweeps):
        raise Missing("no job that can be compared ended well")


def _nearest(sweep: Sweep, failed: Trial, trained: list[Trial]) -> _Pair:
    def distance(other: Trial) -> tuple[int, int, float, float]:
        differing = _differing(sweep, failed, other)
        causes = _causes(sweep, failed, differing)
        ratios = sum(_ratio(sweep.setting(failed, name), sweep.setting(other, name)) for name in causes)
        return len(causes) + (failed.rest != other.rest), len(differing), ratios, sweep.cost(other)

    sibling = min(trained, key=distance)
    differing = _differing(sweep, failed, sibling)
    return _Pair(failed, sibling, differing, _causes(sweep, failed, differing))


def _differing(sweep: Sweep, a: Trial, b: Trial) -> tuple[str, ...]:
    return tuple(name for name in sweep.varying if _value(sweep, a, name) != _value(sweep, b, name))


def _causes(sweep: Sweep, failed: Trial, differing: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in differing if name in sweep.tuned and not ((h := sweep.setting(failed, name)) and h.is_budget))


def _value(sweep: Sweep, trial: Trial, name: str) -> Scalar:
    setting = sweep.setting(trial, name)
    return None if setting is None else setting.value


def _ratio(a: Hyperparameter | None, b: Hyperparameter | None) -> float:
    """How far two settings are apart: the logarithm of their ratio, 1 where they have none."""
    x, y = (None if h is None else h.number for h in (a, b))
    return abs(math.log(x) - math.log(y)) if x is not None and y is not None and x > 0 and y > 0 else 1.0


def _diagnosis(sweep: Sweep, pairs: list[_Pair]) -> Diagnosis:
    pair = pairs[0]
    alone = len(pair.causes) == 1 and pair.failed.rest == pair.sibling.rest
    rows = tuple((p.failed.job, sweep.status(p.failed), p.sibling.job, _described(sweep, p)) for p in pairs)
    return Diagnosis(
        _message(sweep, pair),
        severity=Severity.INFO,
        confidence=Confidence.HIGH if alone else Confidence.MEDIUM if len(pair.causes) < 2 else Confidence.LOW,
        exhibits=(
            TableExhibit(
                Message("Jobs that failed, each beside its nearest that trained"), ("job", "status", "sibling", "what differs"), rows
            ),
            SeriesExhibit(sweep.curves([pair.failed, pair.sibling])),
        ),
    )


def _message(sweep: Sweep, pair: _Pair) -> Message:
    values = {"job": pair.failed.job, "status": sweep.status(pair.failed), "sibling": pair.sibling.job}
    if pair.failed.rest != pair.sibling.rest and not pair.causes:
        return Message("{job} failed ({status}), {sibling} trained; only their names differ.", **values)
    if not pair.differing:
        return Message("{job} failed ({status}), {sibling} trained with the same hyperparameters.", **values)
    if not pair.causes:
        return Message(
            "{job} failed ({status}), {sibling} trained; the only difference is {names}: chance decides, or something that is not logged.",
            **values,
            names=pair.differing,
        )
    if len(pair.causes) == 1:
        return Message(
            "{job} failed ({status}) with {name} {value}; its nearest sibling that trained, {sibling}, has {other}.",
            **values,
            name=pair.causes[0],
            value=_value(sweep, pair.failed, pair.causes[0]),
            other=_value(sweep, pair.sibling, pair.causes[0]),
        )
    return Message(
        "{job} failed ({status}); its nearest sibling that trained, {sibling}, differs in {names}: {theirs} instead of {own}.",
        **values,
        names=pair.causes,
        theirs=tuple(_value(sweep, pair.sibling, name) for name in pair.causes),
        own=tuple(_value(sweep, pair.failed, name) for name in pair.causes),
    )


def _described(sweep: Sweep, pair: _Pair) -> str:
    def shown(trial: Trial, name: str) -> str:
        value = _value(sweep, trial, name)
        return number(value) if isinstance(value, float) else str(value)

    return ", ".join(f"{name} {shown(pair.failed, name)} / {shown(pair.sibling, name)}" for name in pair.differing)
