"""What every form of a comparison says in words: values, changes, verdicts."""

from __future__ import annotations

import math

from tb_advisor.comparison import Comparison, DiagnosisChange, FigureChange, Finding, Level, Verdict
from tb_advisor.message import duration, number, size

BEYOND_NOISE = {Verdict.WORSE: "worse", Verdict.BETTER: "better", Verdict.UNCHANGED: "within noise"}


def value_text(level: Level | None, unit: str) -> str:
    """A key figure of one side: its value, and where it lies or how far its jobs differ."""
    if level is None:
        return "–"
    text = _in_unit(level.value, unit)
    if level.step is not None:
        return f"{text} at step {level.step:,}"
    if level.jobs > 1:
        spread = "" if level.deviation is None else f" ± {_in_unit(level.deviation, unit)}"
        return f"{text}{spread} ({level.jobs} jobs)"
    return text


def change_text(figure: FigureChange) -> str:
    """By how much a key figure changed: in points where it is a share, else as a part of the old value."""
    if figure.change is None or not figure.base or not figure.new or not math.isfinite(figure.change):
        return ""
    if figure.unit in ("share", "percent"):
        return f"{figure.change * (100 if figure.unit == 'share' else 1):+.3g} points"
    if figure.new.value >= 10 * figure.base.value > 0:
        return f"×{number(figure.new.value / figure.base.value)}"
    if figure.base.value:
        return f"{100 * figure.change / abs(figure.base.value):+.3g}%"
    return f"{figure.change:+.3g}"


def verdict_text(figure: FigureChange) -> str:
    """Whether a key figure is better or worse; nothing where neither direction is."""
    return BEYOND_NOISE.get(figure.verdict, "")


def remarks(change: DiagnosisChange) -> list[str]:
    """What stands beside a diagnosis: in how many jobs it was found, what explains it, why one side does not tell."""
    found = [finding for finding in (change.base, change.new) if finding]
    said = []
    if any(finding.checked > 1 for finding in found):
        said.append(f"{_jobs(change.base)} before, {_jobs(change.new)} now")
    if change.base and change.base.folded_under:
        said.append(f"was explained by {change.base.folded_under}")
    if change.new and change.new.folded_under:
        said.append(f"now explained by {change.new.folded_under}")
    if change.reason:
        said.append(f"{'new' if change.base else 'base'} does not tell: {change.reason}")
    return said


def tally(comparison: Comparison) -> str:
    """The comparison in one sentence."""
    counts = [f"{comparison.counts.get(verdict, 0)} {verdict.value}" for verdict in Verdict if verdict is not Verdict.UNKNOWN]
    unknown = comparison.counts.get(Verdict.UNKNOWN, 0)
    if unknown:
        counts.append(f"{unknown} not comparable")
    figures = [f"{figure.kind} is worse" for figure in comparison.worse_figures]
    end = "; ".join(figures) if figures else "" if comparison.got_worse else "nothing got worse"
    return f"Diagnoses: {', '.join(counts)}" + (f"; {end}." if end else ".")


def _in_unit(value: float, unit: str) -> str:
    match unit:
        case "share":
            return f"{number(100 * value)}%"
        case "percent":
            return f"{number(value)}%"
        case "s":
            return duration(value)
        case "ms":
            return duration(value / 1000)
        case "bytes":
            return size(value)
    return number(value)


def _jobs(finding: Finding | None) -> str:
    return "in no job" if finding is None or not finding.jobs else f"in {finding.jobs} of {finding.checked} jobs"
