import numpy as np

from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.histograms import layer_histograms
from tb_advisor.rules.non_finite_weights import non_finite_weights
from tests.histogram_builders import RANDOM, histograms, job_of, layers, torch_buckets

FINE = torch_buckets(RANDOM.normal(0, 1, 50))
NAN = [[np.nan, np.nan, 50.0]]
INFINITE = [[-1.0, 1.0, 49.0], [1.0, np.inf, 1.0]]


def found_in(**tensors):
    return non_finite_weights(layer_histograms(job_of(*(histograms(rows, f"{name}.weight") for name, rows in tensors.items()))))


def test_nan_in_the_middle_of_the_run():
    (found,) = found_in(fc1=[FINE] * 4 + [NAN] * 4, fc2=[FINE] * 8)
    assert found.summary == "The weights of fc1 are NaN or infinite at step 40; they were finite at step 30."
    assert (found.severity, found.onset_step, found.last_step) == (Severity.ERROR, 40, 70)


def test_the_first_of_several_layers():
    (found,) = found_in(fc1=[FINE] * 4 + [NAN], fc2=[FINE, INFINITE, NAN, NAN, NAN], head=[FINE] * 5)
    assert found.summary == (
        "The weights of fc2 are NaN or infinite at step 10; they were finite at step 0; 2 of 3 weight tensors are by the end."
    )


def test_from_the_beginning():
    (found,) = found_in(fc1=[NAN])
    assert found.summary == "The weights of fc1 are NaN or infinite at step 0, the first one logged."
    assert found.impact.share == 1


def test_large_weights():
    assert non_finite_weights(layers({"fc1.weight": [[1e30, -1e30, 0.0]] * 3})) == []


def test_empty_outer_buckets_of_the_old_format():
    assert found_in(fc1=[[[-np.inf, -1.0, 0.0], [-1.0, 1.0, 4.0], [1.0, np.inf, 0.0]]]) == []


def test_constant_weights():
    assert non_finite_weights(layers({"fc1.weight": [np.zeros(5)] * 3})) == []
