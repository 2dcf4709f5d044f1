"""The report as JSON."""

from __future__ import annotations

import json

from tb_advisor.comparison import Comparison
from tb_advisor.report import SCHEMA_VERSION, Json, Report, plain


def render_json(report: Report) -> str:
    """The report as JSON text, valid for every parser: no NaN, no Infinity."""
    return json.dumps(report.as_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render_roles_json(report: Report) -> str:
    """The roles of the tags of each job as JSON text, in the form that they have in the report."""
    jobs: list[Json] = [{"name": job.name, "task": job.task, "tags": plain(job.tag_roles)} for job in report.jobs]
    content: dict[str, Json] = {"schema_version": SCHEMA_VERSION, "logdir": report.logdir, "config": report.config, "jobs": jobs}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render_comparison_json(comparison: Comparison) -> str:
    """The comparison as JSON text."""
    return json.dumps(comparison.as_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
