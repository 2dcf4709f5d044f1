"""A rule: one pure function from evidence to diagnoses, with its documentation.

Positional parameters name the evidence it needs, keyword-only parameters its thresholds::

    @rule(category="generalization", fixes=("early-stopping",))
    def overfitting(train_loss: Series, val_loss: Series, *, min_rise: float = 0.15) -> Iterator[Diagnosis]: ...

The module docstring is the documentation: its first line says what is seen, its sections why it matters, how it is
found and when it is wrong.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tb_advisor.diagnosis import Diagnosis

# What a rule over several jobs takes: the `Family` with every point of its jobs, or its jobs in a line each (`Sweep`).
OF_FAMILY = ("family", "sweeps")
SECTIONS = ("Why it matters", "How it is found", "When it is wrong")


class RuleError(Exception):
    """A rule that is not written as rules are: what is wrong with it."""


@dataclass(frozen=True)
class Rule:
    """One diagnosis that the Advisor can make.

    `id` is the public name (``overfitting``), `title` says in one sentence what is seen, `documentation` maps the
    `SECTIONS` to their text. `evidence` are the names of its positional parameters, `thresholds` the values of the
    others. `fixes` are ids of the fix library, cheapest first.
    """

    id: str
    title: str
    category: str
    fixes: tuple[str, ...]
    evidence: tuple[str, ...]
    thresholds: Mapping[str, object]
    documentation: Mapping[str, str]
    check: Callable[..., Iterable[Diagnosis]]

    def __call__(self, *evidence: Any, **thresholds: Any) -> list[Diagnosis]:
        """The diagnoses for this evidence, in the order of `evidence`, with its `thresholds` but for those given. Raises `Missing`
        where the evidence is too thin to judge.
        """
        return list(self.check(*evidence, **{**self.thresholds, **thresholds}))

    @property
    def of_family(self) -> bool:
        """Whether it looks at several jobs together."""
        return bool(self.evidence) and set(self.evidence) <= set(OF_FAMILY)


def rule(*, category: str, fixes: tuple[str, ...]) -> Callable[[Callable[..., Iterable[Diagnosis]]], Rule]:
    """Make a rule of a function. Raises `RuleError` where its module has no documentation or its parameters have no
    names.
    """

    def make(check: Callable[..., Iterable[Diagnosis]]) -> Rule:
        name = check.__name__.replace("_", "-")
        title, documentation = _documentation(name, sys.modules[check.__module__].__doc__ or "")
        evidence, thresholds = [], {}
        for parameter in inspect.signature(check).parameters.values():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                if parameter.default is inspect.Parameter.empty:
                    raise RuleError(f"rule {name}: threshold {parameter.name!r} has no default")
                thresholds[parameter.name] = parameter.default
            else:
                evidence.append(parameter.name)
        if set(OF_FAMILY).intersection(evidence) and len(evidence) > 1:
            raise RuleError(f"rule {name}: a rule over a family takes the family, or its sweeps, and nothing else")
        return Rule(name, title, category, fixes, tuple(evidence), thresholds, documentation, check)

    return make


def _documentation(name: str, docstring: str) -> tuple[str, dict[str, str]]:
    head, *parts = re.split(r"^## +(.+)$", inspect.cleandoc(docstring), flags=re.MULTILINE)
    sections = {title.strip(): text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}
    missing = [section for section in SECTIONS if not sections.get(section)]
    if not head.strip() or missing:
        raise RuleError(f"rule {name}: its module docstring lacks {', '.join(missing) or 'a first line'}")
    return head.strip(), sections
