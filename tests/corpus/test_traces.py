"""The captures of the corpus: what is known of them is found, and nothing else."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Confidence, Diagnosis, Severity, Status
from tb_advisor.report import Report
from tb_advisor.rules.incomplete_capture import incomplete_capture
from tb_advisor.rules.input_bound_steps import input_bound_steps
from tb_advisor.rules.memory_spike import memory_spike

TRACES = Path(__file__).parents[3] / "shared" / "corpus" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason=f"the corpus of captures is not at {TRACES}")


def labels() -> list[tuple[str, str]]:
    if not TRACES.is_dir():
        return [("no corpus", "-")]
    with (TRACES / "LABELS.tsv").open(encoding="utf-8") as stream:
        return [(row["capture"], row["expected"]) for row in csv.DictReader(stream, delimiter="\t")]


# The input-bound capture of xprof/demo is a set of files of 2020, which are not decoded.
LABELS = [(name, expected) for name, expected in labels() if name != "xprof/demo"]


@cache
def report(name: str) -> Report:
    return diagnose(TRACES / name, rules=[incomplete_capture, input_bound_steps, memory_spike])


def found(name: str, rule: str, severity: Severity = Severity.WARNING) -> list[Diagnosis]:
    return [d for outcome, d in report(name).diagnoses if outcome.rule == rule and d.severity.rank >= severity.rank]


@pytest.mark.parametrize(("name", "expected"), LABELS)
def test_input_bound_steps_are_found_where_they_are(name, expected):
    shown = [d for d in found(name, "input-bound-steps") if d.confidence is not Confidence.LOW]
    assert len(shown) == (1 if expected == "input-bound-steps" else 0)


@pytest.mark.parametrize(("name", "expected"), LABELS)
def test_whole_captures_have_no_warning_of_captures_or_memory(name, expected):
    assert found(name, "incomplete-capture", Severity.INFO) == []
    assert found(name, "memory-spike", Severity.INFO) == []


@pytest.mark.parametrize("name", ["generated/tf_mem_growth", "generated/tfs_mem_peak"])
def test_a_capture_of_a_cpu_says_that_it_holds_no_memory(name):
    outcome = next(o for o in report(name).outcomes if o.rule == "memory-spike")
    assert outcome.status is Status.NOT_APPLICABLE
    assert "a capture of a CPU holds no allocator events" in str(outcome.reason)


def test_old_formats_and_a_capture_of_one_step_are_said_to_be_so():
    said = [d.summary for d in found("xprof/demo", "incomplete-capture", Severity.INFO)]
    assert [s.split(" ")[1] for s in said] == ["Cloud-TPU", "GPU-compute-bound", "GPU-input-bound", "GPU-multi-worker"]
    assert "format of 2020 to 2022" in said[2]
    assert "holds 1 step" in said[3]
    assert found("xprof/demo", "incomplete-capture") == []


@pytest.mark.parametrize(
    "name",
    ["HolisticTraceAnalysis", "TraceLens", "xprof", "kineto", "sagemaker-debugger", "tensorboard-review", "eat_tensorflow2_in_30_days"],
)
def test_captures_of_the_public_end_without_an_error(name):
    ends = [outcome.status for outcome in report(name).outcomes]
    assert ends and Status.ERROR not in ends


def test_the_slow_part_is_named():
    python = found("generated/tfs_parallel_fixed", "input-bound-steps")[0]
    assert "Python functions" in python.summary
    assert "parallel-map" not in python.fixes  # its thread pool has one thread
    loader = found("kineto/tb_plugin/samples/resnet50_num_workers_0", "input-bound-steps")[0]
    assert "num_workers=0" in loader.summary
    assert loader.fixes[0] == "dataloader-workers"
