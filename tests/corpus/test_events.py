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


# What an experienced reader's label asks of the Advisor: one of these rules, or silence.
EXPECTED = {
    "overfit": {"overfitting"},
    "plateau_no_learning": {"loss-not-decreasing"},
    "diverged_blowup": {"loss-divergence", "loss-not-decreasing", "non-finite-loss"},
    "lr_problem": {"learning-rate-zero", "learning-rate-jump", "loss-divergence"},
    "healthy": set(),
    "rl_normal": set(),
    "gan_normal": set(),
}


def labelled():
    """(job, its labels) of every reading with a confidence of 0.8 or more; where two labels stand, either is acceptable."""
    if not (CORPUS / "LABELS.tsv").is_file():
        return []
    with (CORPUS / "LABELS.tsv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    sure = [(f"{row['folder']}/{row['run']}", row["labels"].split(",")) for row in rows if float(row["confidence"]) >= 0.8]
    return [(job, labels) for job, labels in sure if set(labels) & EXPECTED.keys()]


def found(report, job):
    return {o.rule for o, d in report.diagnoses if d.shown and (o.job == job or o.job.startswith(job + "/"))}


def readings():
    for job, labels in labelled():
        yield pytest.param(job, labels, id=f"{'-or-'.join(labels)}: {job}")


@pytest.mark.parametrize(("job", "labels"), list(readings()))
def test_what_an_experienced_reader_sees_is_said(report, job, labels):
    asked = [EXPECTED[label] for label in labels if label in EXPECTED]
    said = found(report, job)
    assert any(said & rules if rules else not said for rules in asked), f"{said or 'nothing'} was said, {asked} asked for"


def test_the_labels_are_there():
    labels = [label for _, given in labelled() for label in given]
    assert {label: labels.count(label) for label in ("overfit", "healthy")} == {"overfit": 7, "healthy": 13}
