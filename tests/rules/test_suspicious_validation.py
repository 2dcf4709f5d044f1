import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence
from tb_advisor.evidence.metrics import Accuracies
from tb_advisor.message import Missing
from tb_advisor.rules.suspicious_validation import suspicious_validation
from tests.builders import falling, series

TRAIN = falling(20, start=2.3, end=0.4)


def check(train, val, train_accuracy=None, val_accuracy=None):
    accuracies = Accuracies(*(None if values is None else series(values) for values in (train_accuracy, val_accuracy)))
    return suspicious_validation(series(train, tag="train_loss"), series(val, tag="val_loss"), accuracies)


def test_validation_on_the_training_data_is_found():
    (found,) = check(TRAIN, TRAIN)
    assert found.summary == "Training and validation loss are the same to six digits in 20 evaluations."
    assert found.confidence is Confidence.HIGH


def test_a_label_among_the_inputs_is_found():
    (found,) = check(falling(20, start=2.3, end=1.0), [0.01] * 20, [0.7] * 20, [1.0] * 20)
    assert found.summary == "Validation accuracy lies 30 percentage points above training accuracy in the median."
    assert found.confidence is Confidence.HIGH


def test_a_loss_far_below_training_is_found_without_accuracies():
    (found,) = check(TRAIN, [0.3 * value for value in TRAIN])
    assert found.summary == "Validation loss is 30% of the training loss in most evaluations."
    assert found.confidence is Confidence.MEDIUM


def test_losses_of_batches_are_compared_with_their_level():
    rng = np.random.default_rng(0)
    train = np.array(falling(400, start=2.3, end=0.6)) * (1 + 0.3 * rng.standard_normal(400))
    val = series([0.3 * value for value in falling(10, start=2.3, end=0.6)], step=40, first=39, tag="val_loss")
    assert len(suspicious_validation(series(train), val, Accuracies(None, None))) == 1


def test_near_the_ceiling_the_errors_are_compared():
    accuracies = np.linspace(0.86, 0.96, 20), [0.8, *([1.0] * 19)]
    (found,) = check(falling(20, start=1.4, end=0.2), falling(20, start=0.7, end=0.03), *accuracies)
    assert found.summary.startswith("Validation loss is")


def test_a_leak_that_is_learned_is_no_other_unit():
    assert len(check(falling(20, start=2.3, end=0.4), falling(20, start=2.2, end=0.02))) == 1


@pytest.mark.parametrize(
    ("reason", "train", "val", "accuracies"),
    [
        ("healthy", TRAIN, [1.2 * value for value in TRAIN], ([0.9] * 20, [0.87] * 20)),
        ("strong dropout", TRAIN, [0.5 * value for value in TRAIN], ([0.86] * 20, [0.94] * 20)),
        (
            "label smoothing in the training loss alone",
            falling(20, start=2.3, end=0.7),
            falling(20, start=2.3, end=0.1),
            ([0.96] * 20, [0.95] * 20),
        ),
        ("only the first evaluations, in the steep part", [2.3, 1.5, 0.8, *([0.2] * 17)], [0.5, 0.3, 0.2, *([0.21] * 17)], (None, None)),
        ("both at zero", falling(20, start=2.3, end=0.001)[:3] + [0.004] * 17, [1.0, 0.5, 0.1] + [0.001] * 17, (None, None)),
        ("a sum over 640 examples beside a mean", falling(20, start=612, end=147), falling(20, start=0.94, end=0.27), (None, None)),
        (
            "training examples that become harder",
            [*falling(10, start=1.5, end=0.2), *([0.35] * 10)],
            falling(20, start=1.2, end=0.05),
            ([*np.linspace(0.6, 0.98, 10), *([0.9] * 10)], [*np.linspace(0.6, 0.98, 10), *([0.995] * 10)]),
        ),
        ("augmented training", falling(20, start=1.4, end=0.9), falling(20, start=0.7, end=0.2), ([0.9] * 20, [0.965] * 20)),
        ("dropout near the ceiling", falling(20, start=1.4, end=0.2), falling(20, start=0.9, end=0.08), ([0.97] * 20, [0.99] * 20)),
        ("nothing moves", [2.302585] * 20, [2.302585] * 20, (None, None)),
        ("diverged", np.linspace(1, 50, 20), [0.5] * 20, (None, None)),
        ("just above the ratio", TRAIN, [0.45 * value for value in TRAIN], (None, None)),
    ],
)
def test_clear(reason, train, val, accuracies):
    assert check(train, val, *accuracies) == []


def test_too_few_evaluations_are_said():
    with pytest.raises(Missing, match="5 are needed"):
        check(TRAIN, TRAIN[:3])
