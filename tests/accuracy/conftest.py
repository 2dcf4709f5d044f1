from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

MAKE = Path(__file__).with_name("make.py")


@pytest.fixture(scope="session")
def labelled_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The labelled runs: those of ADVISOR_ACCURACY where they are made already, else trained anew."""
    if made := os.environ.get("ADVISOR_ACCURACY"):
        return Path(made)
    for needed in ("tensorflow", "sklearn", "tensorboardX", "psutil"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed, which the runs are trained with")
    directory = tmp_path_factory.mktemp("accuracy")
    done = subprocess.run([sys.executable, "-W", "ignore", str(MAKE), str(directory)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return directory
