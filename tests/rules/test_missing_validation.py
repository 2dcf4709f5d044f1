import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.roles import roles
from tb_advisor.message import Missing
from tb_advisor.rules.missing_validation import missing_validation
from tests.builders import falling, series
from tests.evidence.test_roles import job


def check(*tags, n=50):
    return missing_validation(series(falling(n)), roles(job(*(("exp", tag) for tag in tags))))


@pytest.mark.parametrize("tags", [["loss"], ["train/loss", "train/accuracy", "lr"]])
def test_a_job_without_validation_is_noted(tags):
    (found,) = check(*tags)
    assert found.severity is Severity.INFO


@pytest.mark.parametrize("tags", [["loss", "val_loss"], ["train/loss", "eval/accuracy"], ["Loss/train", "Loss/test"]])
def test_clear(tags):
    assert check(*tags) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="5 are needed"):
        check("loss", n=4)
