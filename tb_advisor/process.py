"""Processes of its own: Python again, with nothing of this program in it but its `sys.path`.

They are started as ``python -c`` and talk through their standard input and output. `ProcessPoolExecutor` would import the
program's main module again in each of them: TensorBoard with all its plugins, or the user's training script, which need
not have a main guard.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from typing import BinaryIO


def can_start() -> bool:
    """Whether `sys.executable` is a Python that does what it is told."""
    interpreter = os.path.basename(sys.executable or "").lower().startswith(("python", "pypy"))
    return interpreter and not getattr(sys, "frozen", False)


def start(module: str, function: str) -> subprocess.Popen[bytes] | None:
    """A process that calls a function without arguments; None, with a warning in the log, where none can be started."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import {function}; {function}()"
    try:
        return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        logging.getLogger("tb_advisor").warning("The Advisor reads with fewer processes: %s", error)
        return None


def questions_and_answers() -> tuple[BinaryIO, BinaryIO]:
    """In such a process: where it is asked and where it answers. Ctrl-C, which reaches every process of the terminal, is
    left to the one that started it; what anything prints goes to standard error, not between the answers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers
