"""`tb-advisor compare`: what changed between two sides, and whether it is more than chance."""

import json
import math

import pytest
from click.testing import CliRunner

import tb_advisor
from tb_advisor.cli import main
from tb_advisor.comparison import ComparisonError, NothingToRead, Verdict, compare
from tests.builders import event_file, falling

HEALTHY = {"loss": falling(60, end=0.3), "val_loss": falling(60, end=0.5, noise=0.004)}
BROKEN = {"loss": [*falling(50), *[math.nan] * 9], "val_loss": falling(59, end=0.5, noise=0.004)}
OVERFITTING = {"loss": falling(60, end=0.01), "val_loss": [*falling(30, end=0.5), *[0.52 + 0.02 * i for i in range(30)]]}


def verdicts(comparison):
    (pair,) = comparison.pairs
    return {change.rule: change.verdict for change in pair.diagnoses}


def figure(comparison, kind):
    (pair,) = comparison.pairs
    return next(figure for figure in pair.figures if figure.kind == kind)


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *(str(argument) for argument in arguments)])


@pytest.fixture
def sides(tmp_path):
    """A function that writes both sides, {job: {tag: values}} each or the tags of one job, and returns their directories."""

    def write(base, new):
        for side, jobs in (("base", base), ("new", new)):
            for job, scalars in jobs.items() if isinstance(next(iter(jobs.values())), dict) else [(".", jobs)]:
                event_file(tmp_path / side / job, scalars)
        return tmp_path / "base", tmp_path / "new"

    return write


def test_a_finding_that_is_gone_is_fixed(sides):
    comparison = compare(*sides(OVERFITTING, HEALTHY))
    assert verdicts(comparison) == {"overfitting": Verdict.FIXED}
    assert not comparison.got_worse


def test_a_finding_that_came_is_new(sides):
    comparison = compare(*sides(HEALTHY, BROKEN))
    assert verdicts(comparison)["non-finite-loss"] is Verdict.NEW
    assert comparison.got_worse


def test_a_finding_of_the_same_size_is_unchanged(sides):
    comparison = compare(*sides(OVERFITTING, OVERFITTING))
    assert verdicts(comparison) == {"overfitting": Verdict.UNCHANGED}
    assert not comparison.got_worse


@pytest.mark.parametrize(("best_before", "best_now", "verdict"), [(40, 12, Verdict.WORSE), (12, 40, Verdict.BETTER)])
def test_a_finding_that_costs_more_of_the_run_is_worse(sides, best_before, best_now, verdict):
    def overfits(best):
        return {
            "loss": falling(60, end=0.01),
            "val_loss": [*falling(best, end=0.5), *[0.52 + 0.03 * i for i in range(60 - best)]],
        }

    assert verdicts(compare(*sides(overfits(best_before), overfits(best_now)))) == {"overfitting": verdict}


def test_what_could_not_be_checked_again_is_not_fixed(sides):
    comparison = compare(*sides(OVERFITTING, {"loss": HEALTHY["loss"]}))
    (pair,) = comparison.pairs
    (change,) = (change for change in pair.diagnoses if change.rule == "overfitting")
    assert change.verdict is Verdict.UNKNOWN
    assert "no tag plays the role of val_loss" in str(change.reason)
    assert not comparison.got_worse


def test_what_the_base_did_not_log_is_not_new(sides):
    comparison = compare(*sides({"loss": OVERFITTING["loss"]}, OVERFITTING))
    assert verdicts(comparison)["overfitting"] is Verdict.UNKNOWN
    assert not comparison.got_worse


def test_a_finding_that_another_one_explains_is_still_there(sides):
    explained = {"loss": [*falling(40, end=0.1), *[3.0] * 30], "val_loss": [*falling(40, end=0.5), *[4.0] * 30]}
    comparison = compare(*sides({**explained, "lr": [0.01] * 40 + [1.0] * 30}, {**HEALTHY, "lr": [0.01] * 40 + [1.0] * 20}))
    assert verdicts(comparison) == {"loss-divergence": Verdict.FIXED, "learning-rate-jump": Verdict.UNCHANGED}


