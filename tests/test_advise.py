import math
import shutil
import subprocess
import sys
import time

import numpy as np

from tb_advisor.advise import diagnose
from tb_advisor.check import Cache
from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, Status
from tb_advisor.evidence.run_state import QUIET_SECONDS
from tb_advisor.message import Message, Missing
from tb_advisor.report import Report
from tb_advisor.rule import Rule
from tb_advisor.rules import all_rules
from tb_advisor.rules.overfitting import overfitting
from tb_advisor.rules.overtraining import overtraining
from tests.builders import event_file, falling, scalar_event, write_events


def toy(name, check, evidence=("train_loss",)):
    return Rule(name, "A toy.", "toy", (), evidence, {}, {}, check)


def found(*_):
    return [Diagnosis(Message("found"), Severity.WARNING, Confidence.HIGH)]


def fails(*_):
    raise ZeroDivisionError("by zero")


def misses(*_):
    raise Missing("no {what}", what="patience")


def statuses(report: Report):
    return {(o.rule, o.job): (o.status, str(o.reason) if o.reason else None) for o in report.outcomes}


def test_four_outcomes_and_one_failing_rule_spoils_nothing(tmp_path):
    event_file(tmp_path / "run", {"loss": falling(50)})
    rules = [toy("a", found), toy("b", lambda _: []), toy("c", misses), toy("d", fails), toy("e", found, ("val_loss",)), toy("f", found)]
    report = diagnose(tmp_path, rules=rules)
    outcomes = statuses(report)
    assert outcomes["a", "run"] == (Status.FOUND, None)
    assert outcomes["b", "run"] == (Status.CLEAR, None)
    assert outcomes["c", "run"] == (Status.NOT_APPLICABLE, "no patience")
    assert outcomes["d", "run"] == (Status.ERROR, "ZeroDivisionError: by zero")
    assert outcomes["e", "run"][0] is Status.NOT_APPLICABLE
    assert outcomes["f", "run"] == (Status.FOUND, None)


def test_unknown_evidence_is_an_error_of_that_rule(tmp_path):
    event_file(tmp_path, {"loss": [1.0]})
    report = diagnose(tmp_path, rules=[toy("a", found, ("horoscope",))])
    assert statuses(report)["a", "."] == (Status.ERROR, "KeyError: 'horoscope'")


def test_a_rule_over_a_family_sees_its_jobs_together(tmp_path):
    for name in ("sweep/a", "sweep/b"):
        event_file(tmp_path / name, {"loss": falling(50)})
    report = diagnose(tmp_path, rules=[toy("siblings", found, ("family",))])
    (outcome,) = report.outcomes
    assert (outcome.job, outcome.jobs, outcome.status) == ("sweep", ("sweep/a", "sweep/b"), Status.FOUND)


def test_what_a_finding_explains_is_folded_under_it_and_stays_in_the_report(tmp_path):
    train = [2.0 * 0.8**i + 0.01 for i in range(30)]
    val = [*np.linspace(1.5, 0.6, 6), *np.linspace(0.6, 1.4, 25)[1:]]
    event_file(tmp_path / "train", {"epoch_loss": train})
    event_file(tmp_path / "validation", {"epoch_loss": val})
    report = diagnose(tmp_path, rules=[overfitting, overtraining])
    assert {(o.rule, d.folded_under, d.shown) for o, d in report.diagnoses} == {
        ("overfitting", None, True),
        ("overtraining", "overfitting", False),
    }


def test_a_hidden_finding_explains_nothing(tmp_path):
    event_file(tmp_path, {"loss": falling(50)})
    quiet = [Diagnosis(Message("quiet"), Severity.INFO, Confidence.HIGH, explains=("b",))]
    report = diagnose(tmp_path, rules=[toy("a", lambda _: quiet), toy("b", found)])
    assert [d.folded_under for _, d in report.diagnoses] == [None, None]


def test_two_findings_that_explain_each_other_do_not_hide_both(tmp_path):
    event_file(tmp_path, {"loss": falling(50)})

    def saying(*explains):
        return lambda _: [Diagnosis(Message("loud"), Severity.WARNING, Confidence.HIGH, explains=explains)]

    report = diagnose(tmp_path, rules=[toy("a", saying("b")), toy("b", saying("c")), toy("c", saying("a"))])
    assert [(o.rule, d.folded_under) for o, d in report.diagnoses] == [("a", None), ("b", "a"), ("c", "b")]


def test_a_cause_is_as_severe_as_what_it_explains(tmp_path):
    event_file(tmp_path, {"loss": falling(50)})
    cause = [Diagnosis(Message("cause"), Severity.WARNING, Confidence.HIGH, explains=("b",))]
    worse = [Diagnosis(Message("consequence"), Severity.ERROR, Confidence.HIGH)]
    report = diagnose(tmp_path, rules=[toy("a", lambda _: cause), toy("b", lambda _: worse)])
    assert [(o.rule, d.severity, d.folded_under) for o, d in report.diagnoses] == [
        ("a", Severity.ERROR, None),
        ("b", Severity.ERROR, "a"),
    ]


