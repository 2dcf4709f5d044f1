import json
import math

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Confidence, Diagnosis, Mark, SeriesExhibit, Severity
from tb_advisor.message import Message
from tb_advisor.report import plain
from tests.builders import event_file, falling

HOSTILE = [
    "<script>alert(1)</script>",
    'a "quoted" run',
    "it's",
    "back\\slash",
    "Größe/学習",
    "{field} {0.__class__}",
    "[bold]not markup[/bold]",
]


def test_the_json_form_has_the_fields_of_schema_version_1(tmp_path):
    event_file(tmp_path / "run", {"loss": [1.0, 0.5, *[math.nan] * 8]})
    report = diagnose(tmp_path).as_json()
    assert report["schema_version"] == 1
    assert report["tool"]["name"] == "tb_advisor"
    (job,) = report["jobs"]
    assert (job["name"], job["runs"], job["first_step"], job["last_step"], job["tags"]) == ("run", ["run"], 0, 9, 1)
    outcome = next(o for o in report["outcomes"] if o["rule"] == "non-finite-loss")
    assert (outcome["job"], outcome["status"], outcome["reason"]) == ("run", "found", None)
    (diagnosis,) = outcome["diagnoses"]
    assert (diagnosis["severity"], diagnosis["confidence"], diagnosis["onset_step"]) == ("error", "high", 2)
    assert diagnosis["summary"].startswith("Training loss (loss) became NaN at step 2")
    assert diagnosis["template"].startswith("{loss} became {kind} at step {onset}")
    assert diagnosis["values"]["onset"] == 2
    assert diagnosis["exhibits"][0]["run_tags"] == [["run", "loss"]]
    assert diagnosis["exhibits"][0]["marks"] == [{"start": 2, "end": 9, "label": "Training loss (loss) NaN from step 2"}]
    assert diagnosis["fixes"][0]["id"] == "clean-rows"  # the loss had not risen before
    assert next(iter(diagnosis["fixes"][0]["code"])) == "pytorch"  # the job's writer first
    assert diagnosis["links"] == [
        {"label": "Time Series", "tab": "timeseries", "href": "?tagFilter=%5Eloss%24&runFilter=%5Erun%24#timeseries"}
    ]


def test_each_tag_has_its_role_its_split_and_the_reason(tmp_path):
    event_file(tmp_path / "train", {"epoch_loss": falling(10), "epoch_learning_rate": [0.1] * 10})
    event_file(tmp_path / "validation", {"epoch_loss": falling(10), "epoch_mystery": falling(10)})
    (job,) = diagnose(tmp_path).as_json()["jobs"]
    assert job["roles"] == {
        "learning_rate": [["train", "epoch_learning_rate"]],
        "training_loss": [["train", "epoch_loss"]],
        "validation_loss": [["validation", "epoch_loss"]],
    }
    assert [list(use.values()) for use in job["tag_roles"]] == [
        ["train", "epoch_learning_rate", "learning_rate", "training", '"learning rate"; training from "train" in its run'],
        ["train", "epoch_loss", "loss", "training", '"loss"; training from "train" in its run'],
        ["validation", "epoch_loss", "loss", "validation", '"loss"; validation from "validation" in its run'],
        ["validation", "epoch_mystery", None, None, "no word of it names a role"],
    ]


def test_it_is_json_for_every_parser(tmp_path):
    event_file(tmp_path, {"loss": [math.nan, math.inf, -math.inf]})
    json.dumps(diagnose(tmp_path).as_json(), allow_nan=False)


@pytest.mark.parametrize(("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_numbers_that_json_does_not_have_are_words(value, text):
    assert plain((value,)) == [text]


def test_marks_are_formatted_like_every_message():
    exhibit = SeriesExhibit((("run", "loss"),), (Mark(1, 2, Message("+{rise:%}", rise=0.5)),))
    diagnosis = Diagnosis(Message("x"), Severity.INFO, Confidence.LOW, exhibits=(exhibit,))
    assert plain(diagnosis)["exhibits"][0]["marks"][0]["label"] == "+50%"


@pytest.mark.parametrize("name", HOSTILE)
def test_names_come_through_as_they_are(tmp_path, name):
    event_file(tmp_path / name.replace("/", "_"), {f"{name}/loss": [*falling(20), math.nan]})
    report = diagnose(tmp_path).as_json()
    (summary,) = [d["summary"] for o in report["outcomes"] for d in o["diagnoses"] if d["severity"] == "error"]
    assert summary.startswith(f"Training loss ({name}/loss) became NaN")


def test_the_best_point_is_that_of_the_validation_loss(tmp_path):
    event_file(tmp_path / "train", {"epoch_loss": [3.0, 2.0, 1.0]})
    event_file(tmp_path / "validation", {"epoch_loss": [3.0, 1.5, 2.0]})
    (job,) = diagnose(tmp_path).jobs
    assert (job.best.run, job.best.step, job.best.value, job.best.last) == ("validation", 1, 1.5, 2.0)
