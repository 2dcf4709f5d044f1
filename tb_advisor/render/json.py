"""The report as JSON."""

from __future__ import annotations

import json

from tb_advisor.report import Report


def render_json(report: Report) -> str:
    """The report as JSON text, valid for every parser: no NaN, no Infinity."""
    return json.dumps(report.as_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
