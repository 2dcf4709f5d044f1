"""A comparison as Markdown, for a pull request or a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tb_advisor.comparison import Comparison, DiagnosisChange, Pair
from tb_advisor.render.change import change_text, remarks, tally, value_text, verdict_text

_MARKUP = re.compile(r"([\\`*_{}\[\]#|<>~&@$:])")


def render_comparison_markdown(comparison: Comparison) -> str:
    """The comparison as GitHub's Markdown. Nothing that comes from the log is read as markup."""
    parts = [f"## {escaped(comparison.base)} → {escaped(comparison.new)}", escaped(tally(comparison))]
    for pair in comparison.pairs:
        if len(comparison.pairs) > 1:
            parts.append(f"### {escaped(pair.name)}")
        parts.extend(_pair(pair))
    for side, jobs in (("base", comparison.only_in_base), ("new", comparison.only_in_new)):
        if jobs:
            parts.append(f"Only in {side}: {', '.join(map(escaped, jobs))}")
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """The text with a backslash before everything that Markdown could read as markup, in one line."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _pair(pair: Pair) -> Iterable[str]:
    if pair.diagnoses:
        yield _table(("", "diagnosis", "rule"), ((change.verdict.value, _said(change), change.rule) for change in pair.diagnoses))
    if pair.figures:
        yield _table(
            ("key figure", "base", "new", "change", ""),
            (
                (
                    f"{figure.kind} ({figure.tag})" if figure.tag else figure.kind,
                    value_text(figure.base, figure.unit),
                    value_text(figure.new, figure.unit),
                    change_text(figure),
                    verdict_text(figure),
                )
                for figure in pair.figures
            ),
        )


def _said(change: DiagnosisChange) -> str:
    finding = change.new or change.base
    assert finding
    return " ".join([str(finding.summary), *(f"({remark})" for remark in remarks(change))])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(map(escaped, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
