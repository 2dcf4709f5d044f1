"""Some steps take far longer than the others.

## Why it matters

The mean step time is what a training pays; a few slow steps can cost as much as all others. They have a reason of their
own: a checkpoint, an evaluation, a log that is written, a compilation, another program on the same machine.

## How it is found

From a profiler capture with at least `least_steps` (8) whole steps after the first, by the step time without the wait
for input, which has a rule of its own: how far the slow tenth of the steps lies above the median, (p90 - p50) / p50. It
is worth knowing from `info_excess` (0.3) on, where steps of `slow` (1.5) times the median lose at least `least_share`
(10%) of the time, and `least_ms` (5 ms) in the slowest of them. From `warn_excess` (1) on it is a warning, where there
are `certain_steps` (20) steps: of ten steps, the slow tenth is a single one.

The event of the host that makes the slow steps longer is named: of those that take at least half of the difference, the
innermost.

## When it is wrong

On a shared machine the steps of a CPU vary by half of their time. Steps of a few milliseconds are jittery everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
from tb_advisor.evidence.host_time import HostTime, extra_event
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule
from tb_advisor.step_cost import Floats, chart, confidence, impact, share

_MOST_NUMBERS = 5


@rule(category="compute", fixes=("move-periodic-work", "static-shapes"))
def step_time_outliers(
    host_time: tuple[HostTime, ...],
    *,
    least_steps: int = 8,
    certain_steps: int = 20,
    info_excess: float = 0.3,
    warn_excess: float = 1.0,
    slow: float = 1.5,
    least_share: float = 0.1,
    least_ms: float = 5.0,
) -> Iterator[Diagnosis]:
    """One diagnosis a trace."""
    enough = [host for host in host_time if len(host.times.period_ms) >= least_steps]
    if not enough:
        most = max(len(host.times.period_ms) for host in host_time)
        raise Missing("a capture has {most} whole steps after the first one; {least} are needed", most=most, least=least_steps)
    for host in enough:
        own = host.times.period_ms - host.times.wait_ms
        usual = max(float(np.median(own)), 1e-6)
        excess = float(np.quantile(own, 0.9)) / usual - 1
        lost_ms = np.where(own >= slow * usual, own - usual, 0.0)
        if excess >= info_excess and share(host.times, lost_ms) >= least_share and lost_ms.max() >= least_ms:
            severe = excess >= warn_excess and len(own) >= certain_steps
            yield _diagnosis(host, lost_ms, usual, Severity.WARNING if severe else Severity.INFO, certain_steps)


def _diagnosis(host: HostTime, lost_ms: Floats, usual: float, severity: Severity, certain_steps: int) -> Diagnosis:
    times = host.times
    slowest_first = [i for i in np.argsort(-lost_ms, kind="stable").tolist() if lost_ms[i] > 0]
    numbers = sorted(times.numbers[i] for i in slowest_first[:_MOST_NUMBERS])
    event = extra_event(times, lost_ms > 0)
    reason = ", mostly to {event}" if event else ""
    more = ", …" if len(slowest_first) > _MOST_NUMBERS else ""
    several = f"{{count}} of {{steps}} steps ({{numbers}}{more}) take up to"
    subject = several if len(slowest_first) > 1 else "Of {steps} steps, step {numbers} takes"
    return Diagnosis(
        Message(
            f"{subject} {{worst:duration}} where {{usual:duration}} is usual; {{lost:%}} of the time is lost{reason}.",
            count=len(slowest_first),
            steps=len(times.numbers),
            numbers=tuple(numbers),
            worst=(float(lost_ms.max()) + usual) / 1000,
            usual=usual / 1000,
            lost=share(times, lost_ms),
            event=event,
        ),
        severity,
        confidence(times) if len(lost_ms) >= certain_steps or not times.steps.are_marked else Confidence.MEDIUM,
        onset_step=numbers[0],
        last_step=max(times.numbers[i] for i in slowest_first),
        impact=impact(times, share(times, lost_ms)),
        exhibits=(chart(times, lost_ms, Message("longer than usual"), "overview_page"),),
    )
