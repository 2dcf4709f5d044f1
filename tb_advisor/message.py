"""A text and its values, kept apart until somebody reads it.

Everything the Advisor says is a `Message`: a template in English and the values that belong in it. A surface formats it
with `str(message)`; a catalogue that maps templates to templates gives it in another language without touching a rule.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Scalar: TypeAlias = "int | float | str | bool | None"
Value: TypeAlias = "Scalar | tuple[Scalar, ...]"


@dataclass(frozen=True, init=False)
class Message:
    """A template such as ``"fell to {best} at step {step}"`` and the values of its fields.

    Besides Python's own format specifications a field takes ``%`` (0.38 → 38%), ``duration`` (seconds → 2 h 44 min) and
    ``bytes``. Without a specification, integers get thousands separators and floats three significant digits.
    """

    template: str
    values: Mapping[str, Value]

    def __init__(self, template: str, /, **values: Value) -> None:
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        return self.text()

    def __add__(self, other: Message) -> Message:
        """This text and another one behind it. Fields of the same name must mean the same."""
        return Message(self.template + other.template, **{**self.values, **other.values})

    def text(self, catalogue: Mapping[str, str] | None = None) -> str:
        """The message with its values filled in, through `catalogue` (template → translated template) where it has
        one.
        """
        template = (catalogue or {}).get(self.template, self.template)
        return _FORMATTER.vformat(template, (), self.values)


class Missing(Exception):
    """Evidence that is not in the log, with what was looked for. Ends a rule as *not applicable*."""

    def __init__(self, template: str, /, **values: Value) -> None:
        self.message = Message(template, **values)
        super().__init__(str(self.message))


def number(value: float) -> str:
    """`value` in three significant digits: 0.412, 1.18, 229, 12,300, 3.1e-07, NaN, +Inf."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -4 or exponent >= 7:
        return f"{value:.3g}"
    rounded = round(value, 2 - exponent)
    decimals = max(0, 2 - exponent)
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration(seconds: float) -> str:
    """`seconds` as a person says it: 45 ms, 3.2 s, 54 min, 2 h 44 min, 3 d 4 h."""
    if not math.isfinite(seconds):
        return number(seconds)
    if seconds < 1:
        return f"{number(seconds * 1000)} ms"
    if seconds < 60:
        return f"{number(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def size(count: float) -> str:
    """A number of bytes in binary units: 512 B, 1.5 KiB, 3.25 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{number(count)} {unit}"
        count /= 1024
    return f"{number(count)} TiB"


class _Formatter(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, tuple):
            return ", ".join(self.format_field(item, format_spec) for item in value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if format_spec == "%":
                return f"{number(100 * value)}%"
            if format_spec == "duration":
                return duration(value)
            if format_spec == "bytes":
                return size(value)
            if not format_spec:
                return f"{value:,}" if isinstance(value, int) else number(value)
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()
