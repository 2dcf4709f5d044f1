"""Nothing was logged for a long time in the middle of the run.

## Why it matters

The processors were paid for and did nothing: a data loader that waited for a worker, a network drive that was gone, a
collective operation that one rank never reached, a process that was stopped.

## How it is found

In the wall times of the scalar that is logged most often: its longest pause, as far as no other scalar or histogram was
written in it. That must be at least `min_ratio` (20) times as long as 95% of the others, at least `min_seconds`
(10 min), and at least `min_share` (10%) of the time from the first point to the last. At most `max_pauses` (3) may be
half as long: evaluations and checkpoints that take long come again and again. At least `min_events` (20) points must
lie on each side, so that a test score that is added on the next day is silent. No event file may have been opened in the
pause, and steps must not go back after it: that is a training that was stopped and taken up again.

A run that stalls and never logs again ends where it stalls, and looks like one that has ended; one that still runs may
log its next event in a moment. Neither is accused.

## When it is wrong

A machine that sleeps or a notebook whose next cell waits for its user. One long evaluation, download or compilation
by plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.speed import Pause
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Message
from tb_advisor.rule import rule

_FILE_TIME = re.compile(r"tfevents\.(\d{10})\b")


@rule(category="restarts", fixes=("find-stall", "stall-timeout", "dataloader-workers"))
def stalled_run(
    job: Job,
    longest_pause: Pause,
    *,
    min_ratio: float = 20.0,
    min_seconds: float = 600.0,
    min_share: float = 0.1,
    max_pauses: int = 3,
    min_events: int = 20,
) -> Iterator[Diagnosis]:
    """One diagnosis for the longest pause."""
    pause, curve = longest_pause, longest_pause.curve
    share = pause.seconds / pause.run_seconds
    before, after = (int(step) for step in curve.steps[[pause.at, min(pause.at + 1, len(curve) - 1)]])
    if (
        pause.seconds < max(min_seconds, min_ratio * pause.usual)
        or share < min_share
        or pause.as_long > max_pauses
        or min(pause.at + 1, len(curve) - pause.at - 1) < min_events
        or after < before
        or _opened_in(job, pause)
    ):
        return
    yield Diagnosis(
        Message(
            "Nothing was logged for {seconds:duration} between steps {before} and {after}; 95% of the pauses are below {usual:duration}.",
            seconds=pause.seconds,
            before=before,
            after=after,
            usual=pause.usual,
        ),
        severity=Severity.WARNING,
        confidence=Confidence.HIGH if pause.seconds >= 5 * min_ratio * pause.usual else Confidence.MEDIUM,
        onset_step=before,
        last_step=after,
        impact=Impact(
            "time", Message("{share:%} of the run ({seconds:duration}) passed without an event.", share=share, seconds=pause.seconds), share
        ),
        exhibits=(SeriesExhibit(((curve.run, curve.tag),), (Mark(before, after, Message("nothing logged")),)),),
    )


def _opened_in(job: Job, pause: Pause) -> bool:
    """Whether an event file was opened in the pause. Its name says when; files whose names do not are taken for it."""
    names = [PurePath(name).name for run in job.runs.values() for name in run.file_names]
    opened = [_FILE_TIME.search(name) for name in names]
    if any(found is None for found in opened):
        return len(names) > 1
    return any(-1 <= float(found[1]) - pause.start <= pause.seconds + 60 for found in opened if found)
