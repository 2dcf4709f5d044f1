"""The fix library: what to try, why it helps, how to see that it worked, and the code for each framework.

One module a theme, one `Fix` an entry; `FIXES` of every module in `MODULES` make the library. `conditions` leaves out what a run
already does, `values` fills snippets with the numbers of the run, `advice` applies both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from tb_advisor.fixes.fix import WRITERS, Fix

__all__ = ["MODULES", "WRITERS", "Fix", "all_fixes", "fix", "in_order_for"]

MODULES = (
    "activations",
    "capacity",
    "compute",
    "data",
    "distribution",
    "generalization",
    "input_pipeline",
    "logging",
    "memory",
    "model",
    "numerics",
    "reinforcement",
    "restarts",
    "schedule",
    "stability",
    "sweeps",
)

# Whose code also helps users of a framework that an entry has no code for.
_RELATIVES = {
    "lightning": ("pytorch",),
    "huggingface": ("pytorch",),
    "stable-baselines3": ("pytorch",),
    "keras": ("tensorflow",),
    "tensorflow": ("keras",),
    "estimator": ("tensorflow", "keras"),
}


@cache
def all_fixes() -> Mapping[str, Fix]:
    """Every fix by its id."""
    entries = [entry for name in MODULES for entry in import_module(f"{__name__}.{name}").FIXES]
    return {entry.id: entry for entry in entries}


def fix(identifier: str) -> Fix:
    """The fix with this id. Raises `KeyError` where there is none."""
    return all_fixes()[identifier]


def in_order_for(writer: str, available: Iterable[str]) -> list[str]:
    """The `available` frameworks, best for a job of `writer` first: its own, then its relatives', then the others."""
    preferred = (writer, *_RELATIVES.get(writer, ()), *WRITERS)
    return sorted(available, key=preferred.index)
