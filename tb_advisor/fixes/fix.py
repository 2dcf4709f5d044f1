"""The shape of a fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tb_advisor.message import Message

WRITERS = ("keras", "tensorflow", "pytorch", "lightning", "huggingface", "jax")


@dataclass(frozen=True)
class Fix:
    """One thing to try. `code` and `urls` map frameworks (`WRITERS`) to a snippet and to the framework's own
    documentation.
    """

    id: str
    title: Message
    why: Message
    check: Message
    code: Mapping[str, str]
    urls: Mapping[str, str] = field(default_factory=dict)
