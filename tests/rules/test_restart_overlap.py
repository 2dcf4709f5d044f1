from dataclasses import replace

import pytest

from tb_advisor.diagnosis import Severity
from tb_advisor.evidence.restarts import Restart
from tb_advisor.rules.restart_overlap import restart_overlap

REWIND = Restart("exp", "loss", 0, 276, 179, 12.0, 90.0, 3, 0.5, 0.6)


def test_a_training_resumed_from_an_older_checkpoint():
    (found,) = restart_overlap((REWIND,))
    assert found.summary == "The steps of loss go back from 276 to 179: 98 steps were done twice (value 0.5 before, 0.6 after)."
    assert (found.severity, found.onset_step, found.last_step) == (Severity.WARNING, 179, 276)
    assert str(found.impact.text) == "98 steps lie in the log twice; the first pass over them took 2 min."


def test_a_counter_that_starts_again():
    (found,) = restart_overlap((replace(REWIND, next_step=2),))
    assert found.summary.startswith("The steps of loss start again at 2 after step 276: two trainings lie in one curve")


def test_several_restarts_are_one_diagnosis():
    (found,) = restart_overlap((REWIND, replace(REWIND, last_step=400, next_step=300)))
    assert found.summary.endswith("Steps go back 2 times in all.")
    assert (found.onset_step, found.last_step, len(found.exhibits[0].marks)) == (179, 400, 2)


def test_two_processes_at_once():
    (found,) = restart_overlap((replace(REWIND, next_step=0, seconds_between=-200.0),))
    assert found.summary.startswith("Two processes wrote this run at the same time: steps of loss go back from 276 to 0")


@pytest.mark.parametrize(("next_step", "severity"), [(274, Severity.INFO), (270, Severity.WARNING)])
def test_a_few_steps_done_twice_are_only_worth_knowing(next_step, severity):
    assert restart_overlap((replace(REWIND, next_step=next_step),))[0].severity is severity


def test_clear():
    assert restart_overlap(()) == []
