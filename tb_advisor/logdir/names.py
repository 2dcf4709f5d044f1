"""What the name of a job says of its hyperparameters: ``lr=0.1_bs=32``, ``adam_lr0.1``, ``seed_3``, ``bs-64``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Number = int | float

# How people write the names of hyperparameters, by the name they are compared by. Words may be joined by "_" or "-" or nothing.
_SPELLINGS = {
    "learning rate": "lr, learning rate, eta",
    "batch size": "bs, bsz, batch size",
    "weight decay": "wd, weight decay",
    "dropout": "dropout, drop, dropout rate, p drop",
    "momentum": "momentum, mom",
    "seed": "seed, random seed, rng seed, rng",
    "width": "width, hidden, hidden units, hidden size, hidden dim, units, dim, embed dim, d model, n units, num units",
    "depth": "depth, layers, n layers, num layers",
    "epochs": "epochs, n epochs, num epochs, num train epochs",
    "steps": "steps, max steps, num steps, n steps, total steps, total timesteps, iterations, max iterations",
    "label smoothing": "label smoothing",
    "warmup": "warmup, warmup steps, warmup ratio",
    "temperature": "temperature",
    "gamma": "gamma",
    "filters": "filters, channels",
    "heads": "heads, n heads, num heads",
}
_CANONICAL = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split(", ")}
_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d+)?"
_ASSIGNED = re.compile(r"([A-Za-z][\w./\-]*?)\s*=\s*([^=,;&\s]+?)(?=[_,;&\-]+[A-Za-z][\w.\-]*=|[,;&\s]|$)")
_USUAL = "|".join(spelling.replace(" ", r"[_\-]?") for spelling in sorted(_CANONICAL, key=len, reverse=True))
_GLUED = re.compile(rf"(?<![A-Za-z0-9])({_USUAL})[_\-]?({_NUMBER})(?![A-Za-z0-9.])", re.IGNORECASE)
_SETTING = "="
# Words that count jobs, dates and what machines make up say nothing of the training; nor does a number behind one of them.
_COUNTED = re.compile(r"(?:run|exp|experiment|version|trial|job|v|id|session|try|attempt)?\d*", re.IGNORECASE)
_DATE = re.compile(r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\d{1,2}", re.IGNORECASE)
_HASH = re.compile(r"(?=[a-f]*\d)[0-9a-f]{5,}", re.IGNORECASE)


@dataclass(frozen=True)
class JobName:
    """The hyperparameters in a job's name, as they are written there, and the words that are left of its last part, or of all that
    lies below a directory that `is_setting`.
    """

    settings: Mapping[str, Number | str]
    rest: str


def read_name(job: str) -> JobName:
    """What the name of a job says. Numbers are parsed as numbers; of a hyperparameter that stands there twice the last one counts.

    After ``=`` any name and value is taken, without it only usual names of hyperparameters with a number: ``resnet50`` has none.
    """
    settings: dict[str, Number | str] = {}
    rest: list[str] = []
    below_setting = False
    for part in job.split("/"):
        found, words = _read_part(part)
        settings.update(found)
        rest = [*(rest if below_setting else []), *([words] if words else [])]
        below_setting |= bool(found) and not words
    return JobName(settings, " ".join(rest))


def is_setting(part: str) -> bool:
    """Whether a directory's name is hyperparameters and nothing else: ``lr0.1``, ``seed_3``."""
    found, rest = _read_part(part)
    return bool(found) and not rest


def canonical(name: str) -> str:
    """A name of a hyperparameter in the words that it is compared by: ``optim/lr``, ``LearningRate`` → learning rate."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.split(r"[/.]", name)[-1] or name)
    plain = " ".join(re.split(r"[^0-9a-z]+", words.lower())).strip()
    return _CANONICAL.get(plain, plain)


def parsed(text: str) -> Number | str:
    """The number that a text is, an int where it is whole, or the text itself."""
    if not re.fullmatch(rf"[+-]?(?:{_NUMBER}|\.\d+|\d+\.)", text, re.IGNORECASE):
        return text
    return whole(float(text))


def whole(number: float) -> Number:
    """An int where the number is whole and small enough to be exact."""
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _read_part(part: str) -> tuple[dict[str, Number | str], str]:
    found: dict[str, Number | str] = {}

    def take(match: re.Match[str]) -> str:
        found[_known_end(match[1])] = parsed(match[2])
        return f" {_SETTING} "

    kept: list[str] = []
    before = ""
    for word in re.split(r"[_\-\s.,;&+]+", _GLUED.sub(take, _ASSIGNED.sub(take, part))):
        says_nothing = word == _SETTING or _COUNTED.fullmatch(word) or _DATE.fullmatch(word) or _HASH.fullmatch(word)
        if not says_nothing or (word.isdigit() and kept and kept[-1] == before):
            kept.append(word)
        before = word
    return found, " ".join(kept).lower()


def _known_end(name: str) -> str:
    """``exp3_lr`` → ``lr``: a counter in front of a usual name does not belong to it."""
    words = re.split(r"[_\-]", name)
    return next(("_".join(words[i:]) for i in range(len(words)) if " ".join(words[i:]).lower() in _CANONICAL), name)
