"""Dependencies point one way (docs/architecture.md)."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tb_advisor"

# What each room may import of the others. A room is a folder or a module of the package.
ALLOWED = {
    "version": set(),
    "message": set(),
    "series": set(),
    "diagnosis": {"message"},
    "rule": {"diagnosis"},
    "process": set(),
    "logdir": {"message", "process", "series"},
    "evidence": {"logdir", "message", "series"},
    "fixes": {"diagnosis", "evidence", "logdir", "message", "series"},
    "memory_use": {"diagnosis", "evidence", "logdir", "message"},
    "step_cost": {"diagnosis", "evidence", "logdir", "message"},
    "rules": {"diagnosis", "evidence", "logdir", "memory_use", "message", "rule", "series", "step_cost"},
    "links": {"diagnosis"},
    "report": {"diagnosis", "evidence", "fixes", "links", "logdir", "message", "rules", "series", "version"},
    "figures": {"evidence", "logdir", "message", "series"},
    "comparison": {"advise", "check", "config", "diagnosis", "evidence", "figures", "message", "report", "version"},
    "render": {"comparison", "diagnosis", "fixes", "message", "report", "rules"},
    "budget": {"logdir"},
    "config": {"diagnosis", "evidence", "rule", "rules"},
    "check": {"budget", "chart", "config", "diagnosis", "evidence", "fixes", "logdir", "message", "report", "rule", "series"},
    "pool": {"budget", "check", "config", "logdir", "process", "rule", "rules"},
    "advise": {"budget", "check", "config", "logdir", "message", "pool", "report", "rule", "rules"},
    "watch": {"advise", "check", "config", "logdir", "report", "series"},
    "chart": {"report", "series"},
    "plugin": {"chart", "report", "rules", "watch"},
    "loader": {"plugin"},
    "cli": {"advise", "comparison", "config", "diagnosis", "fixes", "render", "report", "rule", "rules", "version"},
    "__init__": {"advise", "comparison", "config", "diagnosis", "logdir", "message", "report", "rule", "series", "version"},
}


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name and name.startswith("tb_advisor."):
                yield name.split(".")[1]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_room_imports_only_what_it_may(path):
    room = room_of(path)
    assert set(imported_rooms(path)) - {room} <= ALLOWED[room]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_nothing_imports_tensorflow_or_writes_files(path):
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            assert (module or "").partition(".")[0] not in {"tensorflow", "xprof", "torch", "jax"}
    if room_of(path) != "cli":
        assert ".write_" not in source and 'open("w' not in source


def test_the_engine_stays_small():
    assert len((PACKAGE / "advise.py").read_text("utf-8").splitlines()) < 150
