import numpy as np
import pytest

from tb_advisor.diagnosis import Confidence, Severity
from tb_advisor.evidence.embeddings import Embedding
from tb_advisor.message import Missing
from tb_advisor.rules.embedding_collapse import embedding_collapse

RANDOM = np.random.default_rng(0)


def check(vectors):
    return embedding_collapse((Embedding("words", "run", np.asarray(vectors, np.float64)),))


def test_all_vectors_are_the_same_but_for_noise():
    (found,) = check(np.ones((200, 32)) + 1e-3 * RANDOM.normal(size=(200, 32)))
    assert found.summary == "The 200 vectors of words are nearly the same: they spread by 0.101% of their length."
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HIGH)
    assert (found.exhibits[0].tab, found.exhibits[0].run) == ("projector", "run")


def test_one_direction():
    (found,) = check(RANDOM.normal(size=(200, 1)) * RANDOM.normal(size=(1, 32)) + 0.05 * RANDOM.normal(size=(200, 32)))
    assert found.summary.startswith("The 200 vectors of words differ along 1.") and found.confidence is Confidence.MEDIUM


def test_equal_vectors_and_vectors_of_zero():
    assert "spread by 0%" in check(np.ones((100, 16)))[0].summary
    assert len(check(np.zeros((100, 16)))) == 1


@pytest.mark.parametrize(
    "vectors",
    [
        RANDOM.normal(size=(200, 32)),
        RANDOM.normal(size=(60, 300)),
        3 + RANDOM.normal(size=(200, 32)),  # a common direction, as language models have it
        RANDOM.normal(size=(200, 3)) @ RANDOM.normal(size=(3, 32)),
        np.eye(10)[RANDOM.integers(10, size=200)],  # classes
        RANDOM.normal(size=(200, 16)) * 1e25,
    ],
)
def test_healthy_embeddings(vectors):
    assert check(vectors) == []


@pytest.mark.parametrize("shape", [(40, 32), (200, 4)])
def test_too_few_vectors_or_dimensions(shape):
    with pytest.raises(Missing, match="no embedding with 50 vectors of 8 dimensions"):
        check(np.ones(shape))
