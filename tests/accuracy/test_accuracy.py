"""The rules on real training runs whose faults are known (make.py). A label without a registered rule is skipped."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Confidence, Severity, Status
from tb_advisor.rules import all_rules
from tests.accuracy.definitions import LABELS

pytestmark = pytest.mark.slow

LABEL_OF = {
    "non-finite-loss": "nan_loss",
    "loss-divergence": "loss_divergence",
    "loss-spikes": "loss_spike",
    "loss-not-decreasing": "loss_not_decreasing",
    "underfitting": "underfitting",
    "unfinished-training": "underfitting",
    "overfitting": "overfitting",
    "overtraining": "overtraining",
    "oscillating-loss": "oscillating_loss",
    "exploding-gradients": "exploding_gradient",
    "vanishing-gradients": "vanishing_gradient",
    "dead-units": "dead_relu",
    "saturated-activations": "saturated_activation",
    "poor-initialization": "poor_initialization",
    "frozen-weights": "weights_not_updating",
    "learning-rate-zero": "lr_schedule",
    "learning-rate-jump": "lr_schedule",
    "suspicious-validation": "val_suspicious",
    "class-collapse": "class_collapse",
    "throughput-degradation": "throughput_degradation",
    "memory-growth": "memory_growth",
    "restart-overlap": "restart_artefact",
}
JUDGED = {LABEL_OF[rule.id] for rule in all_rules() if rule.id in LABEL_OF}

# What is wrong today, with the reason. Everything else is held to be right.
KNOWN_FALSE: set[tuple[str, str]] = set()
KNOWN_MISSED: set[tuple[str, str]] = set()


@dataclass
class Label:
    """How one label fared, as runs. `debatable` findings are neither right nor wrong."""

    found: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    debatable: list[str] = field(default_factory=list)
    onset_errors: list[float] = field(default_factory=list)


@dataclass
class Score:
    labels: dict[str, Label]
    alarms: list[str]
    healthy: int
    by_confidence: dict[str, list[bool]]

    def __str__(self):
        rows = [f"{'label':24}{'found':>6}{'missed':>7}{'false':>6}{'debatable':>10}{'onset error':>12}  wrong"]
        for name, label in self.labels.items():
            onset = f"{median(label.onset_errors):.1%}" if label.onset_errors else ""
            wrong = [f"-{run}" for run in label.missed] + [f"+{run}" for run in label.false]
            rule = "" if name in JUDGED else "(no rule yet) "
            counts = f"{len(label.found):6}{len(label.missed):7}{len(label.false):6}{len(label.debatable):10}{onset:>12}"
            rows.append(f"{name:24}{counts}  {rule}{' '.join(wrong) if name in JUDGED else ''}")
        rows.append(f"healthy runs with an alarm: {len(self.alarms)} of {self.healthy} {' '.join(self.alarms)}")
        for confidence, right in self.by_confidence.items():
            rows.append(f"confidence {confidence}: {sum(right)} of {len(right)} right = {sum(right) / len(right):.2f}")
        return "\n".join(rows)


@pytest.fixture(scope="module")
def report(labelled_runs):
    return diagnose(labelled_runs)


@pytest.fixture(scope="module")
def score(labelled_runs, report):
    truth = [json.loads(line) for line in (labelled_runs / "labels.jsonl").read_text("utf-8").splitlines()]
    return score_of(truth, findings_of(report, {run["run"] for run in truth}))


def findings_of(report, runs):
    """What counts as found: {run: {label: (onset step, confidence)}}, of each label the earliest."""
    found = defaultdict(dict)
    for outcome, diagnosis in report.diagnoses:
        label, run = LABEL_OF.get(outcome.rule), outcome.job.partition("/")[0]
        enough = diagnosis.severity is not Severity.INFO or outcome.rule == "unfinished-training"
        if label and run in runs and enough and diagnosis.confidence is not Confidence.LOW:
            earlier = found[run].get(label)
            if earlier is None or (diagnosis.onset_step or 0) < (earlier[0] or 0):
                found[run][label] = (diagnosis.onset_step, diagnosis.confidence.name.lower())
    return found


def score_of(truth, findings):
    labels = {name: Label() for name in LABELS}
    alarms, by_confidence = [], defaultdict(list)
    for run in truth:
        name, found = run["run"], findings.get(run["run"], {})
        for label in found.keys() | set(run["labels"]):
            result = labels[label]
            if label not in found:
                result.missed.append(name)
                continue
            onset, confidence = found[label]
            if label in run["acceptable"]:
                result.debatable.append(name)
                continue
            right = label in run["labels"]
            (result.found if right else result.false).append(name)
            by_confidence[confidence].append(right)
            expected = run["onset_step"].get(label)
            if right and expected is not None and onset is not None:
                low, high = expected if isinstance(expected, list) else (expected, expected)
                result.onset_errors.append(max(low - onset, onset - high, 0) / max(1, run["last_step"]))
            if run["healthy"]:
                alarms.append(f"{name}:{label}")
    return Score(labels, alarms, sum(run["healthy"] for run in truth), dict(sorted(by_confidence.items())))


def test_no_rule_fails(report):
    assert [(o.rule, o.job, str(o.reason)) for o in report.outcomes if o.status is Status.ERROR] == []


def test_a_third_of_the_runs_is_healthy(score, labelled_runs):
    assert 3 * score.healthy >= len((labelled_runs / "labels.jsonl").read_text("utf-8").splitlines())


@pytest.mark.parametrize("label", LABELS)
def test_a_fault_is_found_and_nothing_else(score, label):
    if label not in JUDGED:
        pytest.skip(f"no rule for {label} yet")
    missed = {(run, label) for run in score.labels[label].missed} - KNOWN_MISSED
    false = {(run, label) for run in score.labels[label].false} - KNOWN_FALSE
    assert not missed and not false, f"missed {sorted(missed)}, false {sorted(false)}\n{score}"


@pytest.mark.parametrize("label", LABELS)
def test_the_onset_is_where_the_fault_begins(score, label):
    errors = score.labels[label].onset_errors
    assert not errors or median(errors) <= 0.05, str(score)


def test_what_is_known_to_be_wrong_still_is(score):
    missed = {(run, name) for name, label in score.labels.items() for run in label.missed}
    false = {(run, name) for name, label in score.labels.items() for run in label.false}
    assert missed >= KNOWN_MISSED and false >= KNOWN_FALSE, f"take out what is right by now\n{score}"


@pytest.mark.parametrize(("confidence", "least"), [("high", 0.95), ("medium", 0.85)])
def test_confidence_is_earned(score, confidence, least):
    right = score.by_confidence.get(confidence, [])
    assert not right or sum(right) / len(right) >= least or sum(not r for r in right) <= len(KNOWN_FALSE), str(score)
