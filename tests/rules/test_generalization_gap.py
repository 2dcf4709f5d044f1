import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.message import Missing
from tb_advisor.rules.generalization_gap import generalization_gap
from tests.builders import series

TRAIN = [1 - 0.9 * 0.8**i for i in range(20)]


def check(train, val):
    return generalization_gap(series(train, tag="train_acc"), series(val, tag="val_acc"))


def test_a_gap_that_stays_is_told():
    (found,) = check(TRAIN, [min(value, 0.71) for value in TRAIN])
    assert (found.severity, found.onset_step) == (Severity.INFO, 7)
    assert found.summary == "Training accuracy is 98.2%, validation accuracy 71%; the gap has stayed since step 7."


def test_a_wide_gap_is_sure():
    (found,) = check(TRAIN, [min(value, 0.5) for value in TRAIN])
    assert found.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    ("reason", "train", "val"),
    [
        ("healthy", TRAIN, [value - 0.05 for value in TRAIN]),
        ("ten points, usual on small image sets", TRAIN, [min(value, 0.89) for value in TRAIN]),
        ("noise", TRAIN, 0.8 + 0.1 * np.random.default_rng(0).standard_normal(20)),
        ("validation is better", [0.7] * 20, [0.9] * 20),
        ("one bad evaluation", TRAIN, [*TRAIN[:19], 0.3]),
    ],
)
def test_clear(reason, train, val):
    assert check(train, val) == []


def test_too_few_evaluations_are_said():
    with pytest.raises(Missing, match="5 are needed"):
        check(TRAIN, [0.5] * 3)
