import numpy as np
import pytest

from tb_advisor.advise import diagnose
from tb_advisor.diagnosis import Confidence, HistogramExhibit, Severity
from tb_advisor.evidence.gradients import Gradients, LayerGradient
from tb_advisor.message import Missing
from tb_advisor.rules.exploding_gradients import exploding_gradients
from tests.builders import event_file, falling, series

NAN, INF = float("nan"), float("inf")
HEALTHY = falling(100, noise=0.05)
STUCK = [*falling(60, noise=0.05), 50.0, *([2.2] * 39)]


def norm(values, step=1):
    return series(values, step=step, tag="grad_norm")


def steady(n, level=0.5, seed=3):
    return list(level * np.random.default_rng(seed).lognormal(0, 0.4, n))


def logged(values, loss=HEALTHY, step=1, layers=()):
    return Gradients(None if values is None else norm(values, step), layers, None if loss is None else series(loss, step=step))


def layer(name, values, of_histograms=True):
    curve = series(values, tag=f"gradients/{name}")
    return LayerGradient(name, curve, curve, of_histograms)


def jumped(height, n=100, at=60):
    return [*steady(at), height, *steady(n - at - 1, 0.3)]


def test_one_huge_gradient_that_ruined_the_run_is_found():
    (found,) = exploding_gradients(logged(jumped(240.0), STUCK, step=3))
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert (found.onset_step, found.last_step) == (180, 297)
    assert found.summary.startswith("The gradient norm rose from 0.4") and found.summary.endswith(" to 240 at step 180.")
    assert str(found.impact.text) == "39.4% of the run (39 s) came after it."
    assert "loss-divergence" in found.explains


def test_gradients_that_grow_without_end_are_found_where_they_leave_their_size():
    growing = [0.5 * 1.12**i for i in range(100)]
    (found,) = exploding_gradients(logged(growing, [2.0, *np.geomspace(2.0, 1e6, 99)]))
    assert found.onset_step == next(i for i, value in enumerate(growing) if value >= 20 * np.median(growing[:20]))
    assert found.confidence is Confidence.HIGH


def test_a_rise_little_above_the_limit_is_less_certain():
    (found,) = exploding_gradients(logged(jumped(15.0), STUCK))
    assert found.confidence is Confidence.MEDIUM


def test_a_norm_that_rose_and_became_nan_is_found_at_its_rise():
    (found,) = exploding_gradients(logged([0.5, 0.6, 72.0, 4e9, INF, *([NAN] * 15)], [2.0, 2.1, 90.0, *([NAN] * 17)]))
    assert (found.onset_step, found.confidence) == (2, Confidence.HIGH)
    assert found.summary == "The gradient norm rose from 0.5 to 4e+09 at step 3, and is +Inf from step 4 on."


def test_a_norm_that_became_nan_at_once_is_found_where_the_loss_hides_it():
    (found,) = exploding_gradients(logged([0.9, 1.0, 1.1, 0.8, 1.0, NAN, NAN, NAN], [2.4, 2.3, 2.2, 2.1, 2.0, 0.0, 0.0, 0.0]))
    assert (found.onset_step, found.confidence) == (5, Confidence.MEDIUM)
    assert found.summary == "The gradient norm is NaN from step 5 on; it was 0.9 before."


def test_a_norm_beyond_any_scale_at_the_start_is_found_though_the_loss_falls():
    values = [60000.0, 27000.0, 26000.0, 23000.0, 13000.0, *np.geomspace(12000, 600, 95)]
    (found,) = exploding_gradients(logged(values, [5100.0, *np.geomspace(3000, 15, 99)]))
    assert (found.onset_step, found.severity, found.confidence) == (0, Severity.WARNING, Confidence.MEDIUM)
    assert found.explains == ()
    assert found.summary.startswith("The gradient norm reached 60,000 at step 0; its median is ")


def test_a_loss_that_the_explosion_lifts_is_no_scale_for_the_norm():
    jitter = np.random.default_rng(4).lognormal(0, 0.5, 100)
    (found,) = exploding_gradients(logged(list(4e4 * jitter), list(4e3 * np.linspace(1, 0.75, 100) * jitter[::-1])))
    assert (found.onset_step, found.severity, found.confidence) == (0, Severity.WARNING, Confidence.MEDIUM)


def test_histograms_tell_it_where_no_norm_does():
    layers = (layer("fc1", jumped(40.0)), layer("fc2", jumped(90.0)), layer("head", steady(100)))
    (found,) = exploding_gradients(logged(None, STUCK, layers=layers))
    assert found.summary.startswith("The largest gradient of fc2 rose from ")
    assert found.exhibits == (HistogramExhibit("run", "gradients/fc2"),)


