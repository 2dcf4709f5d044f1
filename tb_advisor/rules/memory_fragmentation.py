"""Memory is free, but in pieces too small to be of use.

## Why it matters

A request needs one piece. With batches of changing size the allocator cuts its memory into pieces that no later request
fits into: the run ends with an out-of-memory error that says that gigabytes are free, or holds a device for memory that it
does not use.

## How it is found

In captures with allocator events, at the moment with most in use, and only if at least `min_occupancy` (70%) of the capacity
is taken then: in an empty device fragmentation means nothing (0.4 to 0.6 is usual there). TensorFlow's and JAX's allocators
give the share of the free bytes that lie outside the largest free piece. PyTorch's takes memory from the device piece by
piece; what it holds and does not use at that moment is of no use to the fullest step. From `info_share` (30%) on it is worth
knowing, from `warn_share` (half) on a warning.

## When it is wrong

Where every request is small against the pieces that are free, nothing is lost. PyTorch gives back what it only holds when a
request fails; what stays then is what pieces in use pin.
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_advisor.diagnosis import Confidence, Diagnosis, Impact, Severity
from tb_advisor.evidence.memory import AllocatorMemory, no_memory
from tb_advisor.memory_use import allocator_exhibits
from tb_advisor.message import Message, Missing
from tb_advisor.rule import rule


@rule(category="memory", fixes=("allocator-settings", "memory-growth-option", "sizes-that-repeat", "smaller-batch"))
def memory_fragmentation(
    allocator_memory: tuple[AllocatorMemory, ...], *, min_occupancy: float = 0.7, info_share: float = 0.3, warn_share: float = 0.5
) -> Iterator[Diagnosis]:
    """One diagnosis a capture, for its most fragmented allocator."""
    if not allocator_memory:
        raise no_memory((), (), 0, 0)
    known = [memory for memory in allocator_memory if memory.capacity and memory.fullest.fragmentation is not None]
    if not known:
        template = "the capture {capture} says neither how much memory there is nor how it is cut up"
        raise Missing(template, capture=allocator_memory[0].capture.name)
    for name in dict.fromkeys(memory.capture.name for memory in known):
        full = [memory for memory in known if memory.capture.name == name and _occupancy(memory) >= min_occupancy]
        worst = max(full, key=_fragmentation, default=None)
        if worst is not None and _fragmentation(worst) >= info_share:
            yield _diagnosis(worst, warn_share)


def _occupancy(memory: AllocatorMemory) -> float:
    return memory.fullest.held / memory.capacity if memory.capacity else 0.0


def _fragmentation(memory: AllocatorMemory) -> float:
    return min(1.0, memory.fullest.fragmentation or 0.0)


def _diagnosis(memory: AllocatorMemory, warn_share: float) -> Diagnosis:
    fullest, capacity, fragmentation = memory.fullest, memory.capacity or 0.0, _fragmentation(memory)
    when = "" if fullest.step is None else ", in step {step:d}"
    if fullest.held > fullest.used:
        unused = fullest.held - fullest.used
        message = Message(
            f"At its fullest moment{when}, {{allocator}} holds {{held:bytes}} of {{capacity:bytes}} and uses {{used:bytes}}: "
            "{fragmentation:%} of what it holds is in pieces that fit no request.",
            allocator=memory.allocator,
            held=fullest.held,
            used=fullest.used,
            capacity=capacity,
            fragmentation=fragmentation,
            step=fullest.step,
        )
        impact = Message("{unused:bytes} more could be used.", unused=unused)
    else:
        free = max(0.0, capacity - fullest.used)
        message = Message(
            f"At its fullest moment{when}, {{allocator}} has {{free:bytes}} of {{capacity:bytes}} free, "
            "{fragmentation:%} of it outside the largest piece.",
            allocator=memory.allocator,
            free=free,
            capacity=capacity,
            fragmentation=fragmentation,
            step=fullest.step,
        )
        largest = (1 - fragmentation) * free
        impact = Message("A request for more than {largest:bytes} fails although {free:bytes} are free.", largest=largest, free=free)
    return Diagnosis(
        message,
        Severity.WARNING if fragmentation >= warn_share else Severity.INFO,
        Confidence.MEDIUM,
        onset_step=fullest.step,
        last_step=fullest.step,
        impact=Impact("memory", impact),
        exhibits=allocator_exhibits(memory),
    )
