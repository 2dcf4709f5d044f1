"""A real search: 12 jobs trained with Keras (learning rate × seed), with their hyperparameters in the HParams plugin."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Confidence, Status
from tb_advisor.logdir.jobs import load
from tb_advisor.rules import all_rules
from tests.trial_builders import finish

RATES, SEEDS = (0.01, 0.03, 0.05, 3.0), (0, 1, 2)
FAMILY = [rule for rule in all_rules() if rule.of_family]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    root = tmp_path_factory.mktemp("logs")
    subprocess.run([sys.executable, Path(__file__).with_name("keras_sweep.py"), root / "sweep"], check=True)
    finish(root)
    return root


@pytest.fixture(scope="module")
def found(logs):
    report = diagnose(logs, rules=FAMILY)
    assert {outcome.job for outcome in report.outcomes} == {"sweep"}
    assert not [outcome for outcome in report.outcomes if outcome.status is Status.ERROR]
    return {outcome.rule: diagnosis for outcome, diagnosis in report.diagnoses}


@pytest.fixture(scope="module")
def best(logs):
    """{rate: lowest validation loss of each seed}, straight from the files; NaN where training became NaN."""
    runs = load(logs).runs
    return {rate: [float(np.min(runs[f"sweep/{rate}-{seed}/validation"].scalars["epoch_loss"].values)) for seed in SEEDS] for rate in RATES}


@pytest.mark.slow
def test_the_best_rate_is_at_the_edge(found, best):
    means = {rate: np.mean(values) for rate, values in best.items()}
    assert min(means, key=means.get) == RATES[0] or np.isnan(means[RATES[-1]])
    edge = found["search-space-edge"]
    assert (edge.values["name"], edge.values["value"], edge.values["inside"]) == ("learning_rate", RATES[0], RATES[1])
    assert edge.values["best"] == pytest.approx(means[RATES[0]])
    assert means[RATES[1]] - means[RATES[0]] > edge.values["needed"]
    assert edge.confidence is not Confidence.LOW


@pytest.mark.slow
def test_the_highest_rate_is_the_unstable_region(found, best):
    assert np.isnan(best[RATES[-1]]).all()
    region = found["unstable-region"]
    assert (region.values["name"], region.values["border"], region.values["failed"], region.values["nan"]) == ("learning_rate", 3.0, 3, 3)
    assert (region.values["trained"], region.values["highest"]) == (9, RATES[-2])


@pytest.mark.slow
def test_seed_noise_is_the_spread_of_the_seeds(found, best):
    noise = found["seed-noise"]
    better_half = [best[rate] for rate in RATES[:2]]
    expected = np.sqrt(np.mean([np.var(values, ddof=1) for values in better_half]))
    assert noise.values["deviation"] == pytest.approx(expected)
    assert noise.values["least"] == pytest.approx(2.78 * np.sqrt(2) * expected)


@pytest.mark.slow
def test_the_job_to_keep_and_what_differs_from_one_that_failed(found, best):
    keep = found["which-run-to-keep"]
    rate, seed = keep.values["job"].removeprefix("sweep/").split("-")
    assert float(rate) == RATES[0]
    assert keep.values["value"] == pytest.approx(best[RATES[0]][int(seed)])
    differs = found["what-differs"]
    assert (differs.values["name"], differs.values["value"], differs.values["other"]) == ("learning_rate", 3, RATES[2])
    assert differs.values["sibling"].endswith(differs.values["job"][-2:]), "the nearest sibling has the same seed"
    assert "worse-than-sibling" not in found
