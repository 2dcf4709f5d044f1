"""The training loop of the NumPy runs. Each fault is one option away from a healthy run."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from tests.accuracy.log import Log
from tests.accuracy.network import SGD, Adam, Array, Network
from tests.accuracy.tasks import Task

Batch = tuple[Array, Array]


def fit(
    log: Log,
    network: Network,
    task: Task,
    *,
    epochs: int,
    rate: float | Callable[[float], float],
    seed: int,
    optimizer: SGD | Adam | None = None,
    batch: int = 32,
    every: int = 1,
    evaluate_every: int = 0,
    by_epoch: bool = False,
    first_step: int = 0,
    dropout: float = 0.0,
    decay: float = 0.0,
    clip: float = np.inf,
    trained: Sequence[int] | None = None,
    before: Callable[[int, Batch], Batch] | None = None,
    after: Callable[[int], None] | None = None,
    stop: int = 0,
) -> None:
    """Train `network` and write what `log` has tags for.

    `rate` is a number or a function of the share of the run. The training loss is written every `every` steps, or as the mean of
    an epoch with the epoch as its step (`by_epoch`); validation every `evaluate_every` steps, or once an epoch. `trained` are the
    layers that the optimizer knows, `before` changes a batch, `after` runs after each step, and the run breaks off after `stop`
    steps. `decay` is the weight decay.
    """
    generator = np.random.default_rng(seed)
    optimizer = optimizer or Adam()
    each = -(-len(task.x) // batch)
    total = epochs * each
    layers = range(len(network.kernels)) if trained is None else trained
    chosen = [*layers, *(len(network.kernels) + layer for layer in layers)]
    losses: list[float] = []
    hits: list[float] = []
    for step in range(min(total, stop or total)):
        begin = time.perf_counter()
        if step % each == 0:
            order = generator.permutation(len(task.x))
        rows = order[step % each * batch :][:batch]
        x, y = task.x[rows], task.y[rows]
        if before:
            x, y = before(step, (x, y))
        output = network(x, dropout=dropout, generator=generator)
        loss, error = task.loss(output, y)
        losses.append(loss)
        hits.append(accuracy(output, y) if task.classes else 0.0)
        gradients = network.gradients(error)
        norm = float(np.sqrt(sum((g**2).sum() for g in gradients)))
        scale = min(1.0, clip / norm) if norm > 0 else 1.0
        for kernel, gradient in zip(network.kernels, gradients, strict=False):
            gradient += decay * kernel
        now = rate((step + 1) / total) if callable(rate) else rate
        parameters = network.parameters
        optimizer.step([parameters[i] for i in chosen], [scale * gradients[i] for i in chosen], now)
        if after:
            after(step)
        seconds = time.perf_counter() - begin
        axis = first_step + (step // each if by_epoch else step)
        if not by_epoch and step % every == 0:
            log(axis, loss=loss, accuracy=hits[-1], lr=now, grad_norm=norm, step_time=seconds, throughput=len(x) / seconds)
            log(axis, epoch=step / each)
        if (step + 1) % (evaluate_every or each) == 0:
            if by_epoch:
                log(axis, loss=float(np.mean(losses[-each:])), accuracy=float(np.mean(hits[-each:])), lr=now, grad_norm=norm)
            evaluate(log, network, task, axis)
            write_histograms(log, network, gradients, axis)


def evaluate(log: Log, network: Network, task: Task, step: int) -> None:
    output = network(task.x_val)
    loss = task.loss(output, task.y_val)[0]
    log(step, val_loss=loss)
    if task.classes:
        log(step, val_accuracy=accuracy(output, task.y_val))


def write_histograms(log: Log, network: Network, gradients: Sequence[Array], step: int) -> None:
    """Kernels, their gradients and the activations of the validation data that `network` saw last."""
    for layer, kernel in enumerate(network.kernels):
        log.of_layer(step, "weight", layer, kernel)
        log.of_layer(step, "gradient", layer, gradients[layer])
        log.of_layer(step, "layer_norm", layer, float(np.linalg.norm(gradients[layer])))
        if layer:
            log.of_layer(step, network.activation, layer - 1, network.layers[layer])


def accuracy(output: Array, classes: Array) -> float:
    return float((output.argmax(axis=1) == classes).mean())


def warm_up(peak: float, share: float = 0.1) -> Callable[[float], float]:
    """Linear from zero in the first `share` of the run, then a cosine to zero."""
    return lambda t: peak * (t / share if t < share else 0.5 * (1 + np.cos(np.pi * (t - share) / (1 - share))))


def restarts(peak: float, cycles: int) -> Callable[[float], float]:
    """Cosines that begin again at the peak."""
    return lambda t: peak * (0.02 + 0.49 * (1 + np.cos(np.pi * min(t, 1 - 1e-9) * cycles % np.pi)))
