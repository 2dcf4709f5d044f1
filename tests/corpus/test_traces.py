"""The captures of the corpus: what is known of them is found, and nothing else."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Diagnosis, Severity, Status
from tb_advisor.report import Report
from tb_advisor.rules import all_rules

TRACES = Path(__file__).parents[3] / "shared" / "corpus" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason=f"the corpus of captures is not at {TRACES}")


def labels() -> list[tuple[str, str]]:
    if not TRACES.is_dir():
        return [("no corpus", "-")]
    with (TRACES / "LABELS.tsv").open(encoding="utf-8") as stream:
        return [(row["capture"], row["expected"]) for row in csv.DictReader(stream, delimiter="\t")]


LABELS = labels()


# Their gain is memory, not time.
OF_MEMORY = frozenset({"memory-spike", "memory-growth", "memory-near-limit", "memory-fragmentation"})
OF_CAPTURES = tuple(
    rule for rule in all_rules() if not {"traces", "step_times", "host_time", "device_time", "allocator_memory"}.isdisjoint(rule.evidence)
)


@cache
def report(name: str) -> Report:
    return diagnose(TRACES / name, rules=OF_CAPTURES)


def expected_of(label: str, severity: str) -> set[str]:
    """The rules that a label like ``eager-execution (info), slow-compilation`` names at this severity."""
    named = [part.strip().partition(" ") for part in label.split(",") if part.strip() != "-"]
    return {rule for rule, _, mark in named if (mark or "(warning)") == f"({severity})"}


def found(name: str, rule: str, severity: Severity = Severity.WARNING) -> list[Diagnosis]:
    return [d for outcome, d in report(name).diagnoses if outcome.rule == rule and d.severity.rank >= severity.rank]


@pytest.mark.parametrize(("name", "expected"), LABELS)
def test_what_is_known_of_a_capture_is_found_and_nothing_else(name, expected):
    shown = [outcome.rule for outcome, d in report(name).diagnoses if d.shown]
    assert sorted(shown) == sorted(expected_of(expected, "warning"))
    for rule in expected_of(expected, "info"):
        assert [d.severity for d in found(name, rule, Severity.INFO)] == [Severity.INFO]


@pytest.mark.parametrize(("name", "expected"), LABELS)
def test_every_finding_says_what_can_be_won(name, expected):
    for outcome, d in report(name).diagnoses:
        if d.shown and outcome.rule not in OF_MEMORY:
            assert d.impact is not None and "× faster" in str(d.impact.text)


@pytest.mark.parametrize(("name", "expected"), [(name, expected) for name, expected in LABELS if name != "xprof/demo"])
def test_whole_captures_have_no_warning_of_captures_or_memory(name, expected):
    assert found(name, "incomplete-capture", Severity.INFO) == []
    for rule in OF_MEMORY - expected_of(expected, "warning"):
        assert found(name, rule, Severity.INFO) == []


@pytest.mark.parametrize("name", ["generated/tf_mem_growth", "generated/tfs_mem_peak"])
@pytest.mark.parametrize("rule", sorted(OF_MEMORY))
def test_a_capture_of_a_cpu_says_that_it_holds_no_memory(name, rule):
    outcome = next(o for o in report(name).outcomes if o.rule == rule)
    assert outcome.status is Status.NOT_APPLICABLE
    assert "a capture of a CPU holds no allocator events" in str(outcome.reason)


def test_what_a_step_of_pytorch_keeps():
    (leak,) = found("generated/torch_mem_growth", "memory-growth")
    assert "CPU keeps 1 MiB more with every step" in leak.summary


def test_what_cannot_be_judged_is_said():
    said = [d.summary for d in found("xprof/demo", "incomplete-capture", Severity.INFO)]
    assert [s.split(" ")[1] for s in said] == ["Cloud-TPU", "GPU-multi-worker"]
    assert "format of 2020 to 2022" in said[0]
    assert "holds 1 step" in said[1]
    assert found("xprof/demo", "incomplete-capture") == []


def test_the_steps_that_tensorflow_summed_up_in_2020_are_judged():
    (waits,) = found("xprof/demo", "input-bound-steps")
    assert "Each step waits 908 ms of its 1.12 s (81.4%) for input" in waits.summary
    (stage,) = found("xprof/demo", "slow-input-operation")
    assert "Iterator::Prefetch::Generator" in stage.summary


@pytest.mark.parametrize(
    "name",
    ["HolisticTraceAnalysis", "TraceLens", "xprof", "kineto", "sagemaker-debugger", "tensorboard-review", "eat_tensorflow2_in_30_days"],
)
def test_captures_of_the_public_end_without_an_error(name):
    ends = [outcome.status for outcome in report(name).outcomes]
    assert ends and Status.ERROR not in ends


def test_the_compiled_and_the_traced_function_are_named():
    assert "function step is compiled 8 times in 8 steps" in found("generated/jax_recompile", "slow-compilation")[0].summary
    assert "function step is traced in 8 of 8 calls" in found("generated/tf_retrace", "function-retracing")[0].summary


def test_what_the_rules_say_of_public_captures_is_true():
    """MI300X without a memory pool: every step waits in hipFree. TPU v6e with arrays on the host: nothing but copies."""
    (pool,) = found("TraceLens/tests/traces/mi300/ddp_resnet18_no_pool", "host-bound-steps")
    assert "waits for it in hipFree, 273× a step" in pool.summary
    assert pool.fixes == ("reuse-memory",)
    (copies,) = found("xprof/xprof", "host-device-copies")
    assert copies.values["lost"] > 0.9
    (single,) = found("kineto/tb_plugin/samples/resnet50_num_workers_4", "full-precision-compute", Severity.INFO)
    assert single.severity is Severity.INFO and single.values["half"] == 0


def test_the_slow_part_is_named():
    python = found("generated/tfs_parallel_fixed", "input-bound-steps")[0]
    assert "Python functions" in python.summary
    assert "parallel-map" not in python.fixes  # its thread pool has one thread
    loader = found("kineto/tb_plugin/samples/resnet50_num_workers_0", "input-bound-steps")[0]
    assert "num_workers=0" in loader.summary
    assert loader.fixes[0] == "dataloader-workers"


def test_what_a_capture_holds_is_said_before_any_verdict():
    (job,) = diagnose(TRACES / "generated" / "tf_well_fed").jobs
    (contents,) = job.capture_contents
    assert contents.steps > 5 and contents.marked and contents.devices == 0
    assert contents.text.endswith("s") and "marked by" in contents.text
