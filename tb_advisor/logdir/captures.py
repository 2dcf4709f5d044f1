"""Finds profiler captures by the names of files, and reads the first bytes only where a name does not say what it is.

==========================================================  =====================================================
what lies in a directory                                    captures
==========================================================  =====================================================
``<run>/plugins/profile/<session>/*.xplane.pb``             one, ``<run>/<session>``, a file a host
``*.xplane.pb`` in any other directory                      one, named like the directory
``*.pt.trace.json[.gz]``, other Chrome traces               one a file, ``<run>/<name>`` (PyTorch's profiler)
only ``*.overview_page.pb``, ``local.trace`` … (2020–2022)  one, with all of these files
==========================================================  =====================================================

``<host>.trace.json.gz`` beside ``<host>.xplane.pb`` is the same profile again (JAX) and is left out, and so are the caches that the
Profile tab writes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

XPLANE = ".xplane.pb"
# Written by the profiler of TensorFlow 2.0 to 2.10 and of Cloud TPU (profiler/convert/, reference: xprof's demo sessions).
OLD_FORMATS = (
    ".overview_page.pb",
    ".input_pipeline.pb",
    ".tensorflow_stats.pb",
    ".kernel_stats.pb",
    ".memory_profile.json.gz",
    ".pod_viewer.json",
    ".trace",
)
_KINETO = (".pt.trace.json", ".pt.trace.json.gz")
_CHROME = (".trace.json", ".trace.json.gz")
_HEAD_BYTES = 1 << 15
# No capture has a file that ends otherwise.
ENDINGS = (".pb", ".json", ".gz", ".trace")


@dataclass(frozen=True)
class Capture:
    """One profiling session. `name` is ``<run>/<session>``, as in TensorBoard's Profile tab; a session has one file a host."""

    name: str
    run: str
    files: tuple[Path, ...]

    @property
    def in_profile_tab(self) -> bool:
        """Whether the Profile tab lists it: XPlane files in a session directory below the run's ``plugins/profile``."""
        directory = self.files[0].parent
        named = self.name == _capture_name(self.run, directory.name) and self.name != self.run
        return named and _is_session(directory) and any(path.name.endswith(XPLANE) for path in self.files)


def find_captures(run: str, directory: Path, names: list[str]) -> list[Capture]:
    """The captures whose files are `names` in `directory`, the directory of the run `run` or a session directory below it.

    Opens only files that may be Chrome traces by their names. Never raises because of what they hold.
    """
    session = _session_files(directory, names)
    found = [Capture(_session_name(run, directory), run, tuple(directory / name for name in session))] if session else []
    seen = {capture.name for capture in found}
    for name in names:
        if name in session or not _may_be_chrome_trace(name, bool(session)) or not _is_chrome_trace(directory / name):
            continue
        capture = Capture(_capture_name(run, _stem(name)), run, (directory / name,))
        if capture.name not in seen:
            seen.add(capture.name)
            found.append(capture)
    return found


def host_of(name: str) -> str:
    """The host in the name of a session's file: ``worker0.example.org`` for ``worker0.example.org.xplane.pb``."""
    for suffix in (XPLANE, *_KINETO, *_CHROME, *OLD_FORMATS):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return _stem(name)


def _session_files(directory: Path, names: list[str]) -> list[str]:
    """The files that make a session of the TensorFlow or JAX profiler, empty where there is none."""
    planes = [name for name in names if name.endswith(XPLANE)]
    in_session = _is_session(directory)
    old = [name for name in names if name.endswith(OLD_FORMATS[:-1]) or (name.endswith(OLD_FORMATS[-1]) and in_session)]
    old += [name for name in names if name == "local.trace" and name not in old]
    hosts = {name.removesuffix(XPLANE) for name in planes}
    traces = [n for n in names if n.endswith(_CHROME) and not n.endswith(_KINETO) and host_of(n) not in hosts]
    if planes:
        return planes + (traces if in_session else [])
    return old + traces if old or in_session else []


def _session_name(run: str, directory: Path) -> str:
    if run == ".":
        return directory.resolve().name
    below_run = _is_session(directory) and directory.parents[2].parts[-len(PurePosixPath(run).parts) :] == PurePosixPath(run).parts
    return _capture_name(run, directory.name) if below_run else run


def _is_session(directory: Path) -> bool:
    return directory.absolute().parts[-3:-1] == ("plugins", "profile")


def _may_be_chrome_trace(name: str, run_has_session: bool) -> bool:
    if name.endswith(_KINETO):
        return True
    return not run_has_session and (name.endswith(".json.gz") or (name.endswith(".json") and "trace" in name))


def _is_chrome_trace(path: Path) -> bool:
    if path.name.endswith(_KINETO):
        return True
    head = _head(path)
    if head.startswith(b"["):
        return b'"ph"' in head
    return head.startswith(b"{") and (b'"traceEvents"' in head or b'"schemaVersion"' in head)


def _head(path: Path) -> bytes:
    """The first bytes of the file, unpacked, without white space in front; empty where it cannot be read."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(wbits=31).decompress(head, 2 * _HEAD_BYTES)
    except (OSError, zlib.error):
        return b""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def _stem(name: str) -> str:
    for suffix in (*_KINETO[::-1], ".json.gz", ".json"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _capture_name(run: str, session: str) -> str:
    return session if run == "." else f"{run}/{session}"
