"""From the fixes of a rule to those of a diagnosis: without what the run already does, what its evidence points at
first, with the numbers that it tells."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tb_advisor.diagnosis import Diagnosis
from tb_advisor.evidence import Evidence
from tb_advisor.fixes import all_fixes
from tb_advisor.fixes.conditions import FOLLOWED
from tb_advisor.fixes.orders import ORDERS
from tb_advisor.fixes.values import VALUES


def advised(diagnosis: Diagnosis, rule: str, fixes: tuple[str, ...], evidence: Evidence) -> Diagnosis:
    """The diagnosis of a rule with what to try, of its own fixes or of the rule's `fixes`, and the values of the run for their
    snippets. What the evidence points at comes first.

    Where the run does all of it already, all of it is kept. Values that the rule itself gave go before those of the run.
    """
    wanted = diagnosis.fixes or fixes
    kept = tuple(name for name in wanted if not any(_told(each, diagnosis, evidence) for each in FOLLOWED.get(name, ()))) or wanted
    first = next((order.first for order in ORDERS if order.rule == rule and _told(order.condition, diagnosis, evidence)), ())
    kept = (*(name for name in first if name in kept), *(name for name in kept if name not in first))
    names = sorted({name for identifier in kept if identifier in all_fixes() for name in all_fixes()[identifier].names})
    told = {name: _first(_told(each, diagnosis, evidence) for each in VALUES[name].of) for name in names if name in VALUES}
    values = {name: value for name, value in told.items() if value is not None}
    return replace(diagnosis, fixes=kept, fix_values={**values, **diagnosis.fix_values})


def _first(values: Iterable[float | None]) -> float | None:
    return next((value for value in values if value is not None), None)


def _told(of: Callable[..., Any], diagnosis: Diagnosis, evidence: Evidence) -> Any:
    """What a condition or a value says; None where its evidence is missing or fails, for advice must not cost the finding."""
    try:
        names = inspect.signature(of).parameters
        with np.errstate(all="ignore"):
            return of(*(diagnosis if name == "diagnosis" else evidence[name] for name in names))
    except Exception:
        return None
