"""The code of every fix compiles; that for Keras and TensorFlow runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from tb_advisor.fixes import all_fixes
from tb_advisor.fixes.fix import filled
from tb_advisor.fixes.values import VALUES

PLACES = [(framework, name) for name, entry in all_fixes().items() for framework in entry.code]
OF_A_RUN = {name: 7 if name in ("batch", "best_step", "patience", "workers") else 3.0517578e-05 for name in VALUES}


@pytest.mark.parametrize("values", [{}, OF_A_RUN], ids=["as it stands", "with values of a run"])
@pytest.mark.parametrize(("framework", "name"), PLACES)
def test_a_snippet_is_python(framework, name, values):
    code = all_fixes()[name].code_with(values)[framework]
    assert "«" not in code and "»" not in code
    body = indent(code.replace("(...,", "(_0,").replace("...", "_=0"), "    ")
    compile(f"def snippet(self):\n{body}", f"{name} for {framework}", "exec")


@pytest.mark.parametrize("name", all_fixes())
def test_the_values_of_a_snippet_are_known(name):
    assert all_fixes()[name].names <= set(VALUES)


def test_every_value_is_used():
    assert {name for entry in all_fixes().values() for name in entry.names} == set(VALUES)


def test_a_value_of_the_run_replaces_the_one_that_stands_there():
    code = "Adam(«lower_rate: 1e-4»)  # was «rate: 1e-3»; step «best_step: with the lowest loss»"
    assert filled(code, {}) == "Adam(1e-4)  # was 1e-3; step with the lowest loss"
    assert filled(code, {"rate": 0.30000001, "lower_rate": 0.030000001}) == "Adam(0.03)  # was 0.3; step with the lowest loss"
    assert filled(code, {"best_step": 12_000}).endswith("step 12000")


@pytest.mark.slow
def test_the_snippets_for_keras_and_tensorflow_run_on_a_toy(tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, Path(__file__).with_name("run_snippets.py"), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert done.returncode == 0, done.stderr[-3000:]
    ran = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    assert [(name, framework, error) for name, framework, error in ran if error] == []
    assert len(ran) > 130
