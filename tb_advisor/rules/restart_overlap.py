"""Steps go back: a training was started again in the directory of an earlier one.

## Why it matters

Two trainings, or two passes over the same steps, lie in one curve. TensorBoard joins their points in the order in
which they were written, so that the line runs back across the chart; averages and the best value mix both; and what
was trained twice was paid for twice. A counter that starts again at zero also starts every schedule again that
depends on it.

## How it is found

The steps of a curve go back in writing order, and at least two points follow. At least half of the run's curves that go
on after the jump must go back, too, so that one evaluation logged at an earlier step is silent; where three points or
more were done again, curves of epochs and the like, whose points lie further apart than that, are not asked.
Steps that go back at more than a fifth of the points are in no order. The batch and evaluation counters of Keras,
which each call of `fit` starts again, do not count where the epochs go on. A second event file whose steps go on is
healthy.

Where the later points begin within `max_reset` (5%) of the first step, the counter started again; else the training
was resumed from an older checkpoint. Fewer than `min_share` (2%) of the steps done twice are the usual price of a
crash, and only worth knowing. Where the later curve began before the earlier one had ended, two processes wrote the
run at the same time.

All other rules look at the curve as it went on: points that a later pass replaced are left out, as TensorBoard does
where the writer says that a session started.

## When it is wrong

Each epoch counts its steps from zero by plan, or several workers write one curve.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.restarts import Restart
from tb_advisor.message import Message
from tb_advisor.rule import rule

_MOST_MARKS = 20
_CLOCK_SECONDS = 1.0  # wall times of two files may differ by as much without an overlap


@rule(
    category="restarts",
    fixes=("directory-per-run", "checkpoint-whole-state", "resume-step", "purge-step"),
)
def restart_overlap(
    restarts: tuple[Restart, ...],
    *,
    max_reset: float = 0.05,
    min_share: float = 0.02,
) -> Iterator[Diagnosis]:
    """One diagnosis that lists the restarts."""
    if not restarts:
        return
    first, last = restarts[0], max(restart.last_step for restart in restarts)
    length = last - min(first.first_step, *(restart.next_step for restart in restarts)) + 1
    share = sum(restart.repeated for restart in restarts) / length
    seconds = sum(max(0.0, restart.seconds_repeated) for restart in restarts)
    reset = first.next_step - first.first_step <= max_reset * (first.last_step - first.first_step)
    yield Diagnosis(
        _message(restarts, reset),
        severity=Severity.WARNING if share >= min_share else Severity.INFO,
        confidence=Confidence.HIGH,
        onset_step=first.next_step,
        last_step=last,
        impact=Impact(
            "time",
            Message(
                "{repeated} steps lie in the log twice; the first pass over them took {seconds:duration}.",
                repeated=sum(restart.repeated for restart in restarts),
                seconds=seconds,
            ),
        ),
        exhibits=(SeriesExhibit(((first.run, first.tag),), tuple(_mark(restart) for restart in restarts[:_MOST_MARKS])),),
    )


def _message(restarts: tuple[Restart, ...], reset: bool) -> Message:
    first, count = restarts[0], len(restarts)
    if first.seconds_between < -_CLOCK_SECONDS:
        said = "Two processes wrote this run at the same time: steps of {tag} go back from {last_step} to {next_step}"
    elif reset:
        said = "The steps of {tag} start again at {next_step} after step {last_step}: two trainings lie in one curve"
    else:
        said = "The steps of {tag} go back from {last_step} to {next_step}: {repeated} steps were done twice"
    often = ". Steps go back {count} times in all." if count > 1 else "."
    return Message(
        f"{said} (value {{before}} before, {{after}} after){often}",
        tag=first.tag,
        last_step=first.last_step,
        next_step=first.next_step,
        repeated=first.repeated,
        before=first.before,
        after=first.after,
        count=count,
    )


def _mark(restart: Restart) -> Mark:
    return Mark(restart.next_step, restart.last_step, Message("steps done twice"))
