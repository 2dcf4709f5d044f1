from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def demo_logs() -> Path:
    """The trained demo jobs. tests/run.sh trains them once; alone, `bash demo/run.sh --no-serve` does."""
    logs = Path(os.environ.get("ADVISOR_LOGDIR", ROOT / "demo" / "logs"))
    if not logs.is_dir():
        pytest.skip("the demo jobs are not trained: bash demo/run.sh --no-serve")
    return logs
