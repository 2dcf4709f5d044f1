"""The best value of a hyperparameter lies at the edge of what was tried.

## Why it matters

The best job of a search is only the best of what was searched. Where it has the largest or the smallest value of a
hyperparameter that was tried, a better one may lie beyond it, and the search has not found the optimum but its own
border (Deep Learning Tuning Playbook, "Identifying bad search space boundaries").

## How it is found

Jobs are compared where they are one task (see `sweeps`): same names of hyperparameters, same measure, same scale. For
each hyperparameter with at least `min_values` (3) numbers, the best configuration at each number counts, with whatever
the other hyperparameters are there; of jobs that differ only by seed their mean. The best of these must lie at one end,
and must be better than the neighbour inside by more than chance: by more than two means of so many jobs differ in 95 of
100 cases (Student's t, from the jobs that differ only by seed). Where no jobs do, the last three numbers must get better
one after the other, the last step must be at least `min_share` (15%) of all the difference between the numbers, and
above `min_jitter_ratio` (2) times the jitter of the curves from one evaluation to the next; confidence is low then.

Values beyond which jobs failed are not an edge. Zero, and 1 for counts, have nothing below them; a random search, in
which every number was tried once beside others that vary, is not judged; more epochs or steps are a cost and no search.

## When it is wrong

The edge was meant: a batch that fills the memory, a width that the product allows. Or the measure itself changes with
the hyperparameter.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, SeriesExhibit, Severity, TableExhibit
from tb_advisor.evidence.sweeps import Sweep
from tb_advisor.evidence.trials import Trial
from tb_advisor.message import Message, Missing, Value
from tb_advisor.rule import rule


@dataclass(frozen=True)
class _Level:
    """The best configuration at one number: the mean cost of its `jobs` jobs, and the best of them."""

    number: float
    cost: float
    jobs: int
    trial: Trial | None


@rule(category="sweeps", fixes=("widen-search", "tune-learning-rate"))
def search_space_edge(
    sweeps: tuple[Sweep, ...], *, min_values: int = 3, min_share: float = 0.15, min_jitter_ratio: float = 2.0
) -> Iterator[Diagnosis]:
    """One diagnosis a hyperparameter whose best number is the last one that was tried."""
    searched = [(sweep, name) for sweep in sweeps for name in sweep.tuned if _is_search(sweep, name, min_values)]
    if not searched:
        raise Missing("no hyperparameter was tried with {count} numbers or more in jobs that can be compared", count=min_values)
    for sweep, name in searched:
        levels = _levels(sweep, name)
        best = min(range(len(levels)), key=lambda i: levels[i].cost)
        if best not in (0, len(levels) - 1) or not math.isfinite(levels[best].cost):
            continue
        inwards = levels if best == 0 else levels[::-1]
        if best == 0 and _has_nothing_below(levels):
            continue
        confidence = _confidence(sweep, inwards, min_share, min_jitter_ratio)
        if confidence is not None:
            yield _diagnosis(sweep, name, levels, inwards, confidence, is_lowest=best == 0)


def _is_search(sweep: Sweep, name: str, min_values: int) -> bool:
    levels = sweep.levels(name)
    setting = sweep.setting(sweep.trials[0], name)
    random = len(sweep.tuned) > 1 and all(len(trials) == 1 for _, trials in levels)
    return len(levels) >= min_values and not random and setting is not None and not setting.is_budget


def _levels(sweep: Sweep, name: str) -> list[_Level]:
    found: dict[float, list[_Level]] = defaultdict(list)
    for group in sweep.configurations:
        setting = sweep.setting(group[0], name)
        ended = sweep.ended(group)
        if setting is None or setting.number is None:
            continue
        trained = bool(ended) and 2 * sum(map(sweep.failed, group)) < len(group)
        cost = float(np.mean([sweep.cost(trial) for trial in ended])) if trained else math.inf
        found[setting.number].append(_Level(setting.number, cost, len(ended), ended[0] if trained else None))
    return [min(found[number], key=lambda level: level.cost) for number in sorted(found)]


def _has_nothing_below(levels: list[_Level]) -> bool:
    return levels[0].number == 0 or (levels[0].number == 1 and all(level.number.is_integer() for level in levels))


def _confidence(sweep: Sweep, inwards: list[_Level], min_share: float, min_jitter_ratio: float) -> Confidence | None:
    """How sure it is that the edge is better than what lies inside; None where it is not."""
    edge, inside, further = inwards[:3]
    gain = inside.cost - edge.cost
    if not any(math.isfinite(level.cost) for level in inwards[1:]):
        return Confidence.MEDIUM
    if not math.isfinite(gain):
        return None
    if sweep.noise is not None:
        needed = sweep.noise.least_difference(edge.jobs, inside.jobs)
        return None if gain <= needed else Confidence.HIGH if gain >= 2 * needed else Confidence.MEDIUM
    spread = max(level.cost for level in inwards if math.isfinite(level.cost)) - edge.cost
    jitter = max(best.jitter for level in (edge, inside) if level.trial and (best := sweep.best(level.trial)))
    certain = inside.cost < further.cost and gain >= min_share * spread and gain > min_jitter_ratio * jitter
    return Confidence.LOW if certain else None


def _diagnosis(
    sweep: Sweep, name: str, levels: list[_Level], inwards: list[_Level], confidence: Confidence, *, is_lowest: bool
) -> Diagnosis:
    edge, inside = inwards[:2]
    trials = [level.trial for level in levels if level.trial]
    job = edge.trial.job if edge.trial else ""
    values: dict[str, Value] = {"tag": sweep.tag, "best": abs(edge.cost), "name": name, "value": edge.number, "job": job}
    if not math.isfinite(inside.cost):
        lowest = "Only the lowest {name} that was tried, {value}, trained at all: the best {tag} is {best} there ({job})."
        highest = "Only the highest {name} that was tried, {value}, trained at all: the best {tag} is {best} there ({job})."
        message = Message(lowest if is_lowest else highest, **values)
    else:
        lowest = "The best {tag}, {best}, is at the lowest {name} that was tried, {value} ({job}); at {inside} it is {inside_best}."
        highest = "The best {tag}, {best}, is at the highest {name} that was tried, {value} ({job}); at {inside} it is {inside_best}."
        message = Message(lowest if is_lowest else highest, **values, inside=inside.number, inside_best=abs(inside.cost))
        if sweep.noise is not None:
            needed = sweep.noise.least_difference(edge.jobs, inside.jobs)
            message += Message(" Chance explains a difference of {needed}.", needed=needed)
    return Diagnosis(
        message,
        severity=Severity.INFO,
        confidence=confidence,
        exhibits=(
            TableExhibit(Message("The best job at each {name}", name=name), *sweep.table(trials)),
            SeriesExhibit(sweep.curves(trials)),
        ),
    )
