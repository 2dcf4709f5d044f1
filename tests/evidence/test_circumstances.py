import numpy as np
import pytest

from tb_advisor.evidence.circumstances import Circumstances, circumstances
from tb_advisor.evidence.learning_rate import learning_rates
from tb_advisor.evidence.roles import roles
from tb_advisor.logdir.jobs import Job, Run
from tb_advisor.series import joined
from tests.builders import series

LOSS = series([1.0] * 100)


def of(*curves):
    named = roles(Job("run", {"run": Run("run", {c.tag: c for c in curves}, {}, "", (), 0, ())}))
    return circumstances(named, learning_rates(named))


def test_a_job_with_a_loss_only_has_none():
    found = of(LOSS)
    assert (found.learning_rates, found.gradient_norms, found.evaluations, found.restarts) == ((), (), (), ())
    assert found.before(LOSS, 50) is None


def test_the_norm_of_one_layer_is_left_out():
    found = of(LOSS, series([1.0] * 9, tag="grad_norm"), series([1.0] * 9, tag="grad_norm/layer1"))
    assert [norm.tag for norm in found.gradient_norms] == ["grad_norm"]


def test_a_restart_is_where_the_steps_go_back():
    found = of(joined([series([1.0] * 60), series([0.5] * 40, first=50)]))
    assert found.restarts == (50,)
    assert str(found.before(LOSS, 52)) == " The run had been restarted at step 50."
    assert found.before(LOSS, 60) is None


@pytest.mark.parametrize(
    ("reason", "curves"),
    [
        ("a rate that was high before", {"learning_rates": (series([1e-3] * 20 + [0.1] * 80),)}),
        ("a rate that falls", {"learning_rates": (series(np.linspace(1e-3, 0, 100)),)}),
        ("a rate on another axis", {"learning_rates": (series([1e-3, 1e-2, 1e-2]),)}),
        ("a norm that is always high", {"gradient_norms": (series([900.0] * 100),)}),
        ("a norm of two points", {"gradient_norms": (series([1.0, 9.0], first=49),)}),
    ],
)
def test_what_did_not_change_explains_nothing(reason, curves):
    assert Circumstances(**curves).before(LOSS, 50) is None


def test_a_norm_that_is_not_finite_is_named():
    norm = series([1.0] * 48 + [float("inf")] * 52)
    assert str(Circumstances(gradient_norms=(norm,)).before(LOSS, 50)) == " The gradient norm was +Inf by then."


def test_frequent_evaluations_are_no_epoch_boundary():
    assert not Circumstances(evaluations=(series([1.0] * 25, step=4),)).follow_evaluations(LOSS, [1, 41])
    assert Circumstances(evaluations=(series([1.0] * 5, step=20),)).follow_evaluations(LOSS, [1, 41])
    assert not Circumstances(evaluations=(series([1.0] * 5, step=20),)).follow_evaluations(LOSS, [1, 50])