def test_findings_that_are_known_are_left_out(sides, tmp_path):
    config = tmp_path / "tb_advisor.toml"
    config.write_text('[[ignore]]\nrule = "overfitting"\nreason = "on purpose"')
    comparison = compare(*sides(HEALTHY, OVERFITTING), config=config)
    assert verdicts(comparison) == {}


def test_the_best_validation_loss_is_worse_beyond_its_jitter(sides):
    def ends_at(end, noise, seed):
        return {"loss": falling(60, end=0.2), "val_loss": falling(60, end=end, noise=noise, seed=seed)}

    clear = figure(compare(*sides(ends_at(0.5, 0.004, 1), ends_at(0.6, 0.004, 2))), "best validation loss")
    assert (clear.verdict, clear.beyond_noise) == (Verdict.WORSE, True)
    assert clear.change == pytest.approx(0.1, abs=0.02)
    assert (clear.base.step, clear.tag) == (pytest.approx(55, abs=6), "val_loss")
    noisy = figure(compare(*sides(ends_at(0.5, 0.05, 1), ends_at(0.6, 0.05, 2))), "best validation loss")
    assert (noisy.verdict, noisy.beyond_noise) == (Verdict.UNCHANGED, False)


def test_a_worse_figure_is_enough(sides):
    base, new = sides(HEALTHY, {**HEALTHY, "val_loss": falling(60, end=0.9, noise=0.004)})
    comparison = compare(base, new)
    assert verdicts(comparison) == {}
    assert comparison.got_worse
    result = run(base, new)
    assert result.exit_code == 1
    assert "best validation loss is worse" in result.output


def test_a_higher_training_loss_is_no_harm_where_validation_is_logged(sides):
    comparison = compare(*sides(HEALTHY, {**HEALTHY, "loss": falling(60, end=0.6)}))
    training = figure(comparison, "training loss at the end")
    assert (training.verdict, training.beyond_noise) == (Verdict.UNKNOWN, True)
    assert not comparison.got_worse
    assert compare(*sides({"loss": falling(60, end=0.3)}, {"loss": falling(60, end=0.6)})).got_worse


def test_a_metric_has_its_own_direction(sides):
    def scores(value):
        return {"loss": falling(60), "val_accuracy": [0.1 + (value - 0.1) * min(1, i / 30) for i in range(60)]}

    assert figure(compare(*sides(scores(0.90), scores(0.95))), "best validation metric").verdict is Verdict.BETTER
    assert figure(compare(*sides(scores(0.95), scores(0.90))), "best validation metric").verdict is Verdict.WORSE
    assert figure(compare(*sides(scores(0.95), scores(0.945))), "best validation metric").verdict is Verdict.UNCHANGED


def test_figures_under_other_tags_stand_side_by_side_without_a_verdict(sides):
    comparison = compare(*sides({"loss": falling(60), "val_loss": falling(60)}, {"loss": falling(60), "eval/nll_loss": falling(60)}))
    best = figure(comparison, "best validation loss")
    assert (best.verdict, best.change) == (Verdict.UNKNOWN, None)
    assert best.base and best.new


def seeds(ends, name="seed={}"):
    return {name.format(i): {"loss": falling(60, end=0.2), "val_loss": falling(60, end=end)} for i, end in enumerate(ends)}


def test_seeds_are_one_configuration_and_their_spread_is_the_noise(sides):
    within = figure(compare(*sides(seeds([0.50, 0.56, 0.44]), seeds([0.58, 0.52, 0.64]))), "best validation loss")
    assert (within.base.jobs, within.new.jobs, within.verdict) == (3, 3, Verdict.UNCHANGED)
    assert within.base.deviation == pytest.approx(0.06, abs=0.001)
    assert within.needed == pytest.approx(4.60 * 0.06 * math.sqrt(2 / 3), abs=0.005)  # Student's t, four degrees of freedom
    beyond = figure(compare(*sides(seeds([0.50, 0.51, 0.49]), seeds([0.58, 0.57, 0.59]))), "best validation loss")
    assert (beyond.verdict, beyond.beyond_noise) == (Verdict.WORSE, True)


