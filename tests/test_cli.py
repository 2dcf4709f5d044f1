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
    event_file(tmp_path / "healthy", {"loss": falling(40), "val_loss": falling(40, end=0.6)})
    return tmp_path


def test_text_says_what_happened_and_what_to_try(logs):
    output = run("check", logs).output
    assert output.splitlines()[0].startswith("broken")  # the worst job first
    assert "▲ Training loss (loss) became NaN at step 40 and never recovered" in output
    assert "try  Drop the rows that are not finite (one line)" in output
    assert "■ Training loss jumped from" in output
    assert "\n3 jobs, 3 runs, 0 captures" in output
    assert "1 error, 1 warning in 2 jobs." in output.replace("\n", " ")


def test_a_healthy_logdir_is_a_line_of_tally(tmp_path):
    event_file(tmp_path, {"loss": falling(40), "val_loss": falling(40, end=0.6)})
    result = run("check", tmp_path)
    assert result.exit_code == 0
    assert "1 job, 1 run, 0 captures" in result.output
    assert "no problem found." in result.output.replace("\n", " ") and "Best" not in result.output


def test_the_best_job_of_a_folder_is_named_whatever_else_was_found(tmp_path):
    for name, end in (("a", 0.6), ("b", 0.5)):
        event_file(tmp_path / "sweep" / name, {"loss": falling(40), "val_loss": falling(40, end=end)})
    event_file(tmp_path / "sweep/broken", {"loss": [*falling(40), math.nan], "val_loss": falling(40, end=0.1)})
    output = run("check", tmp_path).output.replace("\n", " ")
    assert "Best of 2 jobs in sweep by val_loss: sweep/b, 0.511 at step 39." in output


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


@pytest.mark.parametrize("name", ["tb_advisor.toml", "pyproject.toml"])
def test_the_configuration_is_found_from_the_current_directory_on(logs, monkeypatch, name):
    table = "tool.tb_advisor." if name == "pyproject.toml" else ""
    (logs / name).write_text(f'[[{table}ignore]]\nrule = "non-finite-loss"\nreason = "a known bad batch"')
    monkeypatch.chdir(logs / "broken")
    for fail_on, status in (("error", 0), ("warning", 1)):
        assert run("check", logs, "--fail-on", fail_on).exit_code == status
    assert run("check", logs / "broken", "--fail-on", "info", "--select", "non-finite-loss").exit_code == 0
    shown, everything = (run("check", logs, *options).output.replace("\n", " ") for options in ((), ("--all",)))
    assert "more not shown" in shown
    assert "became NaN" not in shown
    assert "non-finite-loss, ignored: a known bad batch" in " ".join(everything.split())


def test_a_configuration_can_be_named(logs, tmp_path):
    path = tmp_path / "strict.toml"
    path.write_text("rules.loss-spikes.min_ratio = 1e9")
    assert "jumped from" in run("check", logs).output
    assert "jumped from" not in run("check", logs, "--config", path).output


def test_a_configuration_that_is_not_understood_is_bad_usage_with_a_hint(logs, tmp_path):
    path = tmp_path / "tb_advisor.toml"
    path.write_text("rules.overfiting.min_rise = 0.3")
    for command in ("check", "roles"):
        result = run(command, logs, "--config", path)
        assert result.exit_code == 2
        assert f'{path}: rules: unknown rule "overfiting"; did you mean "overfitting"?' in result.output
    assert run("check", logs, "--config", tmp_path / "nowhere.toml").exit_code == 2


def test_roles_says_which_tag_plays_which_role_and_why(tmp_path):
    event_file(tmp_path / "logs" / "exp" / "train", {"epoch_loss": falling(10)})
    event_file(tmp_path / "logs" / "exp" / "validation", {"epoch_loss": falling(10), "my/cost": falling(10), "mystery": falling(10)})
    (tmp_path / "tb_advisor.toml").write_text('tags."my/cost" = "validation error"')
    result = run("roles", tmp_path / "logs", "--config", tmp_path / "tb_advisor.toml")
    assert result.exit_code == 0
    assert [line.split(maxsplit=4) for line in result.output.splitlines()] == [
        ["exp", "supervised"],
        ["training", "loss", "exp/train", "epoch_loss", '"loss"; training from "train" in its run'],
        ["validation", "loss", "exp/validation", "epoch_loss", '"loss"; validation from "validation" in its run'],
        ["validation", "metric", "exp/validation", "my/cost", "set in tb_advisor.toml"],
        ["no", "role", "exp/validation", "mystery", "no word of it names a role"],
    ]


def test_roles_as_json(logs):
    result = json.loads(run("roles", logs / "healthy", "--format", "json").stdout)
    assert result["schema_version"] == 1
    (job,) = result["jobs"]
    assert (job["name"], job["task"]) == (".", "supervised")
    assert job["tags"] == [
        {"run": ".", "tag": "loss", "role": "loss", "split": "training", "reason": '"loss"'},
        {"run": ".", "tag": "val_loss", "role": "loss", "split": "validation", "reason": '"loss"; validation from "val" in the tag'},
    ]


def test_roles_of_nothing(tmp_path):
    assert run("roles", tmp_path).exit_code == 3


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
    output = " ".join(run("check", tmp_path, "--all").output.split())
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
