"""From a log directory to its jobs: finds runs as TensorBoard names them, groups them, and reads them.

A job is one training, whose curves may lie in several runs. Which runs belong together:

===========================================================  =======================
what lies in the log directory                               job
===========================================================  =======================
``exp/train`` + ``exp/validation`` (any two split names),    ``exp``
``exp`` + ``exp/eval``, ``exp/train`` alone
``exp`` + ``exp/loss_train`` with one tag ``loss``           ``exp`` (`add_scalars`)
``exp`` + ``exp/loss/train`` with one tag ``loss``           ``exp`` (tensorboardX)
``exp`` + ``exp/1624683188.28``                              ``exp`` (`add_hparams`)
``exp`` + ``exp/debug`` with a debugger's dump               ``exp``
anything else                                                the run itself
===========================================================  =======================
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tb_advisor.logdir.attachments import CHECKPOINT, Attachment, find_attachments
from tb_advisor.logdir.captures import ENDINGS as CAPTURE_ENDINGS
from tb_advisor.logdir.captures import Capture, find_captures
from tb_advisor.logdir.event_file import (
    BUFFER_BYTES,
    HEAD_BYTES,
    EventFile,
    Fingerprint,
    Reader,
    StoredEvent,
    fingerprint,
    scalar_tags_at_start,
)
from tb_advisor.logdir.names import is_setting
from tb_advisor.message import Message
from tb_advisor.series import Histograms, Series, joined, joined_histograms

if TYPE_CHECKING:
    from pandas import DataFrame

TRAINING_SPLITS = frozenset({"train", "training", "learn"})
EVALUATION_SPLITS = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev"})
_HPARAMS_RUN = re.compile(r"\d{10}\.\d+")


class LogdirError(Exception):
    """The log directory does not exist or is not a directory."""


@dataclass(frozen=True)
class RunFiles:
    """The event files of one run, in order of their names, with their fingerprints when the run was found."""

    name: str
    files: tuple[str, ...]
    fingerprints: tuple[Fingerprint, ...]


@dataclass(frozen=True)
class JobFiles:
    """What belongs to one job, before it is read."""

    name: str
    runs: tuple[RunFiles, ...]
    captures: tuple[Capture, ...]
    attachments: tuple[Attachment, ...] = ()

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Those of all event files, capture files and attachments."""
        of_captures = (fingerprint(path) for capture in self.captures for path in capture.files)
        read = (attachment for attachment in self.attachments if attachment.kind != CHECKPOINT)
        of_attachments = (fingerprint(path) for attachment in read for path in attachment.files)
        return (*(print_ for run in self.runs for print_ in run.fingerprints), *of_captures, *of_attachments)

    @cached_property
    def bytes(self) -> int:
        """Size of all event files and captures, 0 for those that are gone."""
        return sum(size for size, _, _ in self.fingerprints)


