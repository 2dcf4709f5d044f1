"""The key figures of a job: what somebody asks for who wants to know whether one training went better than another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence import Evidence
from tb_advisor.evidence.memory import AllocatorMemory, unit_of
from tb_advisor.evidence.metrics import Metric
from tb_advisor.evidence.roles import words
from tb_advisor.evidence.speed import Pace
from tb_advisor.evidence.trace_steps import StepTimes
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Missing
from tb_advisor.series import Floats, Series

# How a value is written, and on which scale a change counts.
PLAIN, SHARE, PERCENT, SECONDS, MILLISECONDS, BYTES = "", "share", "percent", "s", "ms", "bytes"

_NEIGHBOURS = 10
_BYTES = {"bytes": 1, "kB": 1e3, "MB": 1e6, "MiB": 2**20, "GB": 1e9, "GiB": 2**30}
_DEVICE_WORDS = frozenset("gpu cuda device hbm tpu vram".split())
_PEAK_WORDS = frozenset("peak max".split())


@dataclass(frozen=True)
class Figure:
    """One key figure of one job.

    `kind` says what it is ("best validation loss"), `tag` what it was read from (empty where no single tag tells it), `step`
    where a best value lies. `unit` is one of the constants of this module. `higher_is_better` is None where neither is.
    `noise` is the standard deviation by which chance alone moves it, as far as one job tells. `of_training` says that it is
    measured on what the model was trained on: a repair may make it worse. Changes below `least` mean nothing.
    """

    kind: str
    tag: str
    value: float
    unit: str = PLAIN
    step: int | None = None
    higher_is_better: bool | None = False
    noise: float = 0.0
    of_training: bool = False
    least: float = 0.0


def key_figures(evidence: Evidence) -> tuple[Figure, ...]:
    """The figures that the log has, in the order in which they matter; of one kind the plainest tag first. Never raises `Missing`."""
    found: list[Figure] = []
    for figures in (_losses, _metrics, _return, _duration, _speed, _captured_step_time, _memory):
        with suppress(Missing), np.errstate(all="ignore"):
            found.extend(figures(evidence))
    return tuple(found)


def _losses(evidence: Evidence) -> Iterable[Figure]:
    with suppress(Missing):
        yield from _best("best validation loss", evidence["val_loss"], higher_is_better=False)
    yield from _last("training loss at the end", evidence["train_loss"], higher_is_better=False, of_training=True)


def _metrics(evidence: Evidence) -> Iterable[Figure]:
    measured: list[Metric] = [m for m in evidence["metrics"] if m.series.finite.stored_values.any()]
    validation = sorted((m for m in measured if m.is_validation), key=lambda m: m.is_test)
    for metric in validation or measured:
        split = "validation" if metric.is_validation else "training"
        yield from _best(
            f"best {split} metric",
            metric.series,
            higher_is_better=metric.higher_is_better,
            unit=_unit(metric),
            of_training=not metric.is_validation,
        )


def _return(evidence: Evidence) -> Iterable[Figure]:
    return _last("return at the end", evidence["episode_return"], higher_is_better=True)


def _duration(evidence: Evidence) -> Iterable[Figure]:
    job: Job = evidence["job"]
    ends = [(float(s.wall_times.min()), float(s.wall_times.max())) for s in job.scalars if len(s)]
    if ends and math.isfinite(seconds := max(end for _, end in ends) - min(start for start, _ in ends)):
        yield Figure("duration", "", seconds, SECONDS, higher_is_better=None)


def _speed(evidence: Evidence) -> Iterable[Figure]:
    pace: Pace = evidence["pace"]
    times, tag = pace.times.values, pace.times.tag
    if pace.source == "step_time":
        yield Figure("step time", tag, float(np.median(times)), noise=_noise_of_median(times))
    else:
        kind = "throughput" if pace.source == "throughput" else "steps per second"
        yield Figure(kind, tag, float(1 / np.median(times)), higher_is_better=True, noise=_noise_of_median(1 / times))


def _captured_step_time(evidence: Evidence) -> Iterable[Figure]:
    measured: tuple[StepTimes, ...] = evidence["step_times"]
    periods = np.concatenate([times.period_ms for times in measured])
    yield Figure("step time in captures", "", float(np.median(periods)), MILLISECONDS, noise=_noise_of_median(periods))


def _memory(evidence: Evidence) -> Iterable[Figure]:
    logged: tuple[Series, ...] = tuple(series for series in evidence["logged_memory"] if len(series.finite))
    if logged:
        yield max((_peak(series) for series in logged), key=_rank_of_memory)
        return
    allocators: tuple[AllocatorMemory, ...] = evidence["allocator_memory"]
    peaks = [float(memory.bytes.max()) for memory in allocators if len(memory.bytes)]
    if peaks:
        yield Figure("peak memory in captures", "", max(peaks), BYTES)


def _peak(series: Series) -> Figure:
    unit, highest = unit_of(series.tag), float(series.finite.values.max())
    if unit in _BYTES:
        return Figure("peak memory", series.tag, highest * _BYTES[unit], BYTES)
    return Figure("peak memory", series.tag, highest, PERCENT if unit == "%" else PLAIN)


def _rank_of_memory(figure: Figure) -> tuple[object, ...]:
    """Larger is better: the device's memory before the host's, bytes before percent, a logged peak before the usage."""
    named = set(words(figure.tag))
    return bool(_DEVICE_WORDS & named), figure.unit == BYTES, bool(_PEAK_WORDS & named), figure.value, figure.tag


def _best(kind: str, series: Series, *, higher_is_better: bool, unit: str = PLAIN, of_training: bool = False) -> Iterable[Figure]:
    """The best point, with the jitter of the points beside it. Twice nothing is nothing: a change below half a percent of the
    first value (of 1 where that is higher) is none.
    """
    finite = series.finite
    if not len(finite):
        return
    values = finite.values
    at = int(values.argmax() if higher_is_better else values.argmin())
    noise = finite[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS + 1].noise
    least = 0.005 * min(1.0, abs(float(values[0])))
    yield Figure(kind, series.tag, float(values[at]), unit, int(finite.steps[at]), higher_is_better, noise, of_training, least)


def _last(kind: str, series: Series, *, higher_is_better: bool, of_training: bool = False) -> Iterable[Figure]:
    """The median of the last tenth of the points, NaN where the series ends in NaN."""
    if not len(series):
        return
    value = float(np.median(series.values[-max(1, len(series) // 10) :]))
    noise = series.finite[-max(2 * _NEIGHBOURS, len(series) // 10) :].noise
    yield Figure(kind, series.tag, value, higher_is_better=higher_is_better, noise=noise, of_training=of_training)


def _unit(metric: Metric) -> str:
    values = metric.series.finite.stored_values
    if metric.higher_is_better and float(values.min()) >= 0 and float(values.max()) <= 1:
        return SHARE
    return PERCENT if metric.is_accuracy else PLAIN


def _noise_of_median(values: Floats) -> float:
    """Standard error of the median: 1.25 standard deviations ÷ √n, the deviation from the median absolute one (× 1.4826)."""
    return float(1.25 * 1.4826 * np.median(np.abs(values - np.median(values))) / math.sqrt(len(values)))
