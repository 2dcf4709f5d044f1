"""Almost all memory is in use at the fullest moment.

## Why it matters

The training fits, as long as nothing changes. One longer batch, an evaluation, a second process on the device or some
fragmentation ends it with an out-of-memory error, often after hours. On the host the system begins to swap, or ends the
process without a word.

## How it is found

In captures with allocator events: the most that was in use (of a TPU, stack and heap together) against the allocator's
capacity, or that of the device. From `info_share` (85%) on it is worth knowing, from `warn_share` (95%) on a warning:
the rest is less than what one more layer's activations or cuDNN's workspace take. What PyTorch only keeps for later
(*reserved*) does not count, since it gives it back when a request fails.

In scalars whose tag says that they are a percentage, with `min_points` (5) points or more, the same limits hold, if the
value moves by `min_change` (5) points: a constant 97% is a framework that takes the whole device at its start. What is
read from the device (`gpu`, `vram`) is never more than worth knowing, because it contains what frameworks keep for later.

`num_alloc_retries` of PyTorch (Lightning's DeviceStatsMonitor, torchtitan) counts how often no memory was left and the cache
was given back; it is a warning if it still rises in the second half of the run.

## When it is wrong

A batch that was made as large as fits by an automatic search, with batches of one size and nothing else on the device, is
well used. The memory of a host contains caches of files, which the system gives back.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Mark, SeriesExhibit, Severity
from tb_advisor.evidence.memory import DEVICE_WORDS, AllocatorMemory, no_memory, unit_of
from tb_advisor.evidence.roles import words
from tb_advisor.memory_use import NEAR_LIMIT, allocator_exhibits
from tb_advisor.message import Message, Missing, Value
from tb_advisor.rule import rule
from tb_advisor.series import Series


@rule(
    category="memory",
    fixes=(
        "smaller-batch",
        "gradient-accumulation",
        "gradient-checkpointing",
        "mixed-precision",
        "smaller-optimizer-state",
        "allocator-settings",
        "memory-share",
        "arrays-in-workers",
    ),
)
def memory_near_limit(
    logged_memory: tuple[Series, ...],
    allocator_memory: tuple[AllocatorMemory, ...],
    allocation_retries: tuple[Series, ...],
    *,
    info_share: float = NEAR_LIMIT,
    warn_share: float = 0.95,
    min_change: float = 5.0,
    min_points: int = 5,
) -> Iterator[Diagnosis]:
    """One diagnosis for each capture and each percentage that comes near its limit, and one for failed requests."""
    shares = [s.finite for s in logged_memory if unit_of(s.tag) == "%" and len(s.finite) >= min_points]
    known = [memory for memory in allocator_memory if memory.capacity]
    retries = [s.finite for s in allocation_retries if len(s.finite) >= min_points]
    if not (shares or known or retries):
        raise _missing(logged_memory, allocator_memory, min_points)
    for name in dict.fromkeys(memory.capture.name for memory in known):
        full = [memory for memory in known if memory.capture.name == name and _share(memory) >= info_share]
        if full:
            yield _of_allocator(max(full, key=_share), len(full) - 1, warn_share)
    for series in shares:
        if 100 * info_share <= series.values.max() <= 100 and np.ptp(series.values) >= min_change:
            yield _of_percentage(series, info_share, warn_share)
    for series in retries:
        if series.values[-1] > series.values[0]:
            yield _of_retries(series)


def _missing(logged: tuple[Series, ...], allocators: tuple[AllocatorMemory, ...], least: int) -> Missing:
    if allocators:
        return Missing("the capture {capture} does not say how much memory there is", capture=allocators[0].capture.name)
    if any(len(series.finite) >= least for series in logged):
        return Missing("no memory scalar is a percentage, and no capture says how much memory there is")
    return no_memory(logged, allocators, least, 1)


def _share(memory: AllocatorMemory) -> float:
    return memory.fullest.used / memory.capacity if memory.capacity else 0.0


def _of_allocator(memory: AllocatorMemory, others: int, warn_share: float) -> Diagnosis:
    fullest, capacity = memory.fullest, memory.capacity or 0.0
    free = max(0.0, capacity - fullest.used)
    values: dict[str, Value] = {}
    when = "" if fullest.step is None else ", in step {step:d}"
    if fullest.step is not None:
        values["step"] = fullest.step
    request = ""
    if fullest.op and fullest.requested:
        request = "; its largest request is {requested:bytes}, of {op}"
        values |= {"requested": fullest.requested, "op": fullest.op}
    more = "; {others} more allocators come as near" if others > 1 else "; one more allocator comes as near" if others else ""
    message = Message(
        f"{{allocator}} has {{used:bytes}} of {{capacity:bytes}} ({{share:%}}) in use at its fullest moment{when}{request}{more}.",
        allocator=memory.allocator,
        used=fullest.used,
        capacity=capacity,
        share=_share(memory),
        others=others,
        **values,
    )
    return Diagnosis(
        message,
        Severity.WARNING if _share(memory) >= warn_share else Severity.INFO,
        Confidence.HIGH,
        onset_step=fullest.step,
        last_step=fullest.step,
        impact=Impact("memory", Message("A request for more than {free:bytes} ends the run.", free=free)),
        exhibits=allocator_exhibits(memory),
    )


def _of_percentage(series: Series, info_share: float, warn_share: float) -> Diagnosis:
    near = np.flatnonzero(series.values >= 100 * info_share)
    top = int(series.values.argmax())
    of_device = not DEVICE_WORDS.isdisjoint(words(series.tag))
    first, last = int(series.steps[near[0]]), int(series.steps[near[-1]])
    high = float(series.values[top])
    message = Message("{tag} reaches {top} % at step {step:d}.", tag=series.tag, top=high, step=int(series.steps[top]))
    mark = Mark(min(first, last), max(first, last), Message("{share:%} or more", share=info_share))
    return Diagnosis(
        message,
        Severity.WARNING if high >= 100 * warn_share and not of_device else Severity.INFO,
        Confidence.LOW if of_device else Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        exhibits=(SeriesExhibit(((series.run, series.tag),), (mark,)),),
        fixes=("smaller-batch", "gradient-accumulation", "gradient-checkpointing") if of_device else ("arrays-in-workers", "smaller-batch"),
    )


def _of_retries(series: Series) -> Diagnosis:
    count = round(float(series.values[-1] - series.values[0]))
    rises = np.flatnonzero(np.diff(series.values) > 0) + 1
    first, last = int(series.steps[rises[0]]), int(series.steps[rises[-1]])
    goes_on = bool(series.values[-1] > series.values[len(series) // 2])
    message = Message(
        "No memory was left for {count:d} requests, so that PyTorch gave its cache back and asked again ({tag}), first by step {first}.",
        count=count,
        tag=series.tag,
        first=first,
    )
    mark = Mark(min(first, last), max(first, last), Message("failed requests"))
    return Diagnosis(
        message,
        Severity.WARNING if goes_on else Severity.INFO,
        Confidence.HIGH if goes_on else Confidence.MEDIUM,
        onset_step=first,
        last_step=last,
        impact=Impact("time", Message("Each time the device stops until its memory is freed and taken again.")),
        exhibits=(SeriesExhibit(((series.run, series.tag),), (mark,)),),
        fixes=("allocator-settings", "smaller-batch", "gradient-checkpointing"),
    )
