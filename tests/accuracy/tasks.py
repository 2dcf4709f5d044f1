"""The data: scikit-learn's bundled sets and a few that are drawn."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from tests.accuracy.network import Array, Loss, cross_entropy, squared_error


@dataclass(frozen=True)
class Task:
    """Training and validation data with their loss. `classes` is 0 for a regression."""

    x: Array
    y: Array
    x_val: Array
    y_val: Array
    loss: Loss
    classes: int = 0

    @property
    def outputs(self) -> int:
        return self.classes or self.y.shape[1]

    def only(self, examples: int) -> "Task":
        """The first examples of the training data."""
        return replace(self, x=self.x[:examples], y=self.y[:examples])

    def mislabelled(self, share: float, seed: int = 0) -> "Task":
        """With that share of the training labels drawn anew."""
        generator = np.random.default_rng(seed)
        hit = generator.random(len(self.y)) < share
        return replace(self, y=np.where(hit, generator.integers(0, self.classes, len(self.y)), self.y))


@cache
def digits() -> Task:
    """8 × 8 pixels in one row, 10 classes."""
    x, y = datasets.load_digits(return_X_y=True)
    return _classes(x / 16.0, y, test_size=0.25)


@cache
def wine() -> Task:
    """13 standardized measurements of 178 wines, 3 classes."""
    x, y = datasets.load_wine(return_X_y=True)
    return _classes(StandardScaler().fit_transform(x), y, test_size=0.3)


@cache
def cancer() -> Task:
    """30 standardized measurements of 569 patients, 2 classes."""
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return _classes(StandardScaler().fit_transform(x), y, test_size=0.3)


@cache
def iris() -> Task:
    x, y = datasets.load_iris(return_X_y=True)
    return _classes(StandardScaler().fit_transform(x), y, test_size=0.3)


@cache
def circles() -> Task:
    """Two rings in each other: no line parts them."""
    x, y = datasets.make_circles(800, noise=0.08, factor=0.5, random_state=0)
    return _classes(x, y, test_size=0.4)


@cache
def rare(share: float = 0.1) -> Task:
    """Two classes that overlap, of which one is rare."""
    x, y = datasets.make_classification(900, 12, n_informative=4, weights=[1 - share], class_sep=0.7, flip_y=0.02, random_state=1)
    return _classes(x, y, test_size=0.4)


@cache
def diabetes() -> Task:
    """Ten standardized features of 442 patients; the progression of the disease in hundreds."""
    x, y = datasets.load_diabetes(return_X_y=True)
    parts = train_test_split(StandardScaler().fit_transform(x), y[:, None] / 100.0, test_size=0.4, random_state=0)
    return Task(parts[0], parts[2], parts[1], parts[3], squared_error)


@cache
def wave(noise: float = 0.1) -> Task:
    """A sine, a little more than one period."""
    generator = np.random.default_rng(2)
    x = generator.uniform(-2, 2, (900, 1))
    y = np.sin(2 * x) + generator.normal(0, noise, x.shape)
    return Task(x[:600], y[:600], x[600:], y[600:], squared_error)


@cache
def plane(features: int = 20, noise: float = 0.5) -> Task:
    """A linear function of correlated features."""
    generator = np.random.default_rng(3)
    x = generator.normal(0, 1, (700, features)) @ generator.normal(0, 0.4, (features, features)) + generator.normal(0, 1, (700, 1))
    y = x @ generator.normal(0, 1, (features, 1)) / np.sqrt(features) + generator.normal(0, noise, (700, 1))
    return Task(x[:400], y[:400], x[400:], y[400:], squared_error)


@cache
def words(length: int = 3000) -> Task:
    """The next of 24 symbols from the last two. As with language, the best model is wrong most of the time: what follows a symbol
    is drawn from a distribution of its own.
    """
    generator = np.random.default_rng(4)
    follower = generator.dirichlet(np.full(24, 0.2), 24).cumsum(axis=1)
    text = [0, 1]
    for _ in range(length):
        text.append(min(23, int(np.searchsorted(follower[text[-1]], generator.random()))))
    symbols = np.array(text)
    x = np.concatenate([np.eye(24)[symbols[:-2]], np.eye(24)[symbols[1:-1]]], axis=1)
    cut = length * 3 // 4
    return Task(x[:cut], symbols[2 : cut + 2], x[cut:], symbols[cut + 2 :], cross_entropy, 24)


@cache
def images() -> Task:
    """The digits as their own targets, for autoencoders."""
    task = digits()
    return Task(task.x, task.x, task.x_val, task.x_val, squared_error)


def _classes(x: Array, y: Array, *, test_size: float) -> Task:
    parts = train_test_split(x, y, test_size=test_size, random_state=0, stratify=y)
    return Task(parts[0], parts[2], parts[1], parts[3], cross_entropy, len(np.unique(y)))
