import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.sparse_logging import sparse_logging
from tests.builders import falling, series


def test_a_point_every_500_steps_is_sparse():
    (found,) = sparse_logging(series(falling(20), step=500, seconds=40), True)
    assert found.severity is Severity.INFO
    assert found.summary == "loss has 20 points, one every 500 steps (40 s)."


def test_long_epochs_are_sparse():
    assert len(sparse_logging(series(falling(10), seconds=3600), True)) == 1


@pytest.mark.parametrize(
    ("reason", "loss", "finished"),
    [
        ("many points", series(falling(300), step=500), True),
        ("30 points", series(falling(30), step=500), True),
        ("a short run of epochs", series(falling(10), seconds=20), True),
        ("a short run", series(falling(20), step=50), True),
        ("a run that has just begun", series(falling(5), step=500), False),
    ],
)
def test_clear(reason, loss, finished):
    assert sparse_logging(loss, finished) == []


def test_one_point_has_no_gap():
    with pytest.raises(Missing, match="one point"):
        sparse_logging(series([1.0]), True)
