"""The Advisor tab's server side: thin routes over the engine. All answers are JSON, all requests are GET, nothing is
ever written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import Request, Response

from tb_advisor.chart import chart_points, heat_map
from tb_advisor.report import Json, plain
from tb_advisor.rules import all_rules
from tb_advisor.watch import State, Watch

BUNDLE = Path(__file__).parent / "static" / "index.js"

_NO_BUNDLE = """export function render() {
  document.body.textContent = "The Advisor's page was not built: install tb_advisor from a wheel, or with pip from its sources.";
}
"""
_REMOTE = (
    "The Advisor reads the event files itself, and cannot reach them here: {why}. Start TensorBoard with --logdir and a local directory."
)


class AdvisorPlugin(base_plugin.TBPlugin):
    """The Advisor tab."""

    plugin_name = "advisor"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self._context = context

    def is_active(self) -> bool:
        """Always: the tab says itself when there is nothing to read. TensorBoard asks on every page load, so this must
        cost nothing.
        """
        return True

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab's name and its ES module."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Advisor")

    def get_plugin_apps(self) -> Mapping[str, Callable[..., Any]]:
        """The routes, below ``data/plugin/advisor``."""
        return {
            "/index.js": _application(self._index),
            "/report": _application(self._report),
            "/series": _application(self._series),
            "/histogram": _application(self._histogram),
            "/rules": _application(self._rules),
        }

    @cached_property
    def _watch(self) -> Watch:
        megabytes = getattr(self._context.flags, "advisor_memory_mb", None)
        config = getattr(self._context.flags, "advisor_config", None)
        return Watch(
            Path(self._context.logdir).expanduser(),
            None if megabytes is None else megabytes << 20,
            None if config is None else Path(config).expanduser(),
        )

    @cached_property
    def _unreachable(self) -> str | None:
        flags = self._context.flags
        logdir = self._context.logdir or ""
        if getattr(flags, "grpc_data_provider", ""):
            return _REMOTE.format(why="the data come from another server (--grpc_data_provider)")
        if not logdir:
            return _REMOTE.format(why="no --logdir was given (--logdir_spec is not read yet)")
        if "://" in logdir:
            return _REMOTE.format(why=f"{logdir} is not a local directory")
        return None

    def _index(self, request: Request) -> Response:
        script = BUNDLE.read_text("utf-8") if BUNDLE.exists() else _NO_BUNDLE
        return _respond(request, script, "text/javascript")

    def _report(self, request: Request) -> Response:
        if self._unreachable:
            state = State("error", 1, error=self._unreachable)
        else:
            state = self._watch.state(refresh=request.args.get("refresh") == "1")
        known = request.args.get("generation") == str(state.generation)
        return _json(
            request,
            {
                "state": state.state,
                "generation": state.generation,
                "progress": {**asdict(state.progress)},
                "error": state.error,
                "profile_tab": "profile" in (self._context.plugin_name_to_instance or {}),
                "report": None if known or state.report is None else state.report.as_json(),
            },
        )

    def _series(self, request: Request) -> Response:
        run, tag = request.args.get("run", ""), request.args.get("tag", "")
        curve = None if self._unreachable else self._watch.state().curves.get((run, tag))
        if curve is None:
            return _json(request, {"error": f"no scalar {tag!r} in run {run!r}"}, code=404)
        try:
            points = min(5000, max(16, int(request.args.get("points", "800"))))
            keep = [_range(text) for text in request.args.get("keep", "").split(",") if text]
            span = None
            if "from" in request.args and "to" in request.args:
                span = (int(request.args["from"]), int(request.args["to"]))
        except ValueError:
            return _json(request, {"error": "points, from and to are integers, keep is a list such as 100-200,350-350"}, code=400)
        chart = chart_points(curve.series, points, keep, span)
        whole = curve.points_within(span)
        if whole != chart["total"]:
            chart |= {"total": whole, "thinned": True}
        return _json(request, chart)

    def _histogram(self, request: Request) -> Response:
        run, tag = request.args.get("run", ""), request.args.get("tag", "")
        histograms = None if self._unreachable else self._watch.state().histograms.get((run, tag))
        if histograms is None:
            return _json(request, {"error": f"no histograms {tag!r} in run {run!r}"}, code=404)
        return _json(request, heat_map(histograms))

    def _rules(self, request: Request) -> Response:
        entries: list[Json] = [
            {
                "id": rule.id,
                "title": rule.title,
                "category": rule.category,
                "documentation": plain(rule.documentation),
                "thresholds": plain(rule.thresholds),
            }
            for rule in (all_rules() if self._unreachable else self._watch.config.applied_to(all_rules()))
        ]
        return _json(request, {"rules": entries})


def _range(text: str) -> tuple[int, int]:
    ends = re.fullmatch(r"(-?\d+)-(-?\d+)", text)
    if ends is None:
        raise ValueError(text)
    return int(ends[1]), int(ends[2])


def _application(answer: Callable[[Request], Response]) -> Callable[..., Any]:
    def application(environ: dict[str, Any], start_response: Any) -> Any:
        request = Request(environ)
        if request.method != "GET":
            return _json(request, {"error": "only GET is answered"}, code=405)(environ, start_response)
        return answer(request)(environ, start_response)

    return application


def _json(request: Request, content: dict[str, Json], code: int = 200) -> Response:
    return _respond(request, json.dumps(content, allow_nan=False), "application/json", code)


def _respond(request: Request, content: str, content_type: str, code: int = 200) -> Response:
    response: Response = http_util.Respond(request, content, content_type, code=code)
    return response
