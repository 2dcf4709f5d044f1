"""What the user sets: thresholds of rules, roles of tags, and findings that are known.

It stands in ``[tool.tb_advisor]`` of a pyproject.toml or at the top of a tb_advisor.toml; docs/configuration.md describes it. What is not
understood is an error that names file and key: a threshold with a typing mistake would silently do nothing.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from tb_advisor.diagnosis import Outcome
from tb_advisor.evidence.roles import TagRole
from tb_advisor.rule import Rule
from tb_advisor.rules import all_rules

PYPROJECT, OWN_FILE = "pyproject.toml", "tb_advisor.toml"
_TABLE = "tool.tb_advisor"

# The names of roles in a configuration: role, whether it is of validation, whether lower is better; None where the tag tells it.
TAG_ROLES: Mapping[str, tuple[str, bool | None, bool | None]] = {
    "training loss": ("loss", False, None),
    "validation loss": ("loss", True, None),
    "training metric": ("metric", False, False),
    "validation metric": ("metric", True, False),
    "training error": ("metric", False, True),
    "validation error": ("metric", True, True),
    **{
        role.replace("_", " "): (role, None, None)
        for role in (
            *("learning_rate", "gradient_norm", "memory", "data_time", "throughput", "step_time", "epoch"),
            *("return", "episode_length", "explained_variance", "clip_fraction", "kl", "entropy"),
        )
    },
    "ignore": ("", None, None),
}


class ConfigError(Exception):
    """A configuration that cannot be used: in which file, at which key, and what was expected."""


@dataclass(frozen=True)
class Ignore:
    """Findings of a rule that are known: those on jobs whose name matches the glob `job`."""

    rule: str
    reason: str
    job: str = "*"


@dataclass(frozen=True)
class Config:
    """A configuration. `path` is the file it comes from, empty for the defaults; `thresholds` maps rule ids to the thresholds that
    differ from the rule's own.
    """

    path: str = ""
    thresholds: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    tag_roles: tuple[TagRole, ...] = ()
    ignores: tuple[Ignore, ...] = ()

    def applied_to(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """The rules with these thresholds."""
        return tuple(
            replace(rule, thresholds={**rule.thresholds, **self.thresholds[rule.id]}) if rule.id in self.thresholds else rule
            for rule in rules
        )

    def silenced(self, outcome: Outcome) -> Outcome:
        """The outcome with what is known on its job as `suppressed`."""
        for ignore in self.ignores:
            if outcome.diagnoses and ignore.rule == outcome.rule and fnmatchcase(outcome.job, ignore.job):
                return replace(outcome, diagnoses=tuple(replace(d, suppressed=ignore.reason) for d in outcome.diagnoses))
        return outcome


def find_config(start: Path) -> Path | None:
    """The configuration file that holds for a directory: the first tb_advisor.toml, or pyproject.toml with a table
    ``[tool.tb_advisor]``, in `start` or above it.

    Raises `ConfigError` where a pyproject.toml on the way cannot be read.
    """
    directory = start.absolute()
    for place in (directory, *directory.parents):
        if (place / OWN_FILE).is_file():
            return place / OWN_FILE
        if (place / PYPROJECT).is_file() and _table_of_project(place / PYPROJECT) is not None:
            return place / PYPROJECT
    return None


def read_config(path: str | os.PathLike[str], rules: Sequence[Rule] = ()) -> Config:
    """The configuration in a file. `rules` may be named in it beside the Advisor's own.

    Raises `ConfigError` where there is anything in it that is not understood.
    """
    path = Path(path)
    if path.name == PYPROJECT:
        table = _table_of_project(path)
        if table is None:
            raise ConfigError(f"{path}: has no table [{_TABLE}]")
        return _config(_Place(path, _TABLE), table, (*all_rules(), *rules))
    return _config(_Place(path), _toml(path), (*all_rules(), *rules))


@dataclass(frozen=True)
class _Place:
    """Where in a configuration file something stands, for what is wrong with it."""

    file: Path
    key: str = ""

    def below(self, key: str) -> _Place:
        named = key if key.replace("-", "").replace("_", "").isalnum() else f'"{key}"'
        return _Place(self.file, f"{self.key}.{named}" if self.key else named)

    def error(self, problem: str) -> ConfigError:
        return ConfigError(f"{self.file}: {self.key}: {problem}" if self.key else f"{self.file}: {problem}")

    def known(self, kind: str, name: str, names: Collection[str]) -> str:
        """`name`, which must be one of `names`."""
        if name in names:
            return name
        close = get_close_matches(name, names, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"expected one of {', '.join(sorted(names))}"
        raise self.error(f'unknown {kind} "{name}"; {hint}')

    def table(self, value: object) -> Mapping[str, object]:
        if not isinstance(value, dict):
            raise self.error(f"expected a table, found {_said(value)}")
        return value

    def text(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"expected a text, found {_said(value)}")
        return value


def _config(place: _Place, table: Mapping[str, object], rules: Sequence[Rule]) -> Config:
    read: Mapping[str, Callable[[_Place, object], object]] = {
        "rules": lambda at, value: _thresholds(at, value, {rule.id: rule for rule in rules}),
        "tags": _tag_roles,
        "ignore": lambda at, value: _ignores(at, value, {rule.id for rule in rules}),
    }
    parts: dict[str, object] = {}
    for key, value in table.items():
        place.known("key", key, read)
        parts[_FIELDS[key]] = read[key](place.below(key), value)
    return replace(Config(str(place.file)), **parts)  # type: ignore[arg-type]


_FIELDS = {"rules": "thresholds", "tags": "tag_roles", "ignore": "ignores"}


def _thresholds(place: _Place, value: object, rules: Mapping[str, Rule]) -> Mapping[str, Mapping[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for rule_id, thresholds in place.table(value).items():
        rule = rules[place.known("rule", rule_id, rules)]
        below = place.below(rule_id)
        found[rule_id] = {
            name: _threshold(below.below(name), given, rule.thresholds[below.known("threshold", name, rule.thresholds)])
            for name, given in below.table(thresholds).items()
        }
    return found


def _threshold(place: _Place, given: object, default: object) -> object:
    """`given` as a value of the default's type."""
    number = isinstance(given, (int, float)) and not isinstance(given, bool) and not math.isnan(given)
    if isinstance(default, bool):
        expected, right = "true or false", isinstance(given, bool)
    elif isinstance(default, int):
        expected, right = "a whole number", number and isinstance(given, int)
    elif isinstance(default, float) or default is None:
        expected, right = "a number", number
    elif isinstance(default, tuple):
        expected, right = "a list", isinstance(given, list)
    else:
        expected, right = "a text", isinstance(given, str)
    if not right:
        raise place.error(f"expected {expected}, found {_said(given)}")
    if isinstance(default, tuple):
        assert isinstance(given, list)
        return tuple(_threshold(place, item, default[0]) for item in given) if default else tuple(given)
    return float(given) if isinstance(default, float) and isinstance(given, int) else given


