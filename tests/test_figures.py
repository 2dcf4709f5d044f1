import json
import math

import pytest
from hypothesis import given, settings

from tb_advisor.evidence import Evidence
from tb_advisor.figures import BYTES, SHARE, key_figures
from tb_advisor.logdir.jobs import Job, Run, load
from tb_advisor.report import plain
from tests.builders import event_file, falling
from tests.rules.test_any_curve import STEPS, VALUES, curve


def figures(directory):
    (job,) = load(directory).jobs
    return {figure.kind: figure for figure in key_figures(Evidence(job))}


def test_the_best_validation_loss_and_the_last_training_loss(tmp_path):
    event_file(tmp_path, {"loss": falling(50, end=0.2), "val_loss": [*falling(30, end=0.5), *[0.9] * 20]})
    found = figures(tmp_path)
    best, last = found["best validation loss"], found["training loss at the end"]
    assert (best.tag, best.step, best.higher_is_better, best.of_training) == ("val_loss", 29, False, False)
    assert best.value == pytest.approx(falling(30, end=0.5)[-1])
    assert (last.tag, last.of_training) == ("loss", True)
    assert last.value == pytest.approx(falling(50, end=0.2)[-3])  # the median of the last five
    assert found["duration"].value == 49.0
    assert found["steps per second"].value == 1.0


@pytest.mark.parametrize(
    ("tag", "values", "best", "step"),
    [("val_accuracy", [0.5, 0.9, 0.8], 0.9, 1), ("val_mae", [3.0, 1.0, 2.0], 1.0, 1), ("val_perplexity", [90.0, 30.0, 20.0], 20.0, 2)],
)
def test_a_metric_is_best_in_its_own_direction(tmp_path, tag, values, best, step):
    event_file(tmp_path, {"val_loss": [3.0, 2.0, 1.0], tag: values})
    figure = figures(tmp_path)["best validation metric"]
    assert (figure.value, figure.step) == (pytest.approx(best), step)
    assert (figure.unit == SHARE) == (tag == "val_accuracy")


def test_a_training_metric_counts_where_no_other_is_logged(tmp_path):
    event_file(tmp_path, {"accuracy": [0.5, 0.9]})
    assert figures(tmp_path)["best training metric"].of_training


def test_peak_memory_is_that_of_the_device_in_bytes(tmp_path):
    event_file(tmp_path, {"system/cpu_memory_mb": [64e3] * 4, "gpu_memory_allocated_mb": [100.0, 300.0, 200.0, 100.0]})
    figure = figures(tmp_path)["peak memory"]
    assert (figure.tag, figure.value, figure.unit) == ("gpu_memory_allocated_mb", 300e6, BYTES)


def test_a_loss_that_ends_in_nan_says_so(tmp_path):
    event_file(tmp_path, {"loss": [*falling(20), *[math.nan] * 5]})
    assert math.isnan(figures(tmp_path)["training loss at the end"].value)


@given(train=VALUES, val=VALUES, steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_any_curve_has_figures_that_can_be_written(train, val, steps):
    tags = {"loss": train, "val_loss": val, "val_accuracy": val, "gpu_memory_mb": train, "samples_per_sec": val, "mean_return": train}
    scalars = {tag: curve("run", tag, values, steps) for tag, values in tags.items() if values}
    job = Job("run", {"run": Run("run", scalars, {}, "", (), 1, ())})
    json.dumps(plain(key_figures(Evidence(job))), allow_nan=False)
