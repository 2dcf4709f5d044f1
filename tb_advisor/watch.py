"""Keeps the report of a log directory up to date, off the threads that answer requests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tb_advisor.advise import Progress, diagnose
from tb_advisor.logdir.event_file import fingerprint
from tb_advisor.logdir.jobs import Job, LogdirError, RunCache, find_jobs
from tb_advisor.report import Report
from tb_advisor.series import Series

REFRESH_SECONDS = 5.0

_Curves = Mapping[tuple[str, str], Series]
_Fingerprints = list[tuple[int, int, int]]


@dataclass(frozen=True)
class State:
    """What is known of a log directory now. `generation` rises with every change of the rest; `curves` holds every
    series by (run, tag).
    """

    state: str = "reading"
    generation: int = 0
    progress: Progress = Progress()
    error: str | None = None
    report: Report | None = None
    curves: _Curves = field(default_factory=dict)


class Watch:
    """Reads the log directory when it is first asked for, and again when its files have changed."""

    def __init__(self, logdir: Path) -> None:
        self._logdir = logdir
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._state = State()
        self._cache = RunCache()
        self._seen: _Fingerprints | None = None
        self._looked = 0.0

    def state(self, *, refresh: bool = False) -> State:
        """The state at this moment. Looks for new data in the background, at most every `REFRESH_SECONDS` or when
        `refresh` is set.
        """
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if not running and (refresh or time.monotonic() - self._looked > REFRESH_SECONDS or self._seen is None):
                self._thread = threading.Thread(target=self._look, name="advisor", daemon=True)
                self._thread.start()
            return self._state

    def _look(self) -> None:
        try:
            seen = self._fingerprints()
            if seen != self._seen or self._state.error:
                self._read()
            self._seen = seen
        except Exception as error:  # the tab shows it; the next request tries again
            logging.getLogger("tb_advisor").exception("The Advisor could not read %s", self._logdir)
            self._publish(replace(self._state, state="error", error=f"{type(error).__name__}: {error}"))
        finally:
            self._looked = time.monotonic()

    def _read(self) -> None:
        first = self._state.report is None or self._state.error is not None
        curves: dict[tuple[str, str], Series] = {}

        def watch(progress: Progress, report: Report, job: Job | None) -> None:
            if job is not None:
                curves.update({(series.run, series.tag): series for series in job.scalars})
            if first:  # a report that is already shown stays until the new one is whole
                self._publish(State("reading", 0, progress, None, report, dict(curves)))

        report = diagnose(self._logdir, cache=self._cache, watch=watch)
        self._publish(State("ready", 0, self._state.progress, None, report, curves))

    def _publish(self, state: State) -> None:
        with self._lock:
            self._state = replace(state, generation=self._state.generation + 1)

    def _fingerprints(self) -> _Fingerprints:
        try:
            found = find_jobs(self._logdir)
        except LogdirError:
            return []
        return [fingerprint(path) for job in found for path in job.paths]
