import pytest

from tb_advisor.evidence.run_state import finished
from tb_advisor.logdir.jobs import Job, Run
from tests.builders import FIRST_SECOND, series

LAST_EVENT = FIRST_SECOND + 99 * 30  # 100 points, 30 s apart


def job(*, last_written, read_at):
    curve = series([1.0] * 100, seconds=30)
    return Job("run", {"run": Run("run", {"loss": curve}, {}, "", (), 0, ())}, (), read_at, last_written)


@pytest.mark.parametrize(
    ("reason", "last_written", "read_at", "over"),
    [
        ("an event just came", LAST_EVENT, LAST_EVENT + 20, False),
        ("less than five gaps", LAST_EVENT, LAST_EVENT + 140, False),
        ("more than five gaps", LAST_EVENT, LAST_EVENT + 160, True),
        ("flushed a minute ago, two minutes after the event", LAST_EVENT + 120, LAST_EVENT + 180, False),
        ("copied a second ago", LAST_EVENT + 86_400, LAST_EVENT + 86_401, True),
    ],
)
def test_a_job_is_over_when_it_no_longer_grows(reason, last_written, read_at, over):
    assert finished(job(last_written=last_written, read_at=read_at)) is over
