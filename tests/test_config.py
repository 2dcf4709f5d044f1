import math
from pathlib import Path

import pytest

import tb_advisor
from tb_advisor.advise import diagnose
from tb_advisor.check import Cache
from tb_advisor.config import Config, ConfigError, Ignore, find_config, read_config
from tb_advisor.diagnosis import Status
from tests.builders import event_file, falling

OVERFITTING = {"loss": falling(40, end=0.1), "val_loss": [*falling(20), *(0.5 + 0.01 * i for i in range(20))]}


@pytest.fixture
def logs(tmp_path):
    event_file(tmp_path / "logs" / "base", OVERFITTING)
    event_file(tmp_path / "logs" / "baseline", OVERFITTING)
    event_file(tmp_path / "logs" / "broken", {"loss": [*falling(40), *[math.nan] * 9]})
    return tmp_path / "logs"


def config(tmp_path, text, name="tb_advisor.toml"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def found(report, rule):
    return {o.job: d for o, d in report.diagnoses if o.rule == rule and d.shown}


def test_a_threshold(tmp_path, logs):
    strict = config(tmp_path, "[rules.overfitting]\nmin_rise = 5")
    assert found(diagnose(logs), "overfitting").keys() == {"base", "baseline"}
    assert not found(diagnose(logs, config=strict), "overfitting")
    assert diagnose(logs, config=strict).config == str(strict)


def test_a_known_finding_stays_in_the_report_with_its_reason(tmp_path, logs):
    known = config(tmp_path, '[[ignore]]\nrule = "overfitting"\njob = "baseline*"\nreason = "known"')
    report = diagnose(logs, config=known)
    assert found(report, "overfitting").keys() == {"base"}
    (outcome,) = [o for o in report.outcomes if o.rule == "overfitting" and o.job == "baseline"]
    assert (outcome.status, [d.suppressed for d in outcome.diagnoses]) == (Status.FOUND, ["known"])


def test_what_a_known_finding_explains_stays_folded_under_it(tmp_path):
    event_file(tmp_path, {"loss": [*falling(40), *[math.nan] * 9], "val_loss": [*falling(40, end=0.6), *[math.nan] * 9]})
    plain, known = (
        diagnose(tmp_path, config=Config(ignores=ignores)) for ignores in ((), (Ignore("non-finite-loss", "known, a bad batch"),))
    )
    assert {o.rule for o, d in plain.diagnoses if d.shown} == {"non-finite-loss"}
    assert not any(d.shown for _, d in known.diagnoses)


def test_the_role_of_a_tag(tmp_path):
    event_file(tmp_path / "logs", {"my/cost": [*falling(40), math.nan], "aux/loss": falling(41)})
    assert not found(diagnose(tmp_path / "logs"), "non-finite-loss")
    named = config(tmp_path, '[tags]\n"my/cost" = "training loss"\n"aux/*" = "ignore"')
    assert found(diagnose(tmp_path / "logs", config=named), "non-finite-loss").keys() == {"."}
    (job,) = diagnose(tmp_path / "logs", config=named).jobs
    assert job.roles == {"training_loss": ((".", "my/cost"),)}


def test_pyproject_has_it_in_a_table(tmp_path):
    path = config(tmp_path, "[tool.other]\nx = 1\n[tool.tb_advisor.rules.overfitting]\nmin_rise = 0.3", "pyproject.toml")
    assert read_config(path) == Config(str(path), {"overfitting": {"min_rise": 0.3}})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[rule.overfitting]", 'unknown key "rule"; did you mean "rules"?'),
        ("[rules.overfiting]", 'rules: unknown rule "overfiting"; did you mean "overfitting"?'),
        (
            "[rules.overfitting]\nminrise = 0.3",
            'rules.overfitting: unknown threshold "minrise"; did you mean "min_rise"?',
        ),
        ("rules.overfitting.min_rise = '0.3'", 'rules.overfitting.min_rise: expected a number, found the text "0.3"'),
        ("rules.overfitting.min_rise = true", "rules.overfitting.min_rise: expected a number, found true"),
        ("rules.overfitting.min_rise = nan", "rules.overfitting.min_rise: expected a number, found the number nan"),
        ("rules.overfitting.min_evaluations = 2.5", "rules.overfitting.min_evaluations: expected a whole number, found the number 2.5"),
        ("rules.overfitting = 3", "rules.overfitting: expected a table, found the number 3"),
        ("rules = []", "rules: expected a table, found a list"),
        ('[tags]\n"my/cost" = "traning loss"', 'tags."my/cost": unknown role "traning loss"; did you mean "training loss"?'),
        ('[tags]\n"my/cost" = "x"', 'tags."my/cost": unknown role "x"; expected one of clip fraction, data time'),
        ('[tags]\n"my/cost" = 1', 'tags."my/cost": expected a text, found the number 1'),
        ('[ignore]\nrule = "overfitting"', "ignore: expected tables [[…]], found a table"),
        ('[[ignore]]\nrule = "overfitting"', "ignore (1): expected a reason"),
        ('[[ignore]]\nrule = "overfitting"\nreason = " "', "ignore (1).reason: expected a text, found an empty text"),
        ('[[ignore]]\nreason = "known"', "ignore (1): expected a rule"),
        ('[[ignore]]\nrule = "overfit"\nreason = "known"', 'ignore (1).rule: unknown rule "overfit"; did you mean "overfitting"?'),
        ('[[ignore]]\nrule = "overfitting"\nreason = "known"\njobs = "a"', 'ignore (1): unknown key "jobs"; did you mean "job"?'),
        ("rules = ", "not valid TOML"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_file_and_key(tmp_path, text, error):
    path = config(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        diagnose(tmp_path, config=path)
    assert str(raised.value).startswith(f"{path}: {error}")


@pytest.mark.parametrize(
    ("content", "error"),
    [(None, "No such file or directory"), (b"\xff\xfe", "not valid TOML"), (b"[project]", "has no table [tool.tb_advisor]")],
)
def test_a_file_that_holds_no_configuration(tmp_path, content, error):
    path = tmp_path / "pyproject.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        read_config(path)
    assert str(raised.value).startswith(f"{path}: {error}")


def test_the_nearest_file_that_has_a_configuration_is_found(tmp_path):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    config(tmp_path, "[tool.tb_advisor]", "pyproject.toml")
    config(below, "[project]", "pyproject.toml")
    assert find_config(below) == tmp_path / "pyproject.toml"
    own = config(tmp_path / "a", "")
    assert find_config(below) == own
    assert find_config(Path(tmp_path.anchor)) is None


def test_what_was_said_is_forgotten_when_the_configuration_changes(logs):
    cache = Cache()
    for settings, expected in [
        (Config(), {"base", "baseline"}),
        (Config(thresholds={"overfitting": {"min_rise": 5.0}}), set()),
        (Config(ignores=(Ignore("overfitting", "known", "base"),)), {"baseline"}),
        (Config(), {"base", "baseline"}),
    ]:
        assert found(diagnose(logs, config=settings, cache=cache), "overfitting").keys() == expected


def test_processes_know_the_configuration(tmp_path, logs):
    path = config(
        tmp_path,
        """
        rules.overfitting.min_rise = 5
        tags.loss = "training loss"
        tags.val_loss = "ignore"
        ignore = [{rule = "non-finite-loss", reason = "known"}]
        """,
    )
    here, there = (diagnose(logs, config=path, workers=workers).as_json() for workers in (1, 2))
    assert here == there
    assert here != {**diagnose(logs).as_json(), "config": str(path)}


def test_configurations_can_be_made_in_python(logs):
    assert not found(tb_advisor.diagnose(logs, config=tb_advisor.Config(ignores=(Ignore("overfitting", "known"),))), "overfitting")
