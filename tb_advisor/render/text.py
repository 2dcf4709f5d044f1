"""The report for a terminal."""

from __future__ import annotations

import io
import re
from collections import Counter

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tb_advisor.comparison import Comparison, Pair, Verdict
from tb_advisor.diagnosis import Confidence, Diagnosis, Outcome, Severity, Status
from tb_advisor.fixes import fix
from tb_advisor.message import number
from tb_advisor.render.change import change_text, remarks, tally, value_text, verdict_text
from tb_advisor.report import JobSummary, Report
from tb_advisor.rules import all_rules

NOTHING_TO_READ = "neither a run nor a capture in {logdir} (looked for files named *tfevents*, *.xplane.pb, *.pt.trace.json)"

_GLYPH = {
    Severity.ERROR: ("▲", "bold red"),
    Severity.WARNING: ("■", "yellow"),
    Severity.INFO: ("○", "blue"),
}
_VERDICT = {Verdict.UNKNOWN: "not comparable"}
_STYLE = {
    Verdict.NEW: "bold red",
    Verdict.WORSE: "bold red",
    Verdict.FIXED: "bold green",
    Verdict.BETTER: "green",
    Verdict.UNCHANGED: "dim",
    Verdict.UNKNOWN: "yellow",
}


def render_text(report: Report, *, color: bool = False, width: int = 100, everything: bool = False) -> str:
    """The report as text, worst job first. Shown diagnoses only, unless `everything` is set; the rest is counted."""
    if not report.jobs:
        return "".join(f"{note.text}\n" for note in report.notes) or f"{NOTHING_TO_READ.format(logdir=report.logdir)}\n"
    console = _console(color, width)
    jobs = {job.name: job for job in report.jobs}
    found: dict[str, list[tuple[Outcome, Diagnosis]]] = {}
    for outcome, diagnosis in report.diagnoses:
        if diagnosis.shown or everything:
            found.setdefault(outcome.job, []).append((outcome, diagnosis))
    for name in sorted(found, key=lambda job: (-max(d.severity.rank for _, d in found[job]), job)):
        console.print(Text(name, style="bold"), _about(jobs.get(name)))
        for outcome, diagnosis in sorted(found[name], key=lambda pair: -pair[1].severity.rank):
            _print_diagnosis(console, outcome, diagnosis)
        console.print()
    for note in report.notes:
        where = f"{note.run}: " if note.run else ""
        console.print(Text(f"not read: {where}{note.text}", style="yellow"))
    for outcome in report.outcomes:
        if outcome.status is Status.ERROR:
            console.print(Text(f"failed: {outcome.rule} on {outcome.job}: {outcome.reason}", style="red"))
    console.print(_tally(report, len(found), everything=everything))
    return _text_of(console)


def render_roles(report: Report, *, color: bool = False, width: int = 160) -> str:
    """Which tag of each job plays which role, and why, as text: a line a tag."""
    if not report.jobs:
        return render_text(report, color=color, width=width)
    console = _console(color, width)
    for job in report.jobs:
        console.print(Text(job.name, style="bold"), Text(job.task, style="dim"))
        table = Table.grid(padding=(0, 2), pad_edge=False)
        for _ in range(4):
            table.add_column(overflow="fold")
        for use in job.tag_roles:
            style = "dim" if use.role is None else "none"
            table.add_row(*(Text(text, style=style) for text in (f"  {use.name}", use.run, use.tag)), Text(use.reason, style="dim"))
        console.print(table)
    return _text_of(console)


def render_comparison(comparison: Comparison, *, color: bool = False, width: int = 100) -> str:
    """The comparison as text: what changed, what did not, and the key figures side by side."""
    console = _console(color, width)
    console.print(Text(f"{comparison.base} → {comparison.new}", style="bold"))
    for pair in comparison.pairs:
        if len(comparison.pairs) > 1:
            console.print(Text(f"\n{pair.name}", style="bold"))
        _print_changes(console, pair)
        _print_figures(console, pair)
    for side, jobs in (("base", comparison.only_in_base), ("new", comparison.only_in_new)):
        if jobs:
            console.print(Text(f"only in {side}: {', '.join(jobs)}", style="yellow"))
    console.print(Text(tally(comparison)))
    return _text_of(console)


def _print_changes(console: Console, pair: Pair) -> None:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for change in pair.diagnoses:
        finding = change.new or change.base
        assert finding
        text = Text(str(finding.summary))
        text.append(f"  {'; '.join((change.rule, *remarks(change)))}", style="dim")
        if change.base and change.new and change.verdict in (Verdict.BETTER, Verdict.WORSE):
            text.append(f"\nwas: {change.base.summary}", style="dim")
        table.add_row(Text(f"  {_VERDICT.get(change.verdict, change.verdict.value)}", style=_STYLE[change.verdict]), text)
    if pair.diagnoses:
        console.print(table)


