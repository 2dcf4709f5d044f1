"""What an allocator had in use, shown alike by every rule about memory."""

from __future__ import annotations

from tb_advisor.diagnosis import Exhibit, TableExhibit, TraceExhibit
from tb_advisor.evidence.memory import AllocatorMemory
from tb_advisor.logdir.captures import XPLANE
from tb_advisor.message import Message, size

# From here on a longer batch, an evaluation or one more cache may be too much.
NEAR_LIMIT = 0.85


def is_near_limit(used: float, memory: AllocatorMemory) -> bool:
    """Whether so many bytes in use leave little of the allocator's capacity."""
    return bool(memory.capacity and used >= NEAR_LIMIT * memory.capacity)


def allocator_exhibits(memory: AllocatorMemory) -> tuple[Exhibit, ...]:
    """Highest and lowest use in each step, and the Profile tool that shows every allocation."""
    rows = tuple(
        (step, size(float(peak)), size(float(floor)), op or None)
        for step, peak, floor, op in zip(memory.steps, memory.peaks, memory.floors, memory.ops, strict=True)
    )
    title = Message("Use of {allocator} in each step", allocator=memory.allocator)
    table = (TableExhibit(title, ("step", "highest", "lowest", "op"), rows),) if rows else ()
    if not memory.capture.in_profile_tab:
        return table
    host = next((path.name.removesuffix(XPLANE) for path in memory.capture.files if path.name.startswith(memory.host)), memory.host)
    return *table, TraceExhibit(memory.capture.name, "memory_profile", host)
