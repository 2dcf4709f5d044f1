"""Profiler captures: where the time of each step goes, in parts that add up to it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np

from tb_advisor.evidence.device_time import collective_intervals
from tb_advisor.evidence.host_time import preparation
from tb_advisor.evidence.intervals import Floats, Intervals, covered, joined, merged
from tb_advisor.evidence.trace_steps import StepTimes, device_intervals
from tb_advisor.logdir.trace import SUMMARY, Line


class Part(Enum):
    """What a moment of a step counts as. A moment that could be several is the first of them."""

    DEVICE = "device"
    COMMUNICATION = "communication"
    INPUT = "input"
    COMPILE = "compile"
    HOST = "host"
    IDLE = "idle"
    REST = "rest"


def step_parts(times: StepTimes) -> Mapping[Part, Floats]:
    """Milliseconds of each part in each step, every one of shape ``(n,)``; together they are `period_ms`.

    `DEVICE` is work of any device and `COMMUNICATION` that in which devices only talk to each other; `INPUT` is waiting for input;
    `COMPILE` is tracing, compiling and what else a new function takes; in `HOST` the host does something else that was recorded. In
    `IDLE` the devices do nothing and nothing was recorded; where no device worked, or only sums over steps are known, that is no idleness
    but `REST`.
    """
    trace, edges = times.steps.trace, times.edges_ms
    busy = merged(*device_intervals(trace))
    work, collectives = collective_intervals(times)
    layers = [busy, times.waits, preparation(trace, busy)]
    if trace.format != SUMMARY:
        layers.append(_host_work(times))
    reached = [np.zeros(len(times.numbers))]
    taken: Intervals = (np.empty(0), np.empty(0))
    for layer in layers:
        taken = merged(*joined((taken, layer)))
        reached.append(np.maximum(covered(*taken, edges), reached[-1]))
    parts = dict(zip((Part.DEVICE, Part.INPUT, Part.COMPILE, Part.HOST), np.diff(reached, axis=0), strict=False))
    talk = np.minimum(covered(*joined((work, collectives)), edges) - covered(*work, edges), parts[Part.DEVICE])
    parts[Part.DEVICE] = parts[Part.DEVICE] - talk
    parts[Part.COMMUNICATION] = np.maximum(talk, 0.0)
    rest = np.maximum(times.period_ms - np.sum([*parts.values()], axis=0), 0.0)
    parts[Part.IDLE if len(busy[0]) and trace.format != SUMMARY else Part.REST] = rest
    return {part: parts[part] for part in Part if part in parts}


def _host_work(times: StepTimes) -> Intervals:
    """When something was recorded on the host. Step markers and what encloses a whole step say nothing about its moments."""
    return merged(*joined(_recorded(times, line) for line in times.steps.trace.host_lines if len(line)))


def _recorded(times: StepTimes, line: Line) -> Intervals:
    steps, edges = times.steps, times.edges_ms
    first = np.searchsorted(edges, line.start_ms)
    told = np.append(edges, np.inf)[np.minimum(first + 1, len(edges))] > line.end_ms
    if steps.are_marked:
        told &= ~line.where(lambda name: name.startswith(steps.marker))
    return merged(line.start_ms[told], line.end_ms[told])
