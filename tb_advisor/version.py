"""The version, in one place: setup.py, the report and the command read it here."""

__version__ = "0.1.0"