def test_progress_reaches_its_end_and_the_report_grows_job_by_job(tmp_path):
    for name in "abc":
        event_file(tmp_path / name, {"loss": falling(20)})
    seen = []
    diagnose(tmp_path, watch=lambda progress, report: seen.append((progress, [job.name for job in report().jobs])))
    assert [(progress.jobs, names) for progress, names in seen] == [(0, []), (1, ["a"]), (2, ["a", "b"]), (3, ["a", "b", "c"])]
    last = seen[-1][0]
    assert (last.jobs, last.runs, last.bytes) == (last.jobs_total, last.runs_total, last.bytes_total) == (3, 3, last.bytes)
    assert last.bytes > 0


def test_bad_files_give_notes_and_the_rest_of_the_report(tmp_path):
    event_file(tmp_path / "good", {"loss": falling(50)})
    torn = event_file(tmp_path / "torn", {"loss": falling(50)})
    torn.write_bytes(torn.read_bytes()[:-5])
    event_file(tmp_path / "nan", {"loss": [math.nan] * 20})
    event_file(tmp_path / "short", {"loss": [1.0]})
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "events.out.tfevents.0").write_bytes(b"")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "events.out.tfevents.0").write_text("hello " * 100)
    report = diagnose(tmp_path)
    assert {job.name for job in report.jobs} == {"good", "torn", "nan", "short", "empty", "foreign"}
    assert {note.job for note in report.notes} == {"torn", "empty", "foreign"}
    assert not [o for o in report.outcomes if o.status is Status.ERROR]
    assert [o.job for o, d in report.diagnoses if d.shown] == ["nan"]


def test_a_job_that_vanishes_while_it_is_read(tmp_path):
    for name in ("a", "b"):
        event_file(tmp_path / name, {"loss": falling(50)})

    def vanish(progress, report):
        shutil.rmtree(tmp_path / "b", ignore_errors=True)

    report = diagnose(tmp_path, watch=vanish)
    assert [job.name for job in report.jobs] == ["a", "b"]
    assert "could not be read" in str(report.notes[0].text)


def test_a_logdir_that_does_not_exist_is_a_note(tmp_path):
    report = diagnose(tmp_path / "nowhere")
    assert report.jobs == ()
    assert "does not exist" in str(report.notes[0].text)


def spy(judged):
    """A rule that notes the jobs it is asked about."""
    return toy("spy", lambda job: judged.append(job.name) or [], ("job",))


def test_a_refresh_checks_only_what_changed(tmp_path):
    for name in "abcd":
        event_file(tmp_path / name, {"loss": falling(20)})
    judged, cache = [], Cache()
    rules = [spy(judged)]
    first = diagnose(tmp_path, rules=rules, cache=cache)
    assert judged == ["a", "b", "c", "d"]
    judged.clear()
    event_file(tmp_path / "b", {"loss": falling(30)})
    event_file(tmp_path / "e", {"loss": falling(20)})
    shutil.rmtree(tmp_path / "c")
    seen = []
    second = diagnose(tmp_path, rules=rules, cache=cache, watch=lambda progress, _: seen.append(progress))
    assert judged == ["b", "e"]
    assert [(job.name, job.points) for job in second.jobs] == [("a", 20), ("b", 30), ("d", 20), ("e", 20)]
    assert second.jobs[0] is first.jobs[0]
    assert [outcome.job for outcome in second.outcomes] == ["a", "b", "d", "e"]
    assert (seen[-1].jobs, seen[-1].bytes) == (4, seen[-1].bytes_total)


def test_other_rules_are_asked_anew(tmp_path):
    event_file(tmp_path, {"loss": falling(20)})
    judged, cache = [], Cache()
    diagnose(tmp_path, rules=[toy("a", found)], cache=cache)
    diagnose(tmp_path, rules=[spy(judged)], cache=cache)
    assert judged == ["."]


def test_a_job_that_was_running_is_finished_once_its_files_have_been_quiet(tmp_path, monkeypatch):
    written = time.time()
    write_events(tmp_path, [scalar_event("loss", step, value, written - 20 + step) for step, value in enumerate(falling(20))])
    judged, cache = [], Cache()
    rules = [spy(judged)]
    finished = []
    for seconds in (0, 1, 2 * QUIET_SECONDS, 3 * QUIET_SECONDS):
        monkeypatch.setattr(time, "time", lambda now=written + seconds: now)
        finished.append(diagnose(tmp_path, rules=rules, cache=cache).jobs[0].finished)
    assert finished == [False, False, True, True]
    assert judged == [".", "."]


def test_rules_are_pure(tmp_path):
    event_file(tmp_path, {"loss": [*falling(100), math.nan], "val_loss": falling(50)})
    first, second = (diagnose(tmp_path).as_json()["outcomes"] for _ in range(2))
    assert first == second
    assert len(first) == len([rule for rule in all_rules() if not rule.of_family])


def test_the_public_name_rule_is_the_decorator_whatever_was_imported():
    code = "import tb_advisor; tb_advisor.diagnose; import tb_advisor.rules; print(callable(tb_advisor.rule), tb_advisor.rule.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True rule\n"
