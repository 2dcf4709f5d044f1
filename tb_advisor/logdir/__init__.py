"""Reads everything that training jobs left in a log directory, and judges nothing."""
