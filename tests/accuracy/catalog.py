"""The list of runs: each a function that trains, with what its author logs and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.accuracy.log import Log


@dataclass(frozen=True)
class Training:
    """One training to be run. `labels` is what must show on its curves, `twin` the run that does the same task well."""

    name: str
    task: str
    train: Callable[[Log], None]
    tags: dict[str, str]
    framework: str = "tensorboardX"
    labels: tuple[str, ...] = ()
    acceptable: tuple[str, ...] = ()
    cause: str = ""
    onset: dict[str, int | tuple[int, int]] = field(default_factory=dict)
    axis: str = "step"
    chance: float = 0.0
    twin: str = ""
    notes: str = ""


TRAININGS: dict[str, Training] = {}


def training(task: str, tags: dict[str, str], **facts: object) -> Callable[[Callable[[Log], None]], Callable[[Log], None]]:
    """Add the decorated function to `TRAININGS`; its name, in kebab case, is the run's."""

    def add(train: Callable[[Log], None]) -> Callable[[Log], None]:
        name = train.__name__.replace("_", "-")
        TRAININGS[name] = Training(name, task, train, tags, **facts)
        return train

    return add