@dataclass(frozen=True)
class Run:
    """One run, read: `scalars` and `histograms` map tags to their points, `tags` all tags but scalars to the plugin
    that shows them.

    `stored` says where the events of the other tags lie, those of the graph under the empty tag.
    """

    name: str
    scalars: Mapping[str, Series]
    tags: Mapping[str, str]
    writer: str
    file_names: tuple[str, ...]
    events: int
    notes: tuple[Message, ...]
    histograms: Mapping[str, Histograms] = field(default_factory=dict)
    stored: Mapping[str, tuple[StoredEvent, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One training job: its runs and captures, and what else lies with them.

    `read_at` and `last_written` are seconds since the epoch: when the job was read, and when its event files last grew.
    """

    name: str
    runs: Mapping[str, Run]
    captures: tuple[Capture, ...] = ()
    read_at: float = 0.0
    last_written: float = 0.0
    attachments: tuple[Attachment, ...] = ()

    @cached_property
    def scalars(self) -> tuple[Series, ...]:
        """Every scalar series of the job, by run and tag."""
        return tuple(series for run in self.runs.values() for series in run.scalars.values())

    @cached_property
    def notes(self) -> tuple[tuple[str, Message], ...]:
        """(run, what could not be read there) pairs."""
        return tuple((run.name, note) for run in self.runs.values() for note in run.notes)


@dataclass(frozen=True)
class Family:
    """Jobs that share a parent directory and tags: a sweep, seeds, before and after."""

    name: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class LogDir:
    """Everything in a log directory, read."""

    path: Path
    jobs: tuple[Job, ...]

    @cached_property
    def runs(self) -> Mapping[str, Run]:
        """All runs by TensorBoard's names."""
        return {name: run for job in self.jobs for name, run in sorted(job.runs.items())}

    def to_pandas(self) -> DataFrame:
        """Every point of every scalar in long format: a row a point with its run, tag, step (int64), wall_time (float64,
        seconds since the epoch) and value (float64), in writing order within each run and tag.

        Raises `ImportError` where pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        every = [series for run in self.runs.values() for series in run.scalars.values()]
        lengths = [len(series) for series in every]
        return pandas.DataFrame(
            {
                "run": np.repeat(np.array([series.run for series in every], object), lengths),
                "tag": np.repeat(np.array([series.tag for series in every], object), lengths),
                "step": np.concatenate([np.empty(0, np.int64), *(series.steps for series in every)]),
                "wall_time": np.concatenate([np.empty(0), *(series.wall_times for series in every)]),
                "value": np.concatenate([np.empty(0), *(series.values for series in every)]),
            }
        )


class RunCache:
    """The runs of a log directory, read once and then only where their files have grown.

    Event files are append-only. A file that is shorter than what was read of it, or another one under the same name, is
    read from its start again.
    """

    def __init__(self) -> None:
        self._reader = Reader()
        self._files: dict[str, EventFile] = {}
        self._runs: dict[str, Run] = {}

    def read(self, wanted: Sequence[RunFiles]) -> list[Run]:
        """These runs with all that is in their files now. Small files are read together, which is why there may be
        several runs.
        """
        grown = {
            run.name: [self._files[path] for path, seen in zip(run.files, run.fingerprints, strict=True) if self._has_grown(path, seen)]
            for run in wanted
        }
        self._reader.read([file for files in grown.values() for file in files])
        for run in wanted:
            if grown[run.name] or run.name not in self._runs:
                self._runs[run.name] = _run(run.name, [self._files[path] for path in run.files])
        return [self._runs[run.name] for run in wanted]

    def forget_all_but(self, wanted: Iterable[RunFiles]) -> None:
        """Drop the runs that no longer exist."""
        wanted = list(wanted)
        paths = {path for run in wanted for path in run.files}
        names = {run.name for run in wanted}
        self._files = {path: file for path, file in self._files.items() if path in paths}
        self._runs = {name: run for name, run in self._runs.items() if name in names}

    def _has_grown(self, path: str, seen: Fingerprint) -> bool:
        """Whether there is something to read in the file; sets up its `EventFile` where it is new or another one."""
        size, _, inode = seen
        known = self._files.get(path)
        grown = known is None or size != known.size
        if known is None or inode != known.inode or size < known.size or (grown and not _starts_with(path, known.head)):
            self._files[path] = EventFile(path)
            return True
        return grown


def _starts_with(path: str, head: bytes) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read(len(head)) == head
    except OSError:
        return False


def load(logdir: str | os.PathLike[str]) -> LogDir:
    """Read every point of every run below `logdir`.

    ``load("logs").runs["exp/train"].scalars["epoch_loss"]`` is a `Series`. Raises `LogdirError` where there is no such
    directory; damaged files give notes.
    """
    path = Path(logdir)
    found = find_jobs(path)
    return LogDir(path, tuple(read_jobs(found, RunCache())))


def find_jobs(logdir: Path) -> list[JobFiles]:
    """The jobs below `logdir`, sorted by name. Raises `LogdirError` where there is no such directory."""
    if not logdir.exists():
        raise LogdirError(f"log directory {str(logdir)!r} does not exist")
    if not logdir.is_dir():
        raise LogdirError(f"{str(logdir)!r} is not a directory; give the directory that holds the event files")
    runs: dict[str, RunFiles] = {}
    captures: list[Capture] = []
    attachments: list[Attachment] = []
    for name, directory, names in _walk(logdir):
        files = tuple(f"{directory}/{n}" for n in names if is_event_file(n))
        if files:
            runs[name] = RunFiles(name, files, tuple(map(fingerprint, files)))
        if any(n.endswith(CAPTURE_ENDINGS) for n in names):
            captures.extend(find_captures(_run_of_session(name), Path(directory), names))
        attachments.extend(find_attachments(name, directory, names))
    grouped_runs: dict[str, list[RunFiles]] = defaultdict(list)
    grouped_captures: dict[str, list[Capture]] = defaultdict(list)
    for name, run in runs.items():
        grouped_runs[_job_of(name, runs)].append(run)
    for capture in captures:
        grouped_captures[_job_of(capture.run, runs)].append(capture)
    grouped_attachments: dict[str, list[Attachment]] = defaultdict(list)
    jobs = dict.fromkeys([*grouped_runs, *grouped_captures])
    only = _only_jobs(grouped_runs)
    for attachment in attachments:
        if attachment.kind == CHECKPOINT:  # belongs to the job that it lies in, or below; without one it says nothing
            owner = next((above for above in _upwards(attachment.directory) if above in grouped_runs), None)
            if owner is not None:
                grouped_attachments[owner].append(attachment)
            continue
        grouped_attachments[_job_beside(_job_of(attachment.directory, runs), jobs, only)].append(attachment)
    names = sorted({*jobs, *grouped_attachments})
    return [JobFiles(n, tuple(grouped_runs[n]), tuple(grouped_captures[n]), tuple(grouped_attachments[n])) for n in names]


def read_jobs(found: Sequence[JobFiles], cache: RunCache) -> Iterator[Job]:
    """Read jobs in their order, small ones together. Captures are read when a rule asks for them. Never raises
    `OSError`.
    """
    batch: list[JobFiles] = []
    size = 0
    for index, files in enumerate(found):
        batch.append(files)
        size += files.bytes
        if index + 1 == len(found) or size >= BUFFER_BYTES:
            runs = {run.name: run for run in cache.read([run for job in batch for run in job.runs])}
            for job in batch:
                yield _job(job, {run.name: runs[run.name] for run in job.runs})
            batch, size = [], 0


def _job(files: JobFiles, runs: Mapping[str, Run]) -> Job:
    written = [mtime for run in files.runs for _, mtime, _ in run.fingerprints]
    return Job(files.name, runs, files.captures, time.time(), max(written, default=0) / 1e9, files.attachments)


def _run(name: str, files: Sequence[EventFile]) -> Run:
    files = sorted(files, key=_first_wall_time) if len(files) > 1 else files
    scalars = {tag: _series(name, tag, files) for tag in sorted({tag for file in files for tag in file.scalars})}
    return Run(
        name=name,
        scalars=scalars,
        tags={tag: plugin for file in files for tag, plugin in file.tags.items()},
        writer=next((file.writer for file in files if file.writer), ""),
        file_names=tuple(file.name for file in files),
        events=sum(file.events for file in files),
        notes=tuple(note for file in files for note in file.notes),
        histograms={tag: _histograms(name, tag, files) for tag in sorted({tag for file in files for tag in file.histograms})},
        stored={tag: tuple(e for file in files for e in file.stored.get(tag, ())) for file in files for tag in file.stored},
    )


def find_families(jobs: Iterable[Job]) -> list[Family]:
    """Groups of two or more jobs with the same parent directory and at least one common scalar tag.

    Directories that are called as hyperparameters lie within a family: ``sweep/lr0.1/seed0`` belongs to ``sweep``.
    """
    siblings: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.name != ".":
            siblings[_family_of(job.name)].append(job)
    families = []
    for name, members in sorted(siblings.items()):
        counts: dict[str, int] = defaultdict(int)
        for job in members:
            for tag in {series.tag for series in job.scalars}:
                counts[tag] += 1
        shared = {tag for tag, count in counts.items() if count > 1}
        alike = tuple(job for job in members if any(series.tag in shared for series in job.scalars))
        if len(alike) > 1:
            families.append(Family(name, alike))
    return families


def is_event_file(name: str) -> bool:
    """Whether TensorBoard takes a file of this name for an event file (`io_wrapper.IsSummaryEventsFile`)."""
    return "tfevents" in name and not name.endswith(".profile-empty")


def _walk(logdir: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(run name, directory, file names) below `logdir`, sorted, following symbolic links but never in circles."""
    waiting = [(".", os.fspath(logdir), os.path.realpath(logdir))]
    while waiting:
        name, directory, real = waiting.pop()
        names: list[str] = []
        below = []
        try:
            entries = list(os.scandir(directory))
        except OSError:  # gone by now, or not to be read
            continue
        for entry in entries:
            if not entry.is_dir():
                names.append(entry.name)
                continue
            target = os.path.realpath(entry.path) if entry.is_symlink() else f"{real}/{entry.name}"
            if not f"{real}/".startswith(f"{target}/"):  # a link to where it lies leads in circles
                below.append((entry.name if name == "." else f"{name}/{entry.name}", entry.path, target))
        yield name, directory, sorted(names)
        waiting += sorted(below, reverse=True)


def _run_of_session(name: str) -> str:
    """The run that a directory belongs to: ``exp`` for ``exp/plugins/profile/2026_11_30``."""
    parts = name.split("/")
    return "/".join(parts[:-3]) or "." if parts[-3:-1] == ["plugins", "profile"] else name


def _parent(name: str) -> str:
    return name.rpartition("/")[0] or "."


def _family_of(name: str) -> str:
    parts = name.split("/")[:-1]
    above = next((i for i, part in enumerate(parts) if is_setting(part)), len(parts))
    return "/".join(parts[:above]) or "."


def _job_of(name: str, runs: Mapping[str, RunFiles]) -> str:
    """The job that the run `name` belongs to (see the table at the top)."""
    if name == ".":
        return name
    parent = owner = _parent(name)
    while name in runs:
        if owner in runs and _is_add_scalars_run(name, owner, runs[name]):
            return _job_of(owner, runs)
        if owner == ".":
            break
        owner = _parent(owner)
    if not _is_part_of_parent(name, parent, runs):
        return name
    return _job_of(parent, runs) if parent in runs else parent


def _only_jobs(names: Iterable[str]) -> dict[str, str]:
    """Each directory with exactly one job somewhere below it, and that job."""
    below: dict[str, str | None] = {}
    for name in names:
        directory = name
        while directory != ".":
            directory = _parent(directory)
            below[directory] = None if directory in below else name
    return {directory: name for directory, name in below.items() if name is not None}


def _upwards(directory: str) -> Iterator[str]:
    """A directory and the two that it lies in."""
    for _ in range(3):
        yield directory
        if directory == ".":
            return
        directory = _parent(directory)


def _job_beside(directory: str, jobs: Mapping[str, object], only: Mapping[str, str]) -> str:
    """The job that other files in `directory` belong to: the one of its name, the one that it lies in, or the `only` one that lies below
    or beside it. Where there are several, the files stand for a job of their own.
    """
    parent = _parent(directory)
    for name in (directory, parent):
        if name in jobs:
            return name
    return only.get(directory) or only.get(parent) or directory


def _is_part_of_parent(name: str, parent: str, runs: Mapping[str, RunFiles]) -> bool:
    base = name.rpartition("/")[2]
    if base.lower() in TRAINING_SPLITS:
        return True
    if base.lower() in EVALUATION_SPLITS:
        splits = {spelled for split in TRAINING_SPLITS | EVALUATION_SPLITS for spelled in (split, split.title(), split.upper())}
        return parent in runs or any(name.removesuffix(base) + split in runs for split in splits - {base})
    return bool(_HPARAMS_RUN.fullmatch(base)) and parent in runs


def _is_add_scalars_run(name: str, owner: str, run: RunFiles) -> bool:
    size, _, inode = run.fingerprints[0]
    below = name if owner == "." else name.removeprefix(owner + "/")
    return _is_add_scalars_file(run.files[0], below, min(size, HEAD_BYTES), inode)


@lru_cache(maxsize=100_000)
def _is_add_scalars_file(path: str, below: str, size: int, inode: int) -> bool:
    """Whether `add_scalars(tag, {key: …})` of a writer made this run, `below` its directory.

    PyTorch's makes ``<tag>_<key>`` with ``/`` as ``_``, tensorboardX's ``<tag>/<key>``; both write that one tag there. Remembered for each
    file: what stands at its start does not change once that much is written.
    """
    first = None
    for tag in scalar_tags_at_start(path):
        by_torch = "/" not in below and below.startswith(tag.replace("/", "_") + "_")
        if (first is not None and tag != first) or not (by_torch or below.rpartition("/")[0] == tag):
            return False
        first = tag
    return first is not None


def _first_wall_time(file: EventFile) -> tuple[float, str]:
    return file.first_wall_time, file.name


def _series(run: str, tag: str, files: Iterable[EventFile]) -> Series:
    parts = [file.scalars[tag].series(run, tag) for file in files if tag in file.scalars]
    return parts[0] if len(parts) == 1 else joined(parts)


def _histograms(run: str, tag: str, files: Iterable[EventFile]) -> Histograms:
    parts = [file.histograms[tag].histograms(run, tag) for file in files if tag in file.histograms]
    return parts[0] if len(parts) == 1 else joined_histograms(parts)
