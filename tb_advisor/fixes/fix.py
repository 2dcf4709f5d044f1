"""The shape of a fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tb_advisor.message import Message

WRITERS = ("keras", "tensorflow", "pytorch", "lightning", "huggingface", "jax")

_PLACE = re.compile(r"«(\w+): ([^»]*)»")


class Cost(Enum):
    """What it takes to try a fix, the cheapest first."""

    ONE_LINE = "one line"
    RETRAIN = "a retrain"
    REDESIGN = "a redesign"

    @property
    def rank(self) -> int:
        """0 for one line, 1 for a retrain, 2 for a redesign."""
        return list(Cost).index(self)


class Figure(Enum):
    """The figure that moves where a fix works."""

    ACTIVATIONS = "activations"
    COMPILE_TIME = "compile time"
    COPY_TIME = "copy time"
    DEVICE_UTILIZATION = "device utilization"
    DISCRIMINATOR_LOSS = "discriminator loss"
    ENTROPY = "policy entropy"
    EPISODE_RETURN = "episode return"
    EXPLAINED_VARIANCE = "explained variance"
    GAP = "gap between training and validation"
    GRADIENT_NORM = "gradient norm"
    LAYER_GRADIENTS = "gradients of the layers"
    LEARNING_RATE = "learning rate"
    LOGGED_TAGS = "logged tags"
    MEMORY = "memory"
    MODEL_SIZE = "model size"
    POLICY_KL = "KL divergence of policy updates"
    STEP_TIME = "step time"
    STEPS_IN_LOG = "steps in the log"
    TRAINING_LOSS = "training loss"
    VALIDATION_LOSS = "validation loss"
    VALIDATION_METRIC = "validation metric"
    WAIT_FOR_INPUT = "wait for input"
    WEIGHTS = "weights"


@dataclass(frozen=True)
class Source:
    """Who says what a fix brings: a paper or a documentation, by its name and address."""

    name: str
    url: str


@dataclass(frozen=True)
class Fix:
    """One thing to try.

    `code` and `urls` map frameworks (`WRITERS`) to a snippet and to the framework's own documentation. A snippet names numbers
    that a run may tell with the value that stands there where it does not: ``«lower_rate: 1e-4»`` (`values.VALUES`). `effect` is
    what can be expected, according to `source`; `check` says how to see that it worked: in `figure`, and in that the diagnosis
    is gone.
    """

    id: str
    title: Message
    why: Message
    check: Message
    cost: Cost
    effect: Message
    source: Source
    figure: Figure
    code: Mapping[str, str]
    urls: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        """The names of the values that its snippets hold."""
        return frozenset(name for code in self.code.values() for name, _ in _PLACE.findall(code))

    def code_with(self, values: Mapping[str, float]) -> dict[str, str]:
        """The snippets with these values, and with their own where one has no value."""
        return {framework: filled(code, values) for framework, code in self.code.items()}


def filled(code: str, values: Mapping[str, float]) -> str:
    """A snippet with these values, and with its own where one has no value: whole numbers as they are, others to three digits."""

    def value(place: re.Match[str]) -> str:
        name, default = place.groups()
        if name not in values:
            return default
        found = values[name]
        return f"{found:.3g}" if isinstance(found, float) else str(found)

    return _PLACE.sub(value, code)