def test_the_layer_that_grew_most_is_named():
    layers = (layer("fc1", jumped(40.0), False), layer("fc2", jumped(90.0), False))
    (found,) = exploding_gradients(logged(jumped(240.0), STUCK, layers=layers))
    assert found.summary.endswith(" to 240 at step 60; fc2 grew most.")


def test_without_a_loss_gradients_that_stay_large_are_found():
    (found,) = exploding_gradients(logged([*steady(50), *steady(50, 500.0)], None))
    assert found.onset_step == 50


@pytest.mark.parametrize(
    ("reason", "values", "loss"),
    [
        ("healthy", steady(100), HEALTHY),
        (
            "a transformer that starts to learn",
            [*steady(30, 0.3), *steady(10, 12.0), *steady(60, 3.0)],
            [*([1.1] * 30), *falling(70, 1.1, 0.2)],
        ),
        ("one corrupt batch", jumped(140.0), [*falling(60, noise=0.05), 70.0, *falling(39, 0.7, 0.5)]),
        ("just below 20 times", jumped(7.0), STUCK),
        ("20 times of little", [*steady(60, 0.01), *steady(40, 0.4)], STUCK),
        ("an overflow that the loss scaling skipped", [NAN, INF, *steady(50), INF, *steady(46), INF], HEALTHY),
        ("a constant zero", [0.0] * 100, STUCK),
        ("a loss that is a sum over many examples", list(np.geomspace(8e4, 2e3, 100)), list(np.geomspace(6e3, 5e2, 100))),
        ("a noisy sum over many examples", steady(400, 4e4), falling(400, 6e3, 4e3, noise=1500.0)),
        ("gradients with their loss scale", steady(100, 3e4), HEALTHY),
        ("a spike at convergence", [*steady(60, 0.01), 14.0, *steady(39, 0.01)], [*falling(60, 2.0, 1e-3), 5.0, *([2e-3] * 39)]),
        ("reinforcement learning, with its returns", [*steady(50), *steady(50, 30.0)], None),
    ],
)
def test_clear(reason, values, loss):
    assert exploding_gradients(logged(values, loss)) == []


def test_one_layer_that_grows_alone_is_left_out_of_the_optimizer():
    layers = (layer("fc1", list(np.linspace(0.3, 60, 100))), layer("fc2", steady(100)), layer("head", steady(100)))
    assert exploding_gradients(logged(None, STUCK, layers=layers)) == []


def test_too_few_points_are_said():
    with pytest.raises(Missing, match="grad_norm has fewer than 5 finite points"):
        exploding_gradients(logged([1.0, 2.0, 3.0]))


def test_a_norm_that_is_never_a_number_beside_a_loss_that_is_one_was_not_measured():
    with pytest.raises(Missing):
        exploding_gradients(logged([NAN] * 100))


def folded_under(tmp_path, scalars):
    event_file(tmp_path, scalars)
    return {
        outcome.rule: found.folded_under
        for outcome in diagnose(tmp_path).outcomes
        for found in outcome.diagnoses
        if found.severity is not Severity.INFO
    }


def test_a_loss_that_became_nan_has_the_gradients_that_led_there_folded_under_it(tmp_path):
    loss, values = [*falling(40), 90.0, 4e7, *([NAN] * 38)], [*steady(40), 700.0, 5e9, *([NAN] * 38)]
    assert folded_under(tmp_path, {"loss": loss, "grad_norm": values}) == {
        "non-finite-loss": None,
        "exploding-gradients": "non-finite-loss",
    }


def test_a_divergence_is_folded_under_the_gradients_that_caused_it(tmp_path):
    loss = [*falling(60, noise=0.02), 50.0, *([6.0] * 39)]
    found = folded_under(tmp_path, {"loss": loss, "grad_norm": jumped(240.0)})
    assert (found["exploding-gradients"], found["loss-divergence"]) == (None, "exploding-gradients")


def test_a_nan_that_only_the_gradients_and_the_evaluation_show_is_one_finding(tmp_path):
    curves = {"train/loss": [*falling(40, noise=0.02), *([0.0] * 40)], "train/grad_norm": [*steady(40), *([NAN] * 40)]}
    found = folded_under(tmp_path, {**curves, "eval/loss": [*falling(40), *([NAN] * 40)]})
    assert (found["exploding-gradients"], found["non-finite-loss"]) == (None, "exploding-gradients")
