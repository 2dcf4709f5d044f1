"""Memory over time: from logged scalars, and from allocator events of a profiler capture."""

from __future__ import annotations

from tb_advisor.evidence.roles import Roles
from tb_advisor.series import Series


def logged_memory(roles: Roles) -> tuple[Series, ...]:
    """Every memory scalar of the job; empty where none is logged."""
    return tuple(a.series.surviving for a in roles.of("memory"))


def allocator_memory() -> tuple[Series, ...]:
    return ()
