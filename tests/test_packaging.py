"""What is built and installed: with the tab in it, with or without npm, and loudly not at all where the tab cannot be built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from build.util import project_wheel_metadata

ROOT = Path(__file__).resolve().parent.parent
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "*.egg-info", "build", "dist", "static", "logs", "test-results")
BUNDLE = "tb_advisor/static/index.js"

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources without anything built."""
    copy = tmp_path / "tree"
    shutil.copytree(ROOT, copy, ignore=IGNORED)
    shutil.copy(ROOT / "frontend" / ".npmrc", copy / "frontend")
    return copy


@pytest.fixture
def broken_tree(tree: Path) -> Path:
    """A copy of the sources whose frontend does not build."""
    (tree / "frontend" / "src" / "index.tsx").write_text("export const render = (", "utf-8")
    return tree


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new virtual environment."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@pytest.fixture
def python(empty_python: Path) -> Iterator[Path]:
    """The Python of a virtual environment without tb_advisor."""
    yield empty_python
    run([empty_python, "-m", "pip", "uninstall", "--yes", "tb_advisor"])


@pytest.fixture
def path_without_npm(tmp_path: Path) -> str:
    """A PATH on which there is a shell, but no Node."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("env", "sh", "uname"):
        (folder / program).symlink_to(str(shutil.which(program)))
    return str(folder)


def test_sdist_and_the_wheel_built_from_it_hold_the_tab(tree: Path) -> None:
    built = run([sys.executable, "-m", "build", tree])
    assert built.returncode == 0, built.stdout
    sdist, wheel = (next(tree.glob(f"dist/*.{suffix}")) for suffix in ("tar.gz", "whl"))
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {BUNDLE, "tb_advisor/loader.py", "frontend/src/index.tsx", "frontend/package-lock.json", "frontend/.npmrc", "LICENSE"} <= packed
    assert {BUNDLE, "tb_advisor/loader.py", "tb_advisor/py.typed"} <= set(zipfile.ZipFile(wheel).namelist())
    assert built.stdout.count("building the tab") == 1, "the sdist brings the bundle, so the wheel needs no Node"


def test_the_metadata_comes_without_building_the_tab(broken_tree: Path) -> None:
    metadata = project_wheel_metadata(broken_tree)
    assert metadata["Name"] == "tb_advisor"
    assert metadata["License"] == "Apache-2.0" or metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    assert not (broken_tree / BUNDLE).exists()


@pytest.mark.parametrize("editable", [(), ("-e",)], ids=["wheel", "editable"])
def test_an_install_brings_the_tab_and_its_entry_points(tree: Path, python: Path, editable: tuple[str, ...]) -> None:
    installed = run([python, "-m", "pip", "install", "--no-deps", *editable, tree])
    assert installed.returncode == 0, installed.stdout
    assert installed_bundle(python).stat().st_size > 10_000
    assert plugin_of(python) == "tb_advisor.loader:AdvisorLoader"


@pytest.mark.skipif(os.name == "nt", reason="links a shell into a folder of its own")
def test_an_install_without_npm_takes_node_from_the_package_index(tree: Path, python: Path, path_without_npm: str) -> None:
    installed = run([python, "-m", "pip", "install", "--no-deps", tree], PATH=path_without_npm)
    assert installed.returncode == 0, installed.stdout
    assert installed_bundle(python).is_file()


@pytest.mark.parametrize("editable", [(), ("-e",)], ids=["wheel", "editable"])
def test_a_tab_that_cannot_be_built_stops_the_install(broken_tree: Path, python: Path, editable: tuple[str, ...]) -> None:
    installed = run([python, "-m", "pip", "install", "--no-deps", *editable, broken_tree])
    assert installed.returncode != 0
    assert "building the tab failed: npm run build" in installed.stdout
    assert run([python, "-m", "pip", "show", "tb_advisor"]).returncode != 0


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (ROOT / "frontend" / "package-lock.json").read_text("utf-8")


def installed_bundle(python: Path) -> Path:
    """Where the installed package has its bundle."""
    code = f"from importlib.util import find_spec; print(find_spec('tb_advisor').submodule_search_locations[0], {BUNDLE!r}, sep='|')"
    package, _, bundle = run([python, "-c", code]).stdout.strip().partition("|")
    return Path(package).parent / bundle


def plugin_of(python: Path) -> str:
    """The TensorBoard plugins that are installed."""
    code = "from importlib.metadata import entry_points; print(*(e.value for e in entry_points(group='tensorboard_plugins')))"
    return run([python, "-c", code]).stdout.strip()


def run(command: list[str | Path], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `command` away from the sources, with all it says in stdout."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=Path(command[0]).parent,
        env={**os.environ, "PYTHONPATH": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
