"""Nothing is ever written into a log directory: not a byte, not a name, not a time."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import tb_advisor
from tb_advisor.advise import diagnose
from tb_advisor.check import Cache
from tb_advisor.cli import main
from tb_advisor.logdir import reading
from tests.builders import event_file, falling
from tests.test_plugin import client, ready
from tests.trace_builders import allocator_steps, keras_steps, kineto_capture, kineto_memory, kineto_steps, message, put, xplane_capture


@pytest.fixture
def logs(tmp_path):
    """Runs and captures of every format, whole and damaged."""
    logdir = tmp_path / "logs"
    event_file(logdir / "keras" / "train", {"epoch_loss": [*falling(60), 30.0, *falling(60, 0.5, 0.4)], "memory_mb": range(100, 221)})
    event_file(logdir / "keras" / "validation", {"epoch_loss": falling(120)})
    for host in ("a", "b"):
        xplane_capture(logdir / "keras" / "train", keras_steps([20] * 6, [15] * 6), host=host)
    xplane_capture(logdir / "gpu", allocator_steps([(100, 980)] * 6, capacity=1000))
    kineto_capture(logdir / "torch", [*kineto_steps([10] * 6, [8] * 6), kineto_memory(1015, 10**9)])
    session = logdir / "old" / "plugins" / "profile" / "2020_01_01_00_00_00"
    put(session / "h.input_pipeline.pb", message((9, b"GPU")))
    put(session / "h.memory_profile.json.gz", gzip.compress(b"{}"))
    put(session / "local.trace", b"\xff")
    torn = event_file(logdir / "torn", {"loss": falling(50)})
    torn.write_bytes(torn.read_bytes()[:-5])
    put(logdir / "broken" / "plugins" / "profile" / "s" / "h.xplane.pb", b"\xff" * 50)
    return logdir


def state(directory: Path) -> dict[str, tuple[object, ...]]:
    """Of every name below `directory`: its time, and of a file its content."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (directory, *directory.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[path.relative_to(directory).as_posix()] = (path.stat().st_mtime_ns, path.stat().st_mode, content)
    return found


def test_what_the_library_does_leaves_no_trace(logs, monkeypatch):
    before = state(logs)
    cache = Cache()
    for workers, memory_bytes in ((1, None), (1, None), (2, None), (1, 10_000)):
        assert len(diagnose(logs, cache=cache, workers=workers, memory_bytes=memory_bytes).jobs) == 6
    monkeypatch.setattr(reading, "_LARGE", 0)  # every capture in a process of its own
    monkeypatch.setattr(reading, "_MEMORY_A_BYTE", 100_000)
    report = diagnose(logs, workers=1)
    assert {"input-bound-steps", "memory-near-limit", "incomplete-capture"} <= {o.rule for o, _ in report.diagnoses}
    assert len(tb_advisor.load(logs).runs) == 3
    assert state(logs) == before


def test_what_the_command_does_leaves_no_trace(logs):
    before = state(logs)
    for arguments in (["check"], ["check", "--format", "json"], ["roles"]):
        result = CliRunner().invoke(main, [*arguments, str(logs)])
        assert result.exit_code in (0, 1), result.output
    assert state(logs) == before


def test_what_the_tab_does_leaves_no_trace(logs):
    before = state(logs)
    app = client(logs)
    answer = ready(app)
    assert answer["state"] == "ready"
    for route in (
        "/series?run=keras/train&tag=epoch_loss",
        "/histogram?run=keras/train&tag=none",
        "/rules",
        "/report?refresh=1",
        "/index.js",
    ):
        app.get(route)
    ready(app)
    assert state(logs) == before


def test_a_log_directory_that_may_not_be_written_is_read(logs):
    if os.name != "posix":
        pytest.skip("permissions of POSIX")
    for path in (*logs.rglob("*"), logs):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert len(diagnose(logs, workers=1).jobs) == 6
    finally:
        for path in (logs, *logs.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
