"""tb_advisor reads what a training job left in its log directory, finds what went wrong, shows the evidence and says
what to do.

The public names are imported when they are first used, so that TensorBoard can load the plugin's entry point at no
cost; `rule` at once, since the module of that name would take its place.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tb_advisor.rule import rule
from tb_advisor.version import __version__

if TYPE_CHECKING:
    from tb_advisor.advise import diagnose
    from tb_advisor.comparison import Comparison, ComparisonError, compare
    from tb_advisor.config import Config, ConfigError, read_config
    from tb_advisor.diagnosis import Confidence, Diagnosis, Severity
    from tb_advisor.logdir.jobs import load
    from tb_advisor.message import Message, Missing
    from tb_advisor.report import Report
    from tb_advisor.series import Series

__all__ = [
    "Comparison",
    "ComparisonError",
    "Confidence",
    "Config",
    "ConfigError",
    "Diagnosis",
    "Message",
    "Missing",
    "Report",
    "Series",
    "Severity",
    "__version__",
    "compare",
    "diagnose",
    "load",
    "read_config",
    "rule",
]

_HOME = {
    "Comparison": "comparison",
    "ComparisonError": "comparison",
    "Confidence": "diagnosis",
    "Config": "config",
    "ConfigError": "config",
    "Diagnosis": "diagnosis",
    "Message": "message",
    "Missing": "message",
    "Report": "report",
    "Series": "series",
    "Severity": "diagnosis",
    "compare": "comparison",
    "diagnose": "advise",
    "load": "logdir.jobs",
    "read_config": "config",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