def test_one_job_is_compared_with_seeds_by_their_spread(sides):
    comparison = compare(*sides(seeds([0.50, 0.56, 0.44]), {"seed=7": seeds([0.6])["seed=0"]}))
    assert figure(comparison, "best validation loss").verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        ([1, 1, 1], [0, 0, 0], Verdict.FIXED),
        ([1, 1, 1], [0, 1, 0], Verdict.BETTER),
        ([1, 1, 1], [1, 1, 0], Verdict.UNCHANGED),
        ([0, 0, 0], [1, 0, 0], Verdict.UNCHANGED),
        ([0, 0, 0], [1, 1, 0], Verdict.NEW),
        ([1, 0, 0], [1, 1, 1], Verdict.WORSE),
    ],
)
def test_a_finding_on_one_seed_of_three_is_chance(sides, base, new, verdict):
    base, new = ({f"seed={i}": OVERFITTING if found else HEALTHY for i, found in enumerate(side)} for side in (base, new))
    comparison = compare(*sides(base, new))
    assert verdicts(comparison) == {"overfitting": verdict}


@pytest.mark.parametrize("name", ["lr=0.1_seed={}", "seed_{}", "a/seed-{}/train", "{}_rep{}", "rng{}"])
def test_seeds_are_told_by_their_names(sides, name):
    name = name.replace("{}_rep", "x_rep")
    (pair,) = compare(*sides(seeds([0.5, 0.5], name), seeds([0.5, 0.5], name))).pairs
    assert (len(pair.base_jobs), len(pair.new_jobs)) == (2, 2)


def test_jobs_of_several_configurations_are_matched_by_name(sides):
    base = {"a": OVERFITTING, "b": HEALTHY, "gone": HEALTHY}
    comparison = compare(*sides(base, {"a": HEALTHY, "b": OVERFITTING, "added": HEALTHY}))
    found = {pair.name: [(change.rule, change.verdict) for change in pair.diagnoses] for pair in comparison.pairs}
    assert found == {"a": [("overfitting", Verdict.FIXED)], "b": [("overfitting", Verdict.NEW)]}
    assert (comparison.only_in_base, comparison.only_in_new) == (("gone",), ("added",))


def test_jobs_without_a_counterpart(sides):
    base, new = sides({"a": HEALTHY, "b": HEALTHY}, {"c": HEALTHY, "d": HEALTHY})
    with pytest.raises(ComparisonError, match=r"no job has a counterpart: a, b in .*base, c, d in .*new"):
        compare(base, new)
    assert run(base, new).exit_code == 2
    (pair,) = compare(base, new, seeds=True).pairs
    assert (pair.base_jobs, pair.new_jobs) == (("a", "b"), ("c", "d"))


def test_jobs_and_runs_of_one_log_directory(tmp_path):
    for name, scalars in {"old": OVERFITTING, "new": HEALTHY, "sweep/seed0": HEALTHY, "sweep/seed1": HEALTHY}.items():
        event_file(tmp_path / name / "train", {"epoch_loss": scalars["loss"]})
        event_file(tmp_path / name / "validation", {"epoch_loss": scalars["val_loss"]})
    for base in ("old", "old/validation", "o*"):
        assert verdicts(compare(base, "new", logdir=tmp_path)) == {"overfitting": Verdict.FIXED}
    for several in ("sweep", "sweep/", "sweep/*"):
        comparison = compare("old", several, logdir=tmp_path)
        assert comparison.pairs[0].new_jobs in (("seed0", "seed1"), ("sweep/seed0", "sweep/seed1"))
        assert verdicts(comparison) == {"overfitting": Verdict.FIXED}
    result = run("odl", "new", "--logdir", tmp_path)
    assert result.exit_code == 2
    assert 'no job or run "odl"' in result.output and 'did you mean "old"?' in result.output
    assert run("old", "new", "--logdir", tmp_path).exit_code == 0


