"""Keeps the report of a log directory up to date, off the threads that answer requests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tb_advisor.advise import Progress, diagnose
from tb_advisor.check import DEFAULTS, Cache, Checked, Curve
from tb_advisor.config import read_config
from tb_advisor.logdir.jobs import LogdirError, find_jobs
from tb_advisor.report import Report
from tb_advisor.series import Histograms

REFRESH_SECONDS = 5.0
# While a log directory is read for the first time, what is there is shown as often as this.
SHOW_SECONDS = 0.2


@dataclass(frozen=True)
class State:
    """What is known of a log directory now. `generation` rises with every change of the rest."""

    state: str = "reading"
    generation: int = 0
    progress: Progress = Progress()
    error: str | None = None
    report: Report | None = None
    jobs: tuple[Checked, ...] = ()

    @cached_property
    def curves(self) -> Mapping[tuple[str, str], Curve]:
        """Every scalar series by (run, tag)."""
        return {(curve.series.run, curve.series.tag): curve for checked in self.jobs for curve in checked.curves}

    @cached_property
    def histograms(self) -> Mapping[tuple[str, str], Histograms]:
        """The histograms of every tag by (run, tag), where they were kept."""
        runs = (run for checked in self.jobs for run in checked.job.runs.values())
        return {(run.name, tag): histograms for run in runs for tag, histograms in run.histograms.items()}


class Watch:
    """Reads the log directory when it is first asked for, and again when its files or the configuration have changed. `config` is the
    configuration that was read last.
    """

    def __init__(self, logdir: Path, memory_bytes: int | None = None, config_file: Path | None = None) -> None:
        self._logdir = logdir
        self._memory_bytes = memory_bytes
        self._config_file = config_file
        self.config = DEFAULTS
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._state = State()
        self._cache = Cache()
        self._looked = -REFRESH_SECONDS

    def state(self, *, refresh: bool = False) -> State:
        """The state at this moment. Looks for new data in the background, at most every `REFRESH_SECONDS` or when
        `refresh` is set.
        """
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if not running and (refresh or time.monotonic() - self._looked > REFRESH_SECONDS):
                self._thread = threading.Thread(target=self._look, name="advisor", daemon=True)
                self._thread.start()
            return self._state

    def _look(self) -> None:
        try:
            known, self.config = self.config, DEFAULTS if self._config_file is None else read_config(self._config_file)
            if self._state.report is None or self._state.error or self.config != known or self._has_changed():
                self._read()
        except Exception as error:  # the tab shows it; a later request tries again
            logging.getLogger("tb_advisor").exception("The Advisor could not read %s", self._logdir)
            self._publish(replace(self._state, state="error", error=f"{type(error).__name__}: {error}"))
        finally:
            self._looked = time.monotonic()

    def _has_changed(self) -> bool:
        try:
            found = find_jobs(self._logdir)
        except LogdirError:
            found = []
        return self._cache.jobs.keys() != {files.name for files in found} or bool(self._cache.outdated(found))

    def _read(self) -> None:
        first = self._state.report is None or self._state.error is not None
        shown = -SHOW_SECONDS
        progress = Progress()

        def watch(now: Progress, report: Callable[[], Report]) -> None:
            nonlocal progress, shown
            progress = now
            if first and time.monotonic() - shown > SHOW_SECONDS:  # a report that is already shown stays until the new one is whole
                self._publish(State("reading", 0, progress, None, report(), self._checked()))
                shown = time.monotonic()

        report = diagnose(self._logdir, config=self.config, cache=self._cache, watch=watch, memory_bytes=self._memory_bytes)
        self._publish(State("ready", 0, progress, None, report, self._checked()))

    def _checked(self) -> tuple[Checked, ...]:
        return tuple(self._cache.jobs.values())

    def _publish(self, state: State) -> None:
        with self._lock:
            self._state = replace(state, generation=self._state.generation + 1)
