import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.speed import longest_pause
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.message import Missing
from tb_advisor.rules.stalled_run import stalled_run
from tb_advisor.series import Series
from tests.builders import FIRST_SECOND

HOUR = 3600.0
FILE = f"events.out.tfevents.{FIRST_SECOND:.0f}.host.1.0"


def check(*pauses, files=(FILE,), steps=None):
    seconds = FIRST_SECOND + np.concatenate([[0.0], np.cumsum(np.concatenate([np.atleast_1d(p) for p in pauses]))])
    steps = np.arange(len(seconds), dtype=np.int64) if steps is None else steps
    curve = Series(steps, seconds, np.ones(len(seconds)), "exp", "loss")
    job = Job("exp", {"exp": Run("exp", {"loss": curve}, {}, "", files, 0, ())})
    return stalled_run(job, longest_pause(job))


USUAL = np.full(200, 10.0)


def test_a_pause_in_the_middle():
    (found,) = check(USUAL, 5 * HOUR, USUAL)
    assert found.summary == "Nothing was logged for 5 h 00 min between steps 200 and 201; 95% of the pauses are below 10 s."
    assert (found.onset_step, found.last_step, found.confidence) == (200, 201, Confidence.HIGH)
    assert str(found.impact.text) == "81.8% of the run (5 h 00 min) passed without an event."


def test_two_pauses_are_told_by_the_longer_one():
    (found,) = check(USUAL, HOUR, USUAL, 1.5 * HOUR, USUAL)
    assert found.onset_step == 401


@pytest.mark.parametrize(
    ("reason", "pauses", "files"),
    [
        ("regular", [USUAL, USUAL], (FILE,)),
        ("below ten minutes", [USUAL / 100, 500.0, USUAL / 100], (FILE,)),
        ("a small part of the run", [np.full(5000, 10.0), HOUR, np.full(5000, 10.0)], (FILE,)),
        ("an evaluation after each epoch", [np.tile([*([10.0] * 40), HOUR], 6)], (FILE,)),
        ("a test score on the next day", [USUAL, 20 * HOUR, 1.0, 1.0], (FILE,)),
        ("stopped and resumed", [USUAL, 5 * HOUR, USUAL], (FILE, f"events.out.tfevents.{FIRST_SECOND + 2001 + 5 * HOUR:.0f}.host.2.0")),
        ("files whose names say no time", [USUAL, 5 * HOUR, USUAL], ("events.out.tfevents", "events.out.tfevents.resumed")),
    ],
)
def test_clear(reason, pauses, files):
    assert check(*pauses, files=files) == []


def test_few_events_are_said():
    with pytest.raises(Missing, match="no scalar has 40 points"):
        check(USUAL[:10])


def test_a_second_training_in_the_same_file_is_no_stall():
    assert check(USUAL, 5 * HOUR, USUAL, steps=np.tile(np.arange(201), 2)) == []
