import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.message import Missing
from tb_advisor.rules.missing_learning_rate import missing_learning_rate
from tests.builders import falling, series


@pytest.mark.parametrize("tag", ["loss", "train/loss"])
def test_a_job_without_a_learning_rate_is_noted(tag):
    (found,) = missing_learning_rate(series(falling(50), tag=tag), ())
    assert found.severity is Severity.INFO
    assert found.summary == f"No learning rate is logged beside {tag}: its schedule cannot be checked."


@pytest.mark.parametrize("rate", [[1e-3] * 50, [1e-3], [0.0] * 50])
def test_clear(rate):
    assert missing_learning_rate(series(falling(50)), (series(rate, tag="lr"),)) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="10 are needed"):
        missing_learning_rate(series(falling(9)), ())