def test_exit_status(sides, tmp_path):
    base, new = sides(OVERFITTING, HEALTHY)
    assert run(base, new).exit_code == 0
    assert run(new, base).exit_code == 1
    assert run(base, tmp_path / "nowhere").exit_code == 2
    assert run(base).exit_code == 2
    (tmp_path / "empty").mkdir()
    assert run(base, tmp_path / "empty").exit_code == 3
    with pytest.raises(NothingToRead):
        compare(tmp_path / "empty", new)


def test_a_configuration_that_is_not_understood_is_bad_usage(sides, tmp_path):
    config = tmp_path / "tb_advisor.toml"
    config.write_text("rules.overfiting.min_rise = 0.3")
    assert run(*sides(HEALTHY, HEALTHY), "--config", config).exit_code == 2


def test_text_has_the_verdicts_and_the_figures_side_by_side(sides):
    output = run(*sides(OVERFITTING, HEALTHY)).output
    assert "fixed  Validation loss was lowest at step 29" in output
    (line,) = (line for line in output.splitlines() if line.startswith("  best validation loss"))
    assert "0.512 at step 29" in line and "0.507 at step 58" in line and "within noise" in line
    assert output.splitlines()[-1] == "Diagnoses: 0 new, 0 worse, 1 fixed, 0 better, 0 unchanged; nothing got worse."


def test_json_has_every_change(sides):
    result = json.loads(run(*sides(OVERFITTING, HEALTHY), "--format", "json").output)
    assert (result["schema_version"], result["got_worse"]) == (1, False)
    assert result["counts"] == {"new": 0, "worse": 0, "fixed": 1, "better": 0, "unchanged": 0, "unknown": 0}
    (pair,) = result["pairs"]
    (change,) = pair["diagnoses"]
    assert (change["rule"], change["verdict"], change["new"]) == ("overfitting", "fixed", None)
    assert change["base"]["summary"].startswith("Validation loss was lowest at step 29")
    best = next(figure for figure in pair["figures"] if figure["kind"] == "best validation loss")
    assert (best["tag"], best["base"]["step"], best["verdict"], best["beyond_noise"]) == ("val_loss", 29, "unchanged", False)


def test_json_of_numbers_that_json_does_not_have(sides):
    output = run(*sides(HEALTHY, BROKEN), "--format", "json").output
    last = next(f for f in json.loads(output)["pairs"][0]["figures"] if f["kind"] == "training loss at the end")
    assert last["new"]["value"] == "NaN"
    assert "NaN," not in output.replace('"NaN"', "")


def test_markdown_is_a_table_that_github_renders(sides):
    lines = run(*sides(OVERFITTING, HEALTHY), "--format", "markdown").output.splitlines()
    assert "| fixed | Validation loss was lowest at step 29 " in "\n".join(lines)
    tables = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in tables} == {4, 6}  # three columns and five


@pytest.mark.parametrize("name", ["<img src=x>", "a|b", "[x](javascript:alert(1))", "**bold** `code` @everyone", "[red]no[/red]"])
def test_markup_in_names_is_text(sides, name):
    tagged = {f"{name}/loss": [*falling(40), math.nan]}
    base, new = sides({name: {f"{name}/loss": falling(40)}}, {name: tagged})
    markdown = run(base, new, "--format", "markdown").output
    assert name not in markdown
    assert markdown.replace("\\", "").count(f"{name}/loss") >= 2
    assert all(line.replace("\\|", "").count("|") in (4, 6) for line in markdown.splitlines() if line.startswith("|"))
    assert f"{name}/loss" in " ".join(run(base, new).output.split())


def test_it_is_a_public_name(sides):
    assert isinstance(tb_advisor.compare(*sides(HEALTHY, HEALTHY)), tb_advisor.Comparison)
