import json
import math

import pytest
from click.testing import CliRunner

from tb_advisor.cli import main
from tests.builders import event_file, falling


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def logs(tmp_path):
    event_file(tmp_path / "broken", {"loss": [*falling(40), *[math.nan] * 9]})
    event_file(tmp_path / "spiky", {"loss": [*falling(100), 30.0, *falling(40, start=0.5, end=0.4)]})
    event_file(tmp_path / "healthy", {"loss": falling(40), "val_loss": falling(40)})
    return tmp_path


def test_text_says_what_happened_and_what_to_try(logs):
    output = run("check", logs).output
    assert output.splitlines()[0].startswith("broken")  # the worst job first
    assert "▲ Training loss (loss) became NaN at step 40 and never recovered" in output
    assert "try  Lower the learning rate" in output
    assert "■ Training loss jumped from" in output
    assert "\n3 jobs, 3 runs, 0 captures" in output
    assert "1 error, 1 warning in 2 jobs." in output.replace("\n", " ")


def test_a_healthy_logdir_is_a_line_of_tally(tmp_path):
    event_file(tmp_path, {"loss": falling(40), "val_loss": falling(40, end=0.6)})
    result = run("check", tmp_path)
    assert result.exit_code == 0
    assert "1 job, 1 run, 0 captures" in result.output
    assert "nothing found. Best: the run, val_loss 0.611 at step 39." in result.output.replace("\n", " ")


def test_json_is_the_report(logs):
    report = json.loads(run("check", logs, "--format", "json").stdout)
    assert {job["name"] for job in report["jobs"]} == {"broken", "healthy", "spiky"}


def test_output_goes_to_a_file(logs, tmp_path):
    target = tmp_path / "report.json"
    result = run("check", logs, "--format", "json", "--output", target)
    assert result.stdout == ""
    assert json.loads(target.read_text("utf-8"))["schema_version"] == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 1),
        (["--fail-on", "warning"], 1),
        (["--fail-on", "never"], 0),
        (["--ignore", "non-finite-loss"], 0),
        (["--ignore", "non-finite-loss", "--fail-on", "warning"], 1),
        (["--select", "overfitting", "--fail-on", "info"], 0),
        (["--select", "missing-validation", "--fail-on", "info"], 1),
        (["--select", "missing-validation", "--fail-on", "warning"], 0),
    ],
)
def test_exit_status(logs, arguments, status):
    assert run("check", logs, *arguments).exit_code == status


def test_a_budget_of_memory_changes_no_verdict(logs):
    assert run("check", logs, "--memory-mb", "1").output == run("check", logs).output
    assert run("check", logs, "--memory-mb", "0").exit_code == 2


def test_a_logdir_that_does_not_exist_is_bad_usage(tmp_path):
    result = run("check", tmp_path / "nowhere")
    assert (result.exit_code, "does not exist" in result.output) == (2, True)


def test_neither_run_nor_capture(tmp_path):
    result = run("check", tmp_path)
    assert result.exit_code == 3
    assert result.output.startswith("neither a run nor a capture in")


@pytest.mark.parametrize("content", ["", "not an event file, " * 20])
def test_a_run_in_which_nothing_can_be_read_is_none(tmp_path, content):
    (tmp_path / "events.out.tfevents.1").write_text(content)
    result = run("check", tmp_path)
    assert result.exit_code == 3
    assert "nothing could be checked" in result.output.replace("\n", " ")


def test_everything_says_why_a_finding_is_not_shown_otherwise(tmp_path):
    event_file(tmp_path / "resumed", {"loss": [0.4] * 50}, steps=list(range(10_000, 10_050)))
    output = run("check", tmp_path, "--all").output.replace("\n", " ")
    assert "loss-not-decreasing, low confidence" in output
    assert "more not shown" not in output


def test_an_unknown_rule_is_bad_usage_with_a_hint(tmp_path):
    result = run("check", tmp_path, "--select", "overfiting")
    assert result.exit_code == 2
    assert 'unknown rule "overfiting"; did you mean "overfitting"?' in result.output


def test_rules_lists_them_all():
    lines = [line.split(maxsplit=1) for line in run("rules").output.splitlines()]
    assert ["overfitting", "Validation loss rises while training loss keeps falling."] in lines


def test_explain_gives_documentation_thresholds_and_code():
    output = run("explain", "overfitting").output
    for part in ("Why it matters", "How it is found", "When it is wrong", "min_rise = 0.15", "EarlyStopping(", "torch.save"):
        assert part in output


def test_markup_in_names_is_text(tmp_path):
    event_file(tmp_path / "[red]run[-red]", {"[bold]loss": [*falling(20), math.nan]})
    output = run("check", tmp_path).output
    assert "[red]run[-red]" in output
    assert "([bold]loss) became NaN" in output
