"""A profiler capture is too short, empty, unreadable or of an old format, so that no verdict is possible.

## Why it matters

A profile that holds one step, or none, looks like a profile: the tools open, the charts are empty or show the first step
with all its warm-up. The usual reasons are a callback with one batch (`profile_batch=2`), a loop without step markers, a
program that was killed before the profiler wrote its file, and a disk that filled up.

## How it is found

Each capture is described by what was found in it: its files, its devices, the step marker and the number of steps. A capture
with `least_steps` (3) whole steps in one of its traces is healthy; that is the least for which a median says more than
a single step. A CPU capture without a device is as healthy as any other. A file that is damaged, empty or cut off is a
warning. Too few steps, a file that would take more memory or time to read than there is, errors that the profiler
recorded, and tables of TensorFlow 2.0 to 2.10 without steps are worth knowing, no more.

## When it is wrong

A capture of one inference, or of a benchmark without steps, is complete for its purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, TextExhibit
from tb_advisor.evidence.trace_steps import CaptureTraces, MarkedSteps, StepSource
from tb_advisor.logdir.captures import OLD_FORMATS
from tb_advisor.logdir.trace import Trace
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule

_MOST_LINES = 20
# Sources that are no real marker: what was recorded has steps, but nobody named them.
_GUESSED = (StepSource.FUNCTION, StepSource.OPTIMIZER, StepSource.DATA_LOADER)


@rule(category="captures", fixes=("record-more-steps",))
def incomplete_capture(
    traces: tuple[CaptureTraces, ...], marked_steps: tuple[MarkedSteps, ...], *, least_steps: int = 3
) -> Iterator[Diagnosis]:
    """One diagnosis a capture that has no verdict or lost a file."""
    if not traces:
        raise Missing("no profiler capture in this job")
    for each in traces:
        steps = [s for s in marked_steps if s.capture is each.capture]
        best = max(steps, key=lambda s: s.periods, default=None)
        enough = best is not None and best.periods >= least_steps
        broken = next((file for file in each.unread if file.broken), None)
        damage = next((trace.damage for trace in each.traces if trace.damage is not None), None)
        refused = next((file for file in each.unread if not file.file.endswith(OLD_FORMATS)), None)
        report = next((note for trace in each.traces for note in trace.notes), None)
        exhibits = (TextExhibit(_lines(each, steps)),)
        name = each.capture.name
        if broken is not None:
            message = Message("Capture {capture} cannot be read in full: {reason}.", capture=name, reason=str(broken.reason))
            yield Diagnosis(message, Severity.WARNING, Confidence.HIGH, exhibits=exhibits)
        elif damage is not None:
            message = Message("Capture {capture} is incomplete: {reason}.", capture=name, reason=str(damage))
            yield Diagnosis(message, Severity.WARNING, Confidence.HIGH, exhibits=exhibits)
        elif not enough:
            yield Diagnosis(_too_little(each, best, least_steps), Severity.INFO, Confidence.HIGH, exhibits=exhibits)
        elif refused is not None:
            message = Message("Capture {capture} is read in part: {reason}.", capture=name, reason=str(refused.reason))
            yield Diagnosis(message, Severity.INFO, Confidence.HIGH, exhibits=exhibits)
        elif report is not None:
            message = Message("Capture {capture} may lack events: {reason}.", capture=name, reason=str(report))
            yield Diagnosis(message, Severity.INFO, Confidence.MEDIUM, exhibits=exhibits)


def _too_little(each: CaptureTraces, best: MarkedSteps | None, least_steps: int) -> Message:
    name = each.capture.name
    if best is None:
        reason = str(each.unread[0].reason) if each.unread else "no file"
        more = len(each.unread) - 1
        tail = " (and {more} more)" if more > 0 else ""
        return Message(f"Capture {{capture}} gives no verdict: {{reason}}{tail}.", capture=name, reason=reason, more=more)
    if not any(trace.events for trace in each.traces):
        return Message("Capture {capture} is empty: no event in {files}.", capture=name, files=_files(each))
    if best.source is None:
        return Message(
            "Capture {capture} holds no step: none of its {events} events is a step marker, a ProfilerStep or a function that repeats.",
            capture=name,
            events=sum(trace.events for trace in each.traces),
        )
    return Message(
        "Capture {capture} holds {steps} (marker {marker}), {periods} of them whole; {least} whole steps are needed for a verdict.",
        capture=name,
        steps=f"{len(best.starts_ms)} step{'' if len(best.starts_ms) == 1 else 's'}",
        marker=best.marker,
        periods=best.periods,
        least=least_steps,
    )


def _lines(each: CaptureTraces, steps: list[MarkedSteps]) -> tuple[str, ...]:
    """What was found in the capture, a line a file."""
    found = {s.trace.file: _describe(s.trace, s) for s in steps}
    found.update({file.file: str(file.reason) for file in each.unread})
    lines = [found.get(path.name, path.name) for path in each.capture.files]
    return (*lines[:_MOST_LINES], *([f"and {len(lines) - _MOST_LINES} more files"] if len(lines) > _MOST_LINES else []))


def _describe(trace: Trace, steps: MarkedSteps) -> str:
    busy = [plane for plane in trace.devices if any(len(line) for line in plane.lines)]
    devices = f"{len(busy)} of {len(trace.devices)} devices with events" if trace.devices else "no device (CPU only)"
    if steps.source is None:
        marker = "no step marker"
    else:
        kind = f", a {steps.source.value}" if steps.source in _GUESSED else ""
        marker = f"steps of {steps.marker}{kind}: {len(steps.starts_ms)}, whole ones: {steps.periods}"
    notes = "".join(f"; {note}" for note in trace.notes)
    return f"{trace.file}: host {trace.host}, {trace.events:,} events over {trace.window_ms:,.0f} ms, {devices}, {marker}{notes}"


def _files(each: CaptureTraces) -> str:
    return ", ".join(path.name for path in each.capture.files[:3])
