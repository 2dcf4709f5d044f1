import logging
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.logdir.jobs import find_jobs
from tb_advisor.pool import batches_of, workers_for
from tests.builders import FIRST_SECOND, Event, event_file, falling, scalar_event, tensor_event, write_events
from tests.test_advise import spy
from tests.trace_builders import xplane_capture


@pytest.fixture
def logs(tmp_path):
    """Thirty jobs, healthy and sick, some of them damaged."""
    for number in range(24):
        event_file(tmp_path / "sweep" / f"lr_{number:02}", {"loss": falling(40 + number), "val_loss": falling(40, end=0.6)})
    event_file(tmp_path / "broken", {"loss": [*falling(40), *[math.nan] * 9]})
    event_file(tmp_path / "spiky", {"loss": [*falling(100), 30.0, *falling(40, start=0.5, end=0.4)]})
    event_file(tmp_path / "exp" / "train", {"epoch_loss": falling(40)})
    event_file(tmp_path / "exp" / "validation", {"epoch_loss": [*falling(15), *falling(25, start=0.6, end=2.0)]})
    torn = event_file(tmp_path / "torn", {"loss": falling(50)})
    torn.write_bytes(torn.read_bytes()[:-5])
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "events.out.tfevents.0").write_bytes(b"")
    restarted = [scalar_event("loss", step, 1 / (1 + step), FIRST_SECOND + i) for i, step in enumerate([*range(50), *range(30, 90)])]
    text = tensor_event("notes", 0, None, plugin="text")
    write_events(tmp_path / "restarted", [Event(wall_time=FIRST_SECOND, file_version="brain.Event:2"), *restarted, text])
    return tmp_path


@pytest.mark.parametrize("workers", [2, 5])
def test_several_processes_give_the_same_report(logs, workers):
    alone, seen = diagnose(logs, workers=1), []
    together = diagnose(logs, workers=workers, watch=lambda progress, report: seen.append((progress, len(report().jobs))))
    assert len(alone.jobs) == 30
    assert {outcome.status.value for outcome in alone.outcomes} == {"found", "clear", "not_applicable"}
    assert together.as_json() == alone.as_json()
    assert [(progress.jobs, jobs) for progress, jobs in seen] == [(number, number) for number in range(31)]
    assert (seen[-1][0].bytes, seen[-1][0].runs) == (seen[-1][0].bytes_total, seen[-1][0].runs_total)


def interpreter(path, program):
    """A "python" that does `program` in place of what it is told, which is in `program`."""
    path.write_text(f"#!{sys.executable}\nimport sys\nprogram = sys.argv[2]\n{program}\n")
    path.chmod(0o755)
    return str(path)


DIES_WITH_THE_THIRD_BATCH = """
import pickle
load, batches = pickle.load, []
def dying_load(stream):
    batches.append(load(stream))
    return batches[-1] if len(batches) < 3 else sys.exit(1)
pickle.load = dying_load
exec(program)
"""
SAYS_NONSENSE = "print('Hello, world!', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("program", ["sys.exit(1)", DIES_WITH_THE_THIRD_BATCH, SAYS_NONSENSE])
def test_what_dying_processes_leave_is_checked_without_them(logs, tmp_path_factory, monkeypatch, caplog, program):
    alone = diagnose(logs, workers=1).as_json()
    monkeypatch.setattr(sys, "executable", interpreter(tmp_path_factory.mktemp("bin") / "python", program))
    with caplog.at_level(logging.WARNING):
        assert diagnose(logs, workers=2).as_json() == alone
    assert "A process of the Advisor died" in caplog.text


def test_processes_that_cannot_be_started_are_done_without(logs, monkeypatch, caplog):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert len(diagnose(logs, workers=2).jobs) == 30
    assert "No such file or directory" in caplog.text


def test_an_interrupted_call_leaves_no_process_behind(logs):
    with pytest.raises(KeyboardInterrupt):
        diagnose(logs, workers=2, watch=lambda progress, _: interrupt() if progress.jobs == 1 else None)
    children = Path(f"/proc/self/task/{subprocess.os.getpid()}/children")
    assert not children.exists() or not children.read_text().split()


def interrupt():
    raise KeyboardInterrupt


def test_a_script_without_a_main_guard_runs_once(logs, tmp_path_factory):
    """What `multiprocessing` with "spawn" would do: the training itself again, in every process."""
    script = tmp_path_factory.mktemp("bin") / "train.py"
    script.write_text(f"print('training')\nimport tb_advisor\nprint(len(tb_advisor.diagnose({str(logs)!r}, workers=2).jobs))\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    assert (done.stdout.split(), done.stderr) == (["training", "30"], "")


def test_small_log_directories_are_read_by_this_process_alone(logs):
    assert workers_for(find_jobs(logs), 1 << 40) == 1


def test_no_more_processes_than_captures_fit_in_memory(tmp_path, monkeypatch):
    for number in range(4):
        path = xplane_capture(tmp_path / f"run{number}", {})
        os.truncate(path, 100 << 20)  # a hole: it takes no room
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    found = find_jobs(tmp_path)
    assert [workers_for(found, budget << 20) for budget in (10_000, 1900, 1300, 700, 500)] == [4, 3, 2, 1, 4]  # at last all are refused


def test_rules_of_the_callers_own_are_asked_in_this_process(logs):
    judged = []
    diagnose(logs, rules=[spy(judged)], workers=2)
    assert len(judged) == 30


def test_batches_keep_every_job_in_order(logs):
    found = find_jobs(logs)
    batches = batches_of(found, 2)
    assert [files for batch in batches for files in batch] == found
    assert 4 <= len(batches) < 30
