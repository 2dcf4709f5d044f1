"""Small networks in NumPy: forward, backward, two optimizers."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

Array = np.ndarray
Loss = Callable[[Array, Array], tuple[float, Array]]

ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {  # with the derivative, in terms of the output
    "relu": (lambda z: np.maximum(z, 0), lambda a: (a > 0).astype(a.dtype)),
    "tanh": (np.tanh, lambda a: 1 - a**2),
    "sigmoid": (lambda z: 1 / (1 + np.exp(-z)), lambda a: a * (1 - a)),
}


class Network:
    """Dense layers of `sizes` (inputs, hidden, …, outputs) with one activation between them and none after the last.

    Kernels are normal with a spread of `spread` × the He (relu) or Glorot value; `bias` is that of the hidden layers.
    """

    def __init__(
        self, sizes: Sequence[int], generator: np.random.Generator, activation: str = "relu", *, spread: float = 1.0, bias: float = 0.0
    ) -> None:
        self.activation = activation
        self.kernels = []
        self.biases = []
        for inputs, outputs in pairwise(sizes):
            usual = np.sqrt(2 / inputs if activation == "relu" else 2 / (inputs + outputs))
            self.kernels.append(generator.normal(0, 1, (inputs, outputs)) * usual * spread)
            self.biases.append(np.full(outputs, bias if len(self.kernels) < len(sizes) - 1 else 0.0))
        self.layers: list[Array] = []

    @property
    def parameters(self) -> list[Array]:
        """Kernels, then biases."""
        return [*self.kernels, *self.biases]

    def __call__(self, x: Array, *, dropout: float = 0.0, generator: np.random.Generator | None = None) -> Array:
        """The output; `layers` keeps the input and every activation for `gradients`."""
        function = ACTIVATIONS[self.activation][0]
        self.layers = [x]
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1], strict=True):
            a = function(self.layers[-1] @ kernel + bias)
            if generator is not None and dropout:
                a = a * (generator.random(a.shape) >= dropout) / (1 - dropout)
            self.layers.append(a)
        return self.layers[-1] @ self.kernels[-1] + self.biases[-1]

    def gradients(self, error: Array) -> list[Array]:
        """The gradients of the parameters, in their order, from that of the output of the last call."""
        slope = ACTIVATIONS[self.activation][1]
        of_kernels, of_biases = [], []
        for number in reversed(range(len(self.kernels))):
            a = self.layers[number]
            of_kernels.append(a.T @ error)
            of_biases.append(error.sum(axis=0))
            error = error @ self.kernels[number].T
            if number:
                error = error * slope(a)
        return [*reversed(of_kernels), *reversed(of_biases)]


class SGD:
    def __init__(self, momentum: float = 0.0) -> None:
        self.momentum = momentum
        self.velocity: list[Array] = []

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array], rate: float) -> None:
        self.velocity = self.velocity or [np.zeros_like(p) for p in parameters]
        for parameter, gradient, velocity in zip(parameters, gradients, self.velocity, strict=True):
            velocity *= self.momentum
            velocity += gradient
            parameter -= rate * velocity


class Adam:
    def __init__(self) -> None:
        self.count = 0
        self.moments: list[tuple[Array, Array]] = []

    def step(self, parameters: Sequence[Array], gradients: Sequence[Array], rate: float) -> None:
        self.moments = self.moments or [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
        self.count += 1
        for parameter, gradient, (mean, square) in zip(parameters, gradients, self.moments, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            parameter -= rate * (mean / (1 - 0.9**self.count)) / (np.sqrt(square / (1 - 0.999**self.count)) + 1e-8)


def softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def cross_entropy(logits: Array, classes: Array) -> tuple[float, Array]:
    """The mean loss of integer classes, and its gradient in the logits."""
    p = softmax(logits)
    rows = np.arange(len(p))
    loss = -float(np.log(np.maximum(p[rows, classes], 1e-12)).mean())
    p[rows, classes] -= 1
    return loss, p / len(p)


def careless_cross_entropy(logits: Array, classes: Array) -> tuple[float, Array]:
    """Logarithms without a floor: 0 × -inf as soon as a probability rounds to one."""
    p = softmax(logits)
    truth = np.eye(p.shape[1])[classes]
    loss = -float((truth * np.log(p) + (1 - truth) * np.log(1 - p)).sum(axis=1).mean())
    return loss, loss * 0 + (p - truth) / len(p)


def squared_error(outputs: Array, targets: Array) -> tuple[float, Array]:
    difference = outputs - targets
    return float((difference**2).mean()), 2 * difference / difference.size