def _print_figures(console: Console, pair: Pair) -> None:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for _ in range(5):
        table.add_column(overflow="fold")
    table.add_row(*(Text(head, style="dim") for head in ("  key figure", "base", "new", "change", "")))
    for figure in pair.figures:
        name = f"  {figure.kind} ({figure.tag})" if figure.tag else f"  {figure.kind}"
        values = (value_text(figure.base, figure.unit), value_text(figure.new, figure.unit), change_text(figure))
        table.add_row(*map(Text, (name, *values)), Text(verdict_text(figure), style=_STYLE[figure.verdict]))
    if pair.figures:
        console.print(table)


def _console(color: bool, width: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=color, no_color=not color, width=width, highlight=False, legacy_windows=False)


def _text_of(console: Console) -> str:
    stream = console.file
    assert isinstance(stream, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _about(job: JobSummary | None) -> Text:
    if job is None:
        return Text("")
    parts = [job.writer] if job.writer else []
    if job.first_step is not None:
        parts.append(f"steps {job.first_step:,} to {job.last_step:,}")
    held = {contents.capture: contents for contents in job.capture_contents}
    parts.extend(f"capture {name}" + (f" ({held[name].text})" if name in held else "") for name in job.captures)
    return Text(", ".join(parts), style="dim")


def _print_diagnosis(console: Console, outcome: Outcome, diagnosis: Diagnosis) -> None:
    glyph, style = _GLYPH[diagnosis.severity]
    head = Text(f"{glyph} ", style=style)
    head.append(diagnosis.summary, style="none")
    head.append(f"  {outcome.rule}{_reservation(diagnosis)}", style="dim")
    console.print(Padding(head, (0, 0, 0, 2)))
    lines = [("cost", str(diagnosis.impact.text))] if diagnosis.impact else []
    fixes = diagnosis.fixes or next((rule.fixes for rule in all_rules() if rule.id == outcome.rule), ())
    if fixes:
        lines.append(("try", f"{fix(fixes[0]).title} ({fix(fixes[0]).cost.value})"))
    for label, text in lines:
        line = Text(f"{label:<5}", style="dim")
        line.append(text, style="none")
        console.print(Padding(line, (0, 0, 0, 4)))


def _reservation(diagnosis: Diagnosis) -> str:
    """Why default views do not show a diagnosis, where its severity does not say it."""
    if diagnosis.suppressed is not None:
        return f", ignored: {diagnosis.suppressed}"
    if diagnosis.folded_under is not None:
        return f", part of {diagnosis.folded_under}"
    return ", low confidence" if diagnosis.confidence is Confidence.LOW else ""


def _tally(report: Report, jobs_with_findings: int, *, everything: bool) -> Text:
    outcomes = Counter(outcome.status for outcome in report.outcomes)
    shown = Counter(d.severity for _, d in report.diagnoses if d.shown)
    hidden = 0 if everything else sum(not d.shown for _, d in report.diagnoses)
    checked = outcomes[Status.CLEAR] + outcomes[Status.FOUND]
    runs = sum(len(job.runs) for job in report.jobs)
    captures = sum(len(job.captures) for job in report.jobs)
    text = Text(f"{_count(len(report.jobs), 'job')}, {_count(runs, 'run')}, {_count(captures, 'capture')} in {report.logdir}: ")
    if shown:
        kinds = [_count(shown[severity], severity.value) for severity in reversed(Severity) if shown[severity]]
        text.append(f"{', '.join(kinds)} in {_count(jobs_with_findings, 'job')}. ")
    elif checked:
        text.append("no problem found. " if hidden else "nothing found. ", style="green")
    else:
        text.append("nothing could be checked. ", style="yellow")
    text.append(f"{_count(outcomes[Status.CLEAR], 'check')} clear, {outcomes[Status.NOT_APPLICABLE]:,} not applicable")
    if outcomes[Status.ERROR]:
        text.append(f", {outcomes[Status.ERROR]} failed", style="red")
    text.append(f", {hidden} more not shown (--all)." if hidden else ".")
    best = _best(report)
    if best:
        text.append(f"\n{best}")
    if shown:
        text.append("\ntb-advisor explain RULE says how it was found and shows the code of each fix.", style="dim")
    return text


def _best(report: Report) -> str:
    """The job with the lowest validation loss of the largest group that can be compared: jobs of one folder that log it under
    one tag, without those that have an error; at the top, where anything may lie, their names must begin alike. Empty where
    there are not two.
    """
    broken = {outcome.job for outcome, diagnosis in report.diagnoses if diagnosis.shown and diagnosis.severity is Severity.ERROR}
    groups: dict[tuple[str, str], list[tuple[float, str, int]]] = {}
    for job in report.jobs:
        best = job.best
        if best is not None and job.name not in broken and (best.run, best.tag) in job.roles.get("validation_loss", ()):
            folder, _, name = job.name.rpartition("/")
            groups.setdefault((folder or re.split(r"[\d_]", name, maxsplit=1)[0], best.tag), []).append((best.value, job.name, best.step))
    (folder, tag), members = max(groups.items(), key=lambda group: len(group[1]), default=(("", ""), []))
    if len(members) < 2:
        return ""
    value, name, step = min(members)
    where = f" in {folder}" if name.startswith(f"{folder}/") else ""
    return f"Best of {len(members):,} jobs{where} by {tag}: {name}, {number(value)} at step {step:,}."


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
