"""A short run of the fuzz target; fuzz_event_file.py says how to run it for longer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_ten_seconds_of_fuzzing_find_nothing(tmp_path):
    pytest.importorskip("atheris", reason="atheris is not installed: it has wheels for Linux on x86_64 only")
    target = Path(__file__).with_name("fuzz_event_file.py")
    command = [sys.executable, str(target), "-max_total_time=10", "-seed=1", f"-artifact_prefix={tmp_path}{os.sep}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "DONE" in done.stderr
