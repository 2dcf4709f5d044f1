"""The first fix works: three jobs of the demo, trained again with it, are repaired."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tb_advisor.advise import diagnose
from tb_advisor.cli import main
from tb_advisor.comparison import Verdict, compare
from tb_advisor.rules import all_rules

pytestmark = pytest.mark.slow

# The rule that the demo's job shows, and the fix that tests/keras_repairs.py applies.
REPAIRS = {
    "diverging": ("loss-divergence", "lower-learning-rate"),
    "overfitting": ("overfitting", "early-stopping"),
    "input-bound": ("input-bound-steps", "tensorflow-ops"),
}


@pytest.fixture(scope="module")
def repaired(tmp_path_factory):
    root = tmp_path_factory.mktemp("repaired")
    subprocess.run([sys.executable, Path(__file__).with_name("keras_repairs.py"), root], check=True)
    return root


@pytest.mark.parametrize("job", REPAIRS)
def test_the_fix_that_was_applied_is_the_first_one_shown(demo_logs, job):
    rule, applied = REPAIRS[job]
    fixes = {r.id: r.fixes for r in all_rules()}
    (shown,) = (diagnosis for outcome, diagnosis in diagnose(demo_logs / job).diagnoses if diagnosis.shown)
    assert (shown.fixes or fixes[rule])[0] == applied


@pytest.mark.parametrize("job", REPAIRS)
def test_it_is_fixed(demo_logs, repaired, job):
    (pair,) = compare(demo_logs / job, repaired / job).pairs
    verdicts = {change.rule: change.verdict for change in pair.diagnoses}
    assert verdicts.pop(REPAIRS[job][0]) is Verdict.FIXED
    assert not any(verdict.is_worse for verdict in verdicts.values())
    result = CliRunner().invoke(main, ["compare", str(demo_logs / job), str(repaired / job)])
    assert result.exit_code == 0, result.output
