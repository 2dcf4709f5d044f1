"""Jobs that may be compared: one task, one measure, known hyperparameters; and how much chance alone moves that measure.

Jobs side by side in a directory need not be one task. They are compared where at least half of the family say their
hyperparameters, and then only with those of the same kind of task, the same names of hyperparameters (and the same words in their
names, where no HParams plugin says that they belong together), the same measure by tag, and a loss that starts on the same scale.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np

from tb_advisor.evidence.hparams import HPARAMS, NAME, TEXT, Hyperparameter, Value
from tb_advisor.evidence.trials import MEASURES, Best, Trial
from tb_advisor.message import Missing
from tb_advisor.message import Value as Cell

LOST, DIVERGED, STUCK, RUNNING, ENDED = "NaN", "diverged", "no progress", "running", "ended"
FAILED = frozenset({LOST, DIVERGED, STUCK})

_LEAST_SHARE = 0.5
_LEAST_FREEDOM = 2
# First losses of one task lie closer together than this, even where the first point is the mean of an epoch and one job learned in it.
_SAME_SCALE = 30.0
_MOST_ROWS, _MOST_CURVES = 50, 12
# Settings that make the loss another one: its values cannot be compared.
_CHANGE_LOSS = frozenset("loss l1 l2 label smoothing criterion reduction focal class weights lambda regularization regularizer".split())
# Two-sided 95% quantiles of Student's t for 1, 2, … degrees of freedom.
_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)


@dataclass(frozen=True)
class Noise:
    """How much the measure differs between jobs that differ by chance alone.

    `deviation` is the standard deviation, pooled over groups of `jobs` jobs in all with `freedom` degrees of freedom. `repeats` is
    the largest of these groups; `by_seed` says that a logged seed is what differs.
    """

    deviation: float
    freedom: int
    jobs: int
    repeats: tuple[Trial, ...] = ()
    by_seed: bool = False

    def least_difference(self, a: int = 1, b: int = 1) -> float:
        """The difference of means of `a` and of `b` jobs that chance alone exceeds in 5 of 100 pairs (Student's t)."""
        t = _T95[self.freedom - 1] if self.freedom <= len(_T95) else 2.0
        return t * self.deviation * math.sqrt(1 / a + 1 / b)


@dataclass(frozen=True)
class Sweep:
    """Jobs of one family that may be compared with each other by `measure` (role and tag)."""

    trials: tuple[Trial, ...]
    measure: tuple[str, str]

    @property
    def tag(self) -> str:
        """The tag of the measure."""
        return self.measure[1]

    @property
    def is_validation(self) -> bool:
        """Whether the measure tells how good a job is on other data than it was trained on."""
        return any((best := self.best(trial)) is not None and best.is_validation for trial in self.trials)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The names of the hyperparameters that are not the same in all jobs: learning rates first, seeds last."""
        names: dict[str, Hyperparameter] = {h.name: h for trial in self.trials for h in trial.hyperparameters}
        values = {name: {self._value(trial, name) for trial in self.trials} for name in names}
        found = [h for h in names.values() if len(values[h.name]) > 1]
        return tuple(h.name for h in sorted(found, key=lambda h: (h.is_seed, h.meaning != "learning rate", h.name)))

    @cached_property
    def tuned(self) -> tuple[str, ...]:
        """The same without the seeds."""
        seeds = {h.name for trial in self.trials for h in trial.hyperparameters if h.is_seed}
        return tuple(name for name in self.varying if name not in seeds)

    def levels(self, name: str) -> list[tuple[float, list[Trial]]]:
        """The numbers that a hyperparameter was set to, ascending, each with its jobs; empty where it is no number in one of them."""
        groups: dict[float, list[Trial]] = defaultdict(list)
        for trial in self.ranked:
            setting = self.setting(trial, name)
            if setting is None or setting.number is None:
                return []
            groups[setting.number].append(trial)
        return sorted(groups.items())

    def setting(self, trial: Trial, name: str) -> Hyperparameter | None:
        """A hyperparameter of a job, None where the job does not have it."""
        return self._settings[trial.job].get(name)

    def best(self, trial: Trial) -> Best | None:
        """The job's best point by the measure."""
        return trial.best(self.measure)

    def cost(self, trial: Trial) -> float:
        """The best value of the measure with the sign that makes lower better; infinite for a job that failed or has none."""
        best = self.best(trial)
        if best is None or self.status(trial) in FAILED:
            return math.inf
        return -best.value if best.higher_is_better else best.value

    def status(self, trial: Trial) -> str:
        """How the job ended: `LOST`, `DIVERGED`, `STUCK`, `RUNNING` or `ENDED`."""
        return self._statuses[trial.job]

    def failed(self, trial: Trial) -> bool:
        """Whether the job ended as NaN, diverged or learned nothing."""
        return self.status(trial) in FAILED

    @cached_property
    def ranked(self) -> tuple[Trial, ...]:
        """The jobs, best first; those that failed come last."""
        return tuple(sorted(self.trials, key=lambda trial: (self.cost(trial), trial.job)))

    @cached_property
    def configurations(self) -> tuple[tuple[Trial, ...], ...]:
        """The jobs grouped by all their hyperparameters but the seeds, and by the words of their names; best first."""
        groups: dict[tuple[object, ...], list[Trial]] = defaultdict(list)
        for trial in self.ranked:
            groups[trial.rest, tuple(self._value(trial, name) for name in self.tuned)].append(trial)
        return tuple(tuple(group) for group in groups.values())

    def ended(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those that ended well, so that their values count; a copy of a job counts once."""
        copies = {(self.cost(t), t.start, t.end, t.points, t.seconds): t for t in reversed(trials) if self.status(t) == ENDED}
        return sorted((t for t in copies.values() if math.isfinite(self.cost(t))), key=lambda t: (self.cost(t), t.job))

    @cached_property
    def noise(self) -> Noise | None:
        """How much chance moves the measure: from the better half of the configurations that were run more than once, for among them
        choices are made. None where fewer than two degrees of freedom are left.
        """
        return self.noise_without(None)

    def noise_without(self, left_out: Trial | None) -> Noise | None:
        """The same without one job."""
        groups = [self.ended([t for t in group if t is not left_out]) for group in self.configurations]
        repeated = sorted((g for g in groups if len(g) > 1), key=lambda g: float(np.mean([self.cost(t) for t in g])))
        repeated = repeated[: (len(repeated) + 2) // 2]
        by_seed = len(self.tuned) < len(self.varying)
        return noise_of([[self.cost(t) for t in group] for group in repeated], max(repeated, key=len, default=[]), by_seed, _LEAST_FREEDOM)

    def table(self, trials: Sequence[Trial]) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
        """Columns and rows of jobs: name, hyperparameters that vary, best value, its step, how it ended."""
        rows: list[tuple[Cell, ...]] = []
        for trial in trials[:_MOST_ROWS]:
            best = self.best(trial)
            settings = [self._value(trial, name) for name in self.varying]
            found = (best.value, best.step) if best else (None, None)
            rows.append((trial.job, *settings, *found, self.status(trial)))
        return ("job", *self.varying, self.tag, "step", "status"), tuple(rows)

    def curves(self, trials: Sequence[Trial]) -> tuple[tuple[str, str], ...]:
        """(run, tag) pairs of the measure's curves, of the first jobs only where they are many."""
        bests = [best for trial in trials if (best := self.best(trial))]
        return tuple((best.run, best.tag) for best in bests[:_MOST_CURVES])

    def _value(self, trial: Trial, name: str) -> Value | None:
        setting = self.setting(trial, name)
        return None if setting is None else setting.value

    @cached_property
    def _settings(self) -> dict[str, dict[str, Hyperparameter]]:
        return {trial.job: {h.name: h for h in trial.hyperparameters} for trial in self.trials}

    @cached_property
    def _statuses(self) -> dict[str, str]:
        starts = [t.start for t in self.trials if t.start is not None and not t.is_lost and not _rose(t)]
        ends = [t.end for t in self.trials if t.end is not None and not t.is_lost]
        start, lowest = (median(starts), min(ends)) if starts and ends else (math.nan, math.nan)
        return {trial.job: _status(trial, start, lowest) for trial in self.trials}


def noise_of(
    groups: Sequence[Sequence[float]], repeats: Sequence[Trial] = (), by_seed: bool = False, least_freedom: int = 1
) -> Noise | None:
    """The noise within groups of values; None where they have fewer degrees of freedom or all are the same."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom < least_freedom:
        return None
    deviation = math.sqrt(sum(float(np.var(group)) * len(group) for group in groups) / freedom)
    if not math.isfinite(deviation) or deviation == 0:
        return None
    return Noise(deviation, freedom, sum(map(len, groups)), tuple(repeats), by_seed)


def sweeps(trials: tuple[Trial, ...]) -> tuple[Sweep, ...]:
    """The groups of jobs that may be compared, largest first.

    Raises `Missing` where there is one job only, where less than half of them say their hyperparameters, and where no two are alike.
    """
    if len(trials) < 2:
        raise Missing("there is no other job to compare with")
    known = [trial for trial in trials if trial.hyperparameters and trial.task != "gan"]
    if len(known) < _LEAST_SHARE * len(trials):
        template = "the hyperparameters of {known} of {jobs} jobs are known, so that these jobs may be different tasks (looked for {names})"
        names = "the HParams plugin, args/text_summary, lr=0.1 or seed_3 in a job's name"
        raise Missing(template, known=len(known), jobs=len(trials), names=names)
    groups: dict[tuple[object, ...], list[Trial]] = defaultdict(list)
    for trial in known:
        groups[_kind(trial)].append(trial)
    found = [sweep for group in groups.values() if (sweep := _sweep(group)) is not None]
    if not found:
        raise Missing("no two of these jobs have the same hyperparameters by name, the same curve to compare and a loss of one scale")
    return tuple(sorted(found, key=lambda sweep: -len(sweep.trials)))


def _kind(trial: Trial) -> tuple[object, ...]:
    """What jobs must have in common to be one task."""
    by_source = {source: frozenset(h.name for h in trial.hyperparameters if h.source == source) for source in (HPARAMS, TEXT, NAME)}
    model = frozenset((h.name, h.value) for h in trial.hyperparameters if h.source == TEXT and h.name in ("model_type", "vocab_size"))
    rest = "" if by_source[HPARAMS] and not by_source[TEXT] else trial.rest
    return trial.task, by_source[HPARAMS], bool(by_source[TEXT]), model, by_source[NAME], rest


def _sweep(trials: Sequence[Trial]) -> Sweep | None:
    measure = _measure(trials)
    if measure is None:
        return None
    starts = [abs(t.start) for t in trials if t.start and not t.is_lost and not _rose(t)]
    usual = median(starts) if starts else 0.0
    alike = [t for t in trials if _of_scale(t, usual) and (t.is_lost or t.best(measure) is not None)]
    return Sweep(tuple(alike), measure) if len(alike) > 1 else None


def _measure(trials: Sequence[Trial]) -> tuple[str, str] | None:
    """The curve to compare these jobs by: the first in the order of `MEASURES` that nearly all have that did not end as NaN."""
    sound = [trial for trial in trials if not trial.is_lost] or list(trials)
    counts = Counter(best.measure for trial in sound for best in trial.bests)
    order = {measure: at for trial in reversed(sound) for at, measure in enumerate(best.measure for best in trial.bests)}
    shared = [measure for measure, count in counts.items() if count >= 0.8 * len(sound)]
    if _loss_changes(trials):
        shared = [measure for measure in shared if "loss" not in measure[0]]
    return min(shared, key=lambda measure: (MEASURES.index(measure[0]), order[measure]), default=None)


def _loss_changes(trials: Sequence[Trial]) -> bool:
    values: dict[str, set[Value]] = defaultdict(set)
    for trial in trials:
        for h in trial.hyperparameters:
            values[h.meaning].add(h.value)
    return any(len(values[meaning]) > 1 and _CHANGE_LOSS.intersection(meaning.split()) for meaning in values)


def _of_scale(trial: Trial, usual: float) -> bool:
    if trial.is_lost or not trial.start or not usual or _rose(trial):
        return True
    return usual / _SAME_SCALE <= abs(trial.start) <= usual * _SAME_SCALE


def _rose(trial: Trial) -> bool:
    """Whether the job's loss ends far above where it was, as `loss-divergence` asks it."""
    start, lowest, end = trial.start, trial.lowest, trial.end
    if start is None or lowest is None or end is None or start <= 0 or lowest < 0 or trial.points < 5:
        return False
    return end >= 2 * start or (end >= 3 * lowest and end - lowest >= 0.3 * (start - lowest))


def _status(trial: Trial, start: float, lowest: float) -> str:
    """How a job ended, beside siblings whose loss usually starts at `start` and of which the best ended at `lowest`."""
    if trial.is_lost:
        return LOST
    if _rose(trial) or (trial.end is not None and start > 0 and trial.end >= 2 * start):
        return DIVERGED
    if not trial.finished:
        return RUNNING
    own, end = trial.start, trial.end
    if own is None or end is None or not start > 0 or not 0 <= lowest <= 0.7 * start:
        return ENDED
    return STUCK if trial.points > 1 and end >= 0.97 * own and end >= 0.9 * start else ENDED
