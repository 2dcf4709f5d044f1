"""The command ``tb-advisor``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from shutil import get_terminal_size
from textwrap import indent

import click

from tb_advisor.advise import Progress, diagnose
from tb_advisor.comparison import ComparisonError, NothingToRead
from tb_advisor.comparison import compare as compare_logs
from tb_advisor.config import Config, ConfigError, find_config, read_config
from tb_advisor.diagnosis import Severity
from tb_advisor.fixes import fix
from tb_advisor.render.json import render_comparison_json, render_json, render_roles_json
from tb_advisor.render.markdown import render_comparison_markdown
from tb_advisor.render.text import render_comparison, render_roles, render_text
from tb_advisor.report import Report
from tb_advisor.rule import SECTIONS, Rule
from tb_advisor.rules import all_rules
from tb_advisor.version import __version__

NOTHING_FOUND, SOMETHING_FOUND, BAD_USAGE, NOTHING_TO_READ = 0, 1, 2, 3


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tb-advisor")
def main() -> None:
    """Says what went wrong in the training runs of a log directory, and what to do."""


_LOGDIR = click.argument("logdir", type=click.Path(exists=True, file_okay=False, path_type=Path))
_CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Thresholds, roles of tags and known findings.  [default: tb_advisor.toml, or [tool.tb_advisor] in pyproject.toml, here or above]",
)


@main.command()
@_LOGDIR
@click.option("--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of the terminal.")
@click.option("--select", multiple=True, metavar="RULE", help="Check only this rule. May be repeated.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave this rule out. May be repeated.")
@click.option("--all", "everything", is_flag=True, help="Show info, low-confidence, folded and ignored findings too (text).")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", "never"]),
    default="error",
    show_default=True,
    help="Exit with 1 when something this severe is found.",
)
@_CONFIG
@click.option("--memory-mb", type=click.IntRange(min=1), help="Memory for points, in MB.  [default: a quarter of the machine's]")
def check(
    logdir: Path,
    output_format: str,
    output: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    everything: bool,
    fail_on: str,
    config_file: Path | None,
    memory_mb: int | None,
) -> None:
    """Read every run and capture in LOGDIR and say what went wrong.

    Exit status: 0 nothing at or above --fail-on, 1 something, 2 bad usage, 3 nothing in LOGDIR that can be read.
    """
    rules = _chosen(select, ignore)
    report = _diagnose_with_progress(logdir, _config(config_file), rules, None if memory_mb is None else memory_mb << 20)
    if output_format == "json":
        text = render_json(report)
    else:
        terminal = output is None and sys.stdout.isatty()
        width = max(60, min(120, get_terminal_size((100, 24)).columns))
        text = render_text(report, color=terminal, width=width, everything=everything)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
    sys.exit(_exit_status(report, fail_on))


@main.command()
@_LOGDIR
@click.option("--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_CONFIG
def roles(logdir: Path, output_format: str, config_file: Path | None) -> None:
    """Say which tag of each job in LOGDIR plays which role, and why.

    A role that is wrong or missing can be set in the configuration. Exit status: 0, 2 bad usage, 3 nothing in LOGDIR that can be read.
    """
    report = _diagnose_with_progress(logdir, _config(config_file), (), None)
    if output_format == "json":
        text = render_roles_json(report)
    else:
        text = render_roles(report, color=sys.stdout.isatty(), width=max(60, get_terminal_size((160, 24)).columns))
    click.echo(text, nl=False)
    sys.exit(NOTHING_FOUND if any(job.events for job in report.jobs) else NOTHING_TO_READ)


@main.command()
@click.argument("base")
@click.argument("new")
@click.option(
    "--logdir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="BASE and NEW are jobs in this directory: a job, one of its runs, a directory above jobs, or a pattern such as 'lr0.1_*'.",
)
@click.option("--seeds", is_flag=True, help="The jobs of each side are seeds of one configuration, whatever they are called.")
@click.option("--format", "output_format", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@_CONFIG
def compare(base: str, new: str, logdir: Path | None, seeds: bool, output_format: str, config_file: Path | None) -> None:
    """Say what is fixed, new, worse, better and unchanged in the log directory NEW, compared with BASE.

    One job a side is compared as it is, several by their names; those whose names differ in a seed only are compared as one.
    Exit status: 0 nothing got worse, 1 something did (a diagnosis is new or worse, or a key figure is worse by more than chance),
    2 bad usage, 3 nothing that can be read in BASE or in NEW.
    """
    for side in (base, new) if logdir is None else ():
        if not Path(side).is_dir():
            raise click.UsageError(f'"{side}" is not a directory; to compare jobs of one log directory, give it as --logdir')
    try:
        comparison = compare_logs(base, new, logdir=logdir, config=_config(config_file), seeds=seeds)
    except NothingToRead as error:
        click.echo(str(error), err=True)
        sys.exit(NOTHING_TO_READ)
    except ComparisonError as error:
        raise click.UsageError(str(error)) from error
    if output_format == "json":
        text = render_comparison_json(comparison)
    elif output_format == "markdown":
        text = render_comparison_markdown(comparison)
    else:
        text = render_comparison(comparison, color=sys.stdout.isatty(), width=max(60, min(140, get_terminal_size((120, 24)).columns)))
    click.echo(text, nl=False)
    sys.exit(SOMETHING_FOUND if comparison.got_worse else NOTHING_FOUND)


@main.command()
def rules() -> None:
    """List the rules."""
    width = max(len(rule.id) for rule in all_rules())
    for rule in all_rules():
        click.echo(f"{rule.id:<{width}}  {rule.title}")


@main.command()
@click.argument("rule_id", metavar="RULE")
def explain(rule_id: str) -> None:
    """Say why RULE matters, how it is found, when it is wrong and what to try."""
    rule = _rule(rule_id)
    click.echo(f"{rule.id} ({rule.category})\n\n{rule.title}")
    for section in SECTIONS:
        click.echo(f"\n{section}\n\n{rule.documentation[section]}")
    if rule.thresholds:
        click.echo("\nThresholds\n")
        for name, default in rule.thresholds.items():
            click.echo(f"  {name} = {default}")
    click.echo("\nWhat to try")
    for number, identifier in enumerate(rule.fixes, 1):
        entry = fix(identifier)
        click.echo(f"\n  {number}. {entry.title}\n     {entry.why}")
        for framework, code in entry.code_with({}).items():
            click.echo(f"\n     {framework}\n{indent(code.rstrip(), ' ' * 7)}")


def _config(file: Path | None) -> Config:
    """The configuration in `file`, or in the one that is found from the current directory on, or the defaults."""
    try:
        file = file or find_config(Path.cwd())
        return Config() if file is None else read_config(file)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _diagnose_with_progress(logdir: Path, config: Config, rules: tuple[Rule, ...], memory_bytes: int | None) -> Report:
    if not sys.stderr.isatty():
        return diagnose(logdir, config=config, rules=rules, memory_bytes=memory_bytes)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("Reading"), BarColumn(), TextColumn("{task.fields[jobs]}"), DownloadColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, jobs="")

        def watch(progress: Progress, report: Callable[[], Report]) -> None:
            jobs = f"{progress.jobs} of {progress.jobs_total} jobs"
            bar.update(task, completed=progress.bytes, total=progress.bytes_total, jobs=jobs)

        return diagnose(logdir, config=config, rules=rules, watch=watch, memory_bytes=memory_bytes)


def _chosen(select: Iterable[str], ignore: Iterable[str]) -> tuple[Rule, ...]:
    selected = {_rule(name).id for name in select} or {rule.id for rule in all_rules()}
    ignored = {_rule(name).id for name in ignore}
    return tuple(rule for rule in all_rules() if rule.id in selected - ignored)


def _rule(name: str) -> Rule:
    by_id = {rule.id: rule for rule in all_rules()}
    if name in by_id:
        return by_id[name]
    close = get_close_matches(name, by_id, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else "; tb-advisor rules lists them"
    raise click.UsageError(f'unknown rule "{name}"{hint}')


def _exit_status(report: Report, fail_on: str) -> int:
    if not any(job.events or job.captures for job in report.jobs):
        return NOTHING_TO_READ
    if fail_on == "never":
        return NOTHING_FOUND
    floor = Severity(fail_on).rank
    hit = any((d.shown or (fail_on == "info" and d.suppressed is None)) and d.severity.rank >= floor for _, d in report.diagnoses)
    return SOMETHING_FOUND if hit else NOTHING_FOUND
