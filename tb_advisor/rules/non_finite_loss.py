"""A loss is NaN or infinite.

## Why it matters

Every weight that such a training loss updates becomes NaN too, and stays so: what is trained after the first NaN is
lost, and so is a checkpoint written after it. TensorBoard shows a random sample of the points, so that a single NaN is
usually not in its chart.

## How it is found

Any NaN or infinite value in any loss, among all points that were logged (SageMaker Debugger's ExplodingTensor and
Keras's TerminateOnNaN ask the same). It is an error when the main training loss never becomes finite again. It is a
warning when it does, for mixed-precision training skips steps whose loss or gradient overflows and goes on healthy; and
when only a validation loss or one of several losses is broken while the main training loss stays finite. A loss that
starts again in the same directory after the NaN is judged from its restart on.

Where the log tells, the finding says what came in the five points before: a loss at three times its earlier level, a
restart, a learning rate that rose by half or more, a gradient norm that was infinite or at five times its usual level. Where a
dump of TensorFlow's debugger lies with the log, it says which operation made the first bad value, and from which line of code.

## When it is wrong

A tag that is called a loss but is not one, or one that is NaN by definition where there was nothing to measure (an
empty batch, a class without examples). Metrics are left out for that reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.circumstances import Circumstances
from tb_advisor.evidence.debugger import sentence_about
from tb_advisor.evidence.losses import Loss
from tb_advisor.logdir.debug_events import DebuggerDump
from tb_advisor.message import Message, number
from tb_advisor.rule import rule
from tb_advisor.rules.non_finite_operation import exhibit_of, in_order_of_cause

_LOST = (
    *("lower-learning-rate", "clip-gradients", "check-inputs", "clean-rows", "stable-loss", "safe-log", "loss-scaling"),
    *("scale-inputs", "better-initialization", "plot-schedule"),
    *("terminate-on-nan", "find-first-nan", "debugger-dump"),
)
_SURVIVED = ("check-inputs", "clean-rows", "stable-loss", "safe-log", "loss-scaling", "clip-gradients", "find-first-nan")

_CONSEQUENCES = (
    "class-collapse",
    "exploding-gradients",
    "learning-rate-jump",
    "loss-divergence",
    "loss-not-decreasing",
    "noisy-validation",
    "oscillating-loss",
    "overfitting",
    "overtraining",
    "underfitting",
)


@rule(category="stability", fixes=_LOST)
def non_finite_loss(
    losses: tuple[Loss, ...], circumstances: Circumstances, debugger_dump: tuple[tuple[str, DebuggerDump], ...] = ()
) -> Iterator[Diagnosis]:
    """One diagnosis for the job: the loss that matters most, and the others that broke with it."""
    broken = [loss for loss in losses if not np.isfinite(loss.series.values).all()]
    if not broken:
        return
    lost = [loss for loss in broken if loss.is_main and not loss.is_validation and not np.isfinite(loss.series.values[-1])]
    if not lost and all(loss in broken and not np.isfinite(loss.series.values[-1]) for loss in losses):
        lost = broken
    first = lost[0] if lost else min(broken, key=lambda loss: float(loss.series.wall_times[_first_bad(loss)]))
    shown = [first, *(loss for loss in broken if loss is not first and loss.series.shares_axis_with(first.series))]
    curves = dict.fromkeys([*((loss.series.run, loss.series.tag) for loss in shown), *circumstances.beside(first.series)])
    directory, dump = next(((where, dump) for where, dump in debugger_dump if dump.bad), ("", None))
    broke = dump.bad[0] if dump else None
    fixes = _LOST if lost else _SURVIVED
    yield Diagnosis(
        _message(first) + _before(first, circumstances) + (Message(" ") + sentence_about(broke) if broke else Message("")),
        severity=Severity.ERROR if lost else Severity.WARNING,
        confidence=Confidence.HIGH,
        onset_step=min(int(loss.series.steps[_first_bad(loss)]) for loss in shown),
        last_step=max(_last_bad_step(loss) for loss in shown),
        impact=_impact(first) if lost else None,
        exhibits=(
            SeriesExhibit(tuple(curves), tuple(map(_mark, shown))),
            *((exhibit_of(directory, dump),) if dump else ()),
        ),
        fixes=in_order_of_cause(fixes, broke) if broke else fixes,
        explains=(*(_CONSEQUENCES if lost else ()), *(("non-finite-operation",) if broke else ())),
    )


def _first_bad(loss: Loss) -> int:
    return int(np.flatnonzero(~np.isfinite(loss.series.values))[0])


def _last_bad_step(loss: Loss) -> int:
    return int(loss.series.steps[np.flatnonzero(~np.isfinite(loss.series.values))[-1]])


def _kind(loss: Loss) -> str:
    return number(float(loss.series.values[_first_bad(loss)]))


def _mark(loss: Loss) -> Mark:
    start, end = int(loss.series.steps[_first_bad(loss)]), _last_bad_step(loss)
    template = "{loss} {kind}" if start == end else "{loss} {kind} from step {start}"
    return Mark(start, end, Message(template, loss=loss.name, kind=_kind(loss), start=start))


def _message(loss: Loss) -> Message:
    values = loss.series.values
    at = _first_bad(loss)
    bad = int((~np.isfinite(values)).sum())
    before: Sequence[float] = values[:at][np.isfinite(values[:at])].tolist()
    name, kind, onset = loss.name, _kind(loss), int(loss.series.steps[at])
    if not np.isfinite(values).any():
        return Message("{loss} is {kind} from its first point, step {onset}, on.", loss=name, kind=kind, onset=onset)
    if np.isfinite(values[-1]) and bad == 1:
        return Message("{loss} was {kind} at step {onset}, once; it became finite again.", loss=name, kind=kind, onset=onset)
    if np.isfinite(values[-1]):
        return Message(
            "{loss} was {kind} at step {onset} and in {count} points in all; it became finite again.",
            loss=name,
            kind=kind,
            onset=onset,
            count=bad,
        )
    return Message(
        "{loss} became {kind} at step {onset} and never recovered; the last finite value was {last}.",
        loss=name,
        kind=kind,
        onset=onset,
        last=before[-1] if before else float(values[np.isfinite(values)][-1]),
    )


def _before(loss: Loss, circumstances: Circumstances) -> Message:
    """What came before the first value that is not finite; empty where the log says nothing. The point itself is left out:
    there a gradient that is not finite is a consequence.
    """
    at = _first_bad(loss)
    values = loss.series.values[:at]
    cause = circumstances.before(loss.series, at - 1) if at else None
    recent, earlier = values[-5:], values[-55:-5] if at > 7 else values[:1]
    if not at or not recent.max() >= 3 * np.median(earlier) > 0:
        return cause or Message("")
    rose = Message(
        " It had risen to {peak} just before, {rise} times its level.",
        peak=float(recent.max()),
        rise=float(recent.max() / np.median(earlier)),
    )
    return rose + cause if cause else rose


def _impact(loss: Loss) -> Impact:
    onset = int(loss.series.steps[_first_bad(loss)])
    share = 1 - loss.series.share_of_run(onset)
    seconds = loss.series.seconds_after(onset)
    return Impact(
        "time", Message("{share:%} of the run ({seconds:duration}) came after it and is lost.", share=share, seconds=seconds), share
    )