def _tag_roles(place: _Place, value: object) -> tuple[TagRole, ...]:
    found = []
    for pattern, name in place.table(value).items():
        at = place.below(pattern)
        role, evaluation, lower = TAG_ROLES[at.known("role", at.text(name), TAG_ROLES)]
        because = f"{'set' if role else 'ignored'} in {place.file.name}"
        found.append(TagRole(pattern, role, evaluation, lower, because))
    return tuple(found)


def _ignores(place: _Place, value: object, rules: Collection[str]) -> tuple[Ignore, ...]:
    if not isinstance(value, list):
        raise place.error(f"expected tables [[…]], found {_said(value)}")
    found = []
    for number, entry in enumerate(value, 1):
        at = _Place(place.file, f"{place.key} ({number})")
        texts: dict[str, str] = {}
        for key, text in at.table(entry).items():
            texts[at.known("key", key, ("rule", "job", "reason"))] = at.below(key).text(text)
        for key in ("rule", "reason"):
            if key not in texts:
                raise at.error(f"expected a {key}")
        at.below("rule").known("rule", texts["rule"], rules)
        found.append(Ignore(texts["rule"], texts["reason"], texts.get("job", "*")))
    return tuple(found)


def _table_of_project(path: Path) -> Mapping[str, object] | None:
    """The Advisor's table of a pyproject.toml, None where it has none."""
    tool = _toml(path).get("tool", {})
    table = tool.get("tb_advisor") if isinstance(tool, dict) else None
    return None if table is None else _Place(path, _TABLE).table(table)


def _toml(path: Path) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with path.open("rb") as stream:
            loaded: dict[str, object] = tomllib.load(stream)
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise ConfigError(f"{path}: {error.strerror if isinstance(error, OSError) else f'not valid TOML: {error}'}") from error
    return loaded


def _said(value: object) -> str:
    """`value` as it would be called in a sentence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"' if value.strip() else "an empty text"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a date"
