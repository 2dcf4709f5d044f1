"""What a part of the step time costs, said alike by every rule about profiler captures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tb_advisor.diagnosis import Confidence, Exhibit, Impact, Mark, SeriesExhibit, StepPart, TextExhibit, TraceExhibit
from tb_advisor.evidence.capture_places import CapturePlace
from tb_advisor.evidence.step_parts import Part, step_parts
from tb_advisor.evidence.trace_steps import StepTimes
from tb_advisor.logdir.captures import XPLANE
from tb_advisor.message import Message

Floats = NDArray[np.float64]

# A logged step time within this share of the measured one says the same: it contains evaluations, logging and other steps.
AGREEING = 0.25
# From so many measured steps on, a median is no accident.
CERTAIN_STEPS = 5


class Measured(Protocol):
    """Anything that was measured in the steps of one trace."""

    @property
    def times(self) -> StepTimes:
        """The steps."""


M = TypeVar("M", bound=Measured)


def share(times: StepTimes, cost_ms: Floats) -> float:
    """The share of the step time that `cost_ms` (one value a step) makes, 0-1."""
    return min(1.0, max(0.0, float(cost_ms.sum() / max(float(times.period_ms.sum()), 1e-9))))


def step_s(times: StepTimes) -> float:
    """The mean step time in seconds."""
    return float(times.period_ms.mean()) / 1000


def by_capture(measures: Iterable[M]) -> Iterator[list[M]]:
    """The measures of each capture, in the order of the captures."""
    groups: dict[str, list[M]] = {}
    for measure in measures:
        groups.setdefault(measure.times.capture.name, []).append(measure)
    yield from groups.values()


def by_training(measures: Iterable[M]) -> Iterator[list[M]]:
    """The measures of those that trained together: of one capture, or of the ranks of one run, which PyTorch records apart."""
    groups: dict[tuple[bool, str], list[M]] = {}
    for measure in measures:
        capture, is_rank = measure.times.capture, measure.times.steps.trace.rank is not None
        groups.setdefault((is_rank, capture.run if is_rank else capture.name), []).append(measure)
    yield from groups.values()


def confidence(times: StepTimes) -> Confidence:
    """High for five steps or more that the program marked, lower for fewer and for steps told from what repeats."""
    if times.steps.periods < CERTAIN_STEPS:
        return Confidence.MEDIUM if times.steps.are_marked else Confidence.LOW
    return Confidence.HIGH if times.steps.are_marked else Confidence.MEDIUM


def impact(times: StepTimes, saved: float) -> Impact:
    """What is won when the share `saved` of the step time goes, and the bound that this implies."""
    rest = max(1 - saved, 1e-3)
    text = Message(
        "Without that a step would take {rest:duration}: at most {speedup:.1f}× faster.", rest=rest * step_s(times), speedup=1 / rest
    )
    return Impact("time", text, share=saved)


# Parts of a step as charts name them, in the order in which they are stacked.
_LABELS = {
    Part.DEVICE: Message("device at work"),
    Part.COMMUNICATION: Message("communicating"),
    Part.HOST: Message("host at work"),
    Part.COMPILE: Message("preparing functions"),
    Part.IDLE: Message("idle"),
    Part.REST: Message("everything else"),
    Part.INPUT: Message("waiting for input"),
}
# Less of a step than this is not worth a name.
_LEAST_PART = 0.001


def chart(times: StepTimes, cost_ms: Floats, label: Message, tool: str, *within: Part) -> TraceExhibit:
    """The steps, and what `cost_ms` takes of each: of the parts `within`, in their order, or across all parts where none is named.
    `tool` is the tool of the Profile tab that shows it.
    """
    in_tab = times.capture.in_profile_tab
    cost = np.clip(cost_ms, 0.0, times.period_ms)
    return TraceExhibit(
        capture=times.capture.name,
        tool=tool if in_tab else "",
        host=times.steps.trace.file.removesuffix(XPLANE) if in_tab else times.steps.trace.host,
        steps=times.numbers,
        busy_ms=tuple((times.period_ms - cost).tolist()),
        wait_ms=tuple(cost.tolist()),
        wait_label=label,
        parts=_stack(times, cost, label, within),
    )


def place_exhibits(times: StepTimes, places: Mapping[str, CapturePlace]) -> tuple[Exhibit, ...]:
    """Where in the run the capture was recorded, on the curve of the loss and in words, and whether logged scalars agree with it."""
    place = places.get(times.capture.name)
    if place is None:
        return ()
    span = "{first} to {last}" if place.first < place.last else "{first}"
    where = f"Recorded at step {span} of {{end}} ({{name}})."
    said = Message(where, first=place.first, last=place.last, end=place.end, name=place.curve.tag)
    lines = [str(said)]
    if place.logged_s is not None:
        agrees = abs(place.logged_s / max(step_s(times), 1e-9) - 1) <= AGREEING
        verdict = "they agree." if agrees else "they disagree: the profiler slows steps, or these steps are not the usual ones."
        ours = f"A step takes {{measured:duration}} in the capture and {{logged:duration}} by {{tag}} near it: {verdict}"
        lines.append(str(Message(ours, measured=step_s(times), logged=place.logged_s, tag=place.logged_tag)))
    mark = Mark(place.first, place.last, Message("capture"))
    return SeriesExhibit(((place.curve.run, place.curve.tag),), (mark,)), TextExhibit(tuple(lines))


def _stack(times: StepTimes, cost_ms: Floats, label: Message, within: tuple[Part, ...]) -> tuple[StepPart, ...]:
    """The parts of the step times, without those that hardly occur; `cost_ms` is taken out of them as the last one where it lies within
    some of them, and of the others only what these do not hold.
    """
    parts = dict(step_parts(times))
    if within:
        left = cost_ms
        for part in (*within, *(part for part in reversed(_LABELS) if part not in within)):
            taken = np.minimum(left, parts.get(part, 0.0))
            parts[part] = parts.get(part, 0.0) - taken
            left = left - taken
    least = _LEAST_PART * float(times.period_ms.sum())
    named = [StepPart(part.value, text, tuple(parts[part].tolist())) for part, text in _LABELS.items() if part in parts]
    own = (StepPart("own", label, tuple(cost_ms.tolist())),) if within else ()
    return (*(part for part in named if sum(part.ms) > least), *own)
