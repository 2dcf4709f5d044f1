"""Event files of public projects, as people really write them. Extra: skipped where the corpus is not at hand."""

import csv
from pathlib import Path

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Status
from tb_advisor.logdir.jobs import is_event_file

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

pytestmark = pytest.mark.skipif(not (CORPUS / "events").is_dir(), reason="../shared/corpus/events is not there")


@pytest.fixture(scope="module")
def report():
    return diagnose(CORPUS / "events")


def test_every_run_appears_and_no_rule_fails(report):
    directories = {path.parent for path in (CORPUS / "events").rglob("*") if path.is_file() and is_event_file(path.name)}
    expected = {directory.relative_to(CORPUS / "events").as_posix() for directory in directories}
    assert {run for job in report.jobs for run in job.runs} == expected
    assert [(o.rule, o.job, str(o.reason)) for o in report.outcomes if o.status is Status.ERROR] == []


def test_what_could_not_be_read_is_said(report):
    texts = [str(note.text) for note in report.notes]
    assert sum(text.endswith("is empty") for text in texts) == 3
    assert sum("is not an event file" in text for text in texts) == 2


def labelled(label):
    with (CORPUS / "LABELS.tsv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return [f"{row['folder']}/{row['run']}" for row in rows if row["labels"] == label and float(row["confidence"]) >= 0.9]


def found(report, job):
    return {o.rule for o, d in report.diagnoses if d.shown and (o.job == job or o.job.startswith(job + "/"))}


def test_what_an_experienced_reader_calls_overfitting_is_found(report):
    jobs = labelled("overfit")
    assert len(jobs) >= 5
    assert {job: found(report, job) for job in jobs} == {job: {"overfitting"} for job in jobs}


def test_what_an_experienced_reader_calls_healthy_is_silent(report):
    jobs = labelled("healthy")
    assert len(jobs) >= 2
    assert {job: found(report, job) for job in jobs} == {job: set() for job in jobs}


def test_flat_losses_are_found(report):
    assert found(report, "eat_tensorflow2_in_30_days/data/keras_model/20200315-094400") == {"loss-not-decreasing"}
