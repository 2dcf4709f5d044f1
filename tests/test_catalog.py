"""Rules, their tests, their pages and the fixes are alike."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tb_advisor
from tb_advisor.evidence import providers
from tb_advisor.fixes import WRITERS, all_fixes
from tb_advisor.rule import RuleError, rule
from tb_advisor.rules import MODULES, all_rules

ROOT = Path(__file__).parent.parent
RULES = {rule.id: rule for rule in all_rules()}


def test_every_rule_file_is_listed_and_the_list_is_sorted():
    files = sorted(path.stem for path in (ROOT / "tb_advisor" / "rules").glob("*.py") if path.stem != "__init__")
    assert files == list(MODULES)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_its_file_test_and_page(name):
    module = name.replace("-", "_")
    assert (ROOT / "tests" / "rules" / f"test_{module}.py").exists()
    assert (ROOT / "docs" / "rules" / f"{name}.md").exists()


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_is_seen_and_names_every_threshold(name):
    found = RULES[name]
    assert found.title.endswith(".") and "\n" not in found.title
    for threshold in found.thresholds:
        if threshold not in ("min_points", "min_evaluations"):
            assert f"`{threshold}`" in found.documentation["How it is found"], threshold


@pytest.mark.parametrize("name", RULES)
def test_a_rule_asks_for_evidence_and_fixes_that_exist(name):
    found = RULES[name]
    assert set(found.evidence) <= {*providers(), "family", "job"}
    assert set(found.fixes) <= set(all_fixes())
    assert {"keras", "pytorch"} <= {framework for name in found.fixes for framework in all_fixes()[name].code}


@pytest.mark.parametrize("name", all_fixes())
def test_a_fix_has_code_and_documentation_of_known_frameworks(name):
    entry = all_fixes()[name]
    assert entry.code
    assert set(entry.code) <= set(entry.urls) <= set(WRITERS)
    assert all(code.endswith("\n") and "\t" not in code for code in entry.code.values())
    for url in (*entry.urls.values(), entry.source.url):
        assert re.fullmatch(r"https?://[a-z0-9.-]+\.[a-z]{2,}(/[\w./~%-]*)?(#[\w./-]+)?", url), url


def test_every_fix_is_reachable_from_a_rule():
    assert set(all_fixes()) - {name for found in RULES.values() for name in found.fixes} == set()


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_a_fix_and_no_fix_twice(name):
    assert RULES[name].fixes
    assert len(set(RULES[name].fixes)) == len(RULES[name].fixes)


def test_the_pages_are_generated_from_the_docstrings():
    done = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_public_names():
    assert sorted(tb_advisor.__all__) == tb_advisor.__all__
    assert all(getattr(tb_advisor, name) is not None for name in tb_advisor.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tb_advisor.nonsense  # noqa: B018


def test_a_rule_without_documentation_is_refused():
    with pytest.raises(RuleError, match="rule undocumented: its module docstring lacks Why it matters"):

        @rule(category="toy", fixes=())
        def undocumented(train_loss):
            """Nothing."""
