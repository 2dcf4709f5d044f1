"""Links from a diagnosis to the exact chart in another tab of the same TensorBoard.

An href is ``?query#hash``, relative to TensorBoard's root. The tab merges its query into the page's own, so that a
theme or a proxy's token stays. Time Series reads the query, the older tabs the hash; filters are JavaScript regular
expressions on the full name, so that names are escaped and anchored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from tb_advisor.diagnosis import Diagnosis, HistogramExhibit, SeriesExhibit, TableExhibit, TextExhibit, TraceExhibit

# Time Series starts with no run selected above this (MAX_NUM_RUNS_TO_ENABLE_BY_DEFAULT in TensorBoard's runs_reducers.ts).
MOST_RUNS_OF_TIME_SERIES = 500
_TAB_NAMES = {"graphs": "Graphs", "projector": "Projector", "debugger-v2": "Debugger V2"}


@dataclass(frozen=True)
class Host:
    """What is known of the TensorBoard that shows the links."""

    n_runs: int


@dataclass(frozen=True)
class Link:
    """`tab` is the name of the TensorBoard plugin that the link opens."""

    label: str
    tab: str
    href: str


def links_of(diagnosis: Diagnosis, histogram_runs: tuple[str, ...], host: Host) -> list[Link]:
    """Links for what the diagnosis exhibits; `histogram_runs` are the runs of its job that have histograms."""
    links: list[Link] = []
    shows_series = False
    for exhibit in diagnosis.exhibits:
        if isinstance(exhibit, SeriesExhibit):
            shows_series = True
            tags = list(dict.fromkeys(tag for _, tag in exhibit.run_tags))
            for tag in tags:
                runs = [run for run, its_tag in exhibit.run_tags if its_tag == tag]
                links.append(scalar_link(tag, runs, host, named=len(tags) > 1))
        elif isinstance(exhibit, HistogramExhibit):
            links.append(histogram_link([exhibit.run], exhibit.tag))
        elif isinstance(exhibit, TraceExhibit) and exhibit.tool:
            links.append(profile_link(exhibit.capture, exhibit.tool, exhibit.host))
        elif isinstance(exhibit, (TableExhibit, TextExhibit)) and exhibit.tab:
            links.append(tab_link(exhibit.tab, exhibit.run if isinstance(exhibit, TableExhibit) else ""))
    if shows_series and histogram_runs:
        links.append(histogram_link(histogram_runs))
    return links


def scalar_link(tag: str, runs: Iterable[str], host: Host, named: bool = False) -> Link:
    """The chart of one tag with only these runs: in Time Series, or in Scalars where Time Series would start empty."""
    suffix = f": {tag}" if named else ""
    if host.n_runs > MOST_RUNS_OF_TIME_SERIES:
        href = f"#scalars&tagFilter={_encoded([tag])}&regexInput={_encoded(runs)}"
        return Link("Scalars" + suffix, "scalars", href)
    href = f"?tagFilter={_encoded([tag])}&runFilter={_encoded(runs)}#timeseries"
    return Link("Time Series" + suffix, "timeseries", href)


def histogram_link(runs: Iterable[str], tag: str | None = None) -> Link:
    """The histograms of these runs, of one tag or of all."""
    tags = f"&tagFilter={_encoded([tag])}" if tag is not None else ""
    return Link("Histograms", "histograms", f"#histograms{tags}&regexInput={_encoded(runs)}")


def tab_link(tab: str, run: str = "") -> Link:
    """Another tab as a whole, with one run chosen where it shows one at a time (Graphs)."""
    chosen = f"&run={quote(run, safe='')}" if run else ""
    return Link(_TAB_NAMES.get(tab, tab), tab, f"#{tab}{chosen}")


def profile_link(capture: str, tool: str, host: str) -> Link:
    """One tool of the Profile tab (xprof), on one capture and host."""
    query = f"?run={quote(capture, safe='')}&tool={quote(tool, safe='')}&host={quote(host, safe='')}"
    return Link(f"Profile: {tool.replace('_', ' ').rstrip('@')}", "profile", f"{query}#profile")


def _encoded(names: Iterable[str]) -> str:
    escaped = [re.sub(r"[\\^$.*+?()\[\]{}|]", r"\\\g<0>", name) for name in names]
    pattern = escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"
    return quote(f"^{pattern}$", safe="")
