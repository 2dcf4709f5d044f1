"""Captures of PyTorch's profiler that tests/data/make_torch_traces.py recorded: one fault each, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Confidence, Diagnosis

DATA = Path(__file__).parent / "data"


def only_finding(job: str, rule: str) -> Diagnosis:
    (found,) = (outcome for outcome in diagnose(DATA / job).outcomes if any(d.shown for d in outcome.diagnoses))
    assert found.rule == rule
    (diagnosis,) = found.diagnoses
    return diagnosis


def test_a_loader_in_the_training_process():
    waits = only_finding("torch-input-bound", "input-bound-steps")
    assert waits.confidence is Confidence.HIGH
    assert waits.values["share"] == pytest.approx(0.96, abs=0.005)
    assert waits.values["wait"] == pytest.approx(8 * 0.0022, rel=0.05)  # seconds: 8 rows that sleep for 2 ms
    assert "num_workers=0" in waits.summary
    assert waits.fixes[0] == "dataloader-workers"
    assert (waits.onset_step, waits.last_step) == (3, 11)


def test_losses_that_are_kept_with_their_graph():
    grows = only_finding("torch-memory-growth", "memory-growth")
    assert grows.confidence is Confidence.HIGH
    # Floats of 512 rows: the output of the ReLU and the logarithm of the softmax; then the loss and the sum of its weights.
    assert grows.values["per_step"] == 4 * (512 * 64 + 512 * 10 + 2)
