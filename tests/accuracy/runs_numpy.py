"""Runs of small NumPy networks through tensorboardX, as PyTorch users log: healthy ones, and one fault each."""

import time
from dataclasses import replace

import numpy as np
import psutil

from tests.accuracy import tasks
from tests.accuracy.catalog import training
from tests.accuracy.log import Log
from tests.accuracy.network import SGD, Adam, Array, Network, careless_cross_entropy, squared_error
from tests.accuracy.training import fit, restarts, warm_up

# How authors name things.
HUGGING_FACE = {
    "loss": "train/loss",
    "val_loss": "eval/loss",
    "val_accuracy": "eval/accuracy",
    "lr": "train/learning_rate",
    "grad_norm": "train/grad_norm",
    "epoch": "train/epoch",
}
LIGHTNING = {
    "loss": "train_loss",
    "val_loss": "val_loss",
    "val_accuracy": "val_acc",
    "accuracy": "train_acc",
    "lr": "lr-Adam",
    "epoch": "epoch",
}
PLAIN = {"loss": "Loss/train", "val_loss": "Loss/val", "val_accuracy": "Accuracy/val", "accuracy": "Accuracy/train", "lr": "learning_rate"}
SHORT = {"loss": "loss/loss_tr", "val_loss": "loss/loss_val", "val_accuracy": "acc/val"}
FOLDERS = {"loss": "train:loss", "val_loss": "val:loss", "accuracy": "train:acc", "val_accuracy": "val:acc"}


def network(task: tasks.Task, *hidden: int, seed: int = 0, activation: str = "relu", spread: float = 1.0, bias: float = 0.0) -> Network:
    sizes = (task.x.shape[1], *hidden, task.outputs)
    return Network(sizes, np.random.default_rng(seed), activation, spread=spread, bias=bias)


# Healthy.


@training("digits", HUGGING_FACE)
def digits_warm_up_and_cosine(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 64), task, epochs=12, rate=warm_up(4e-3), seed=1, every=5, clip=1.0, decay=1e-3)


@training("wine", {**SHORT, "lr": "lr-AdamW"})
def wine_warm_restarts(log: Log) -> None:
    task = tasks.wine()
    fit(log, network(task, 16, seed=2), task, epochs=30, rate=restarts(4e-3, 3), seed=2, batch=16, evaluate_every=16, decay=2e-2)


@training("cancer", PLAIN)
def cancer_strong_dropout(log: Log) -> None:
    task = tasks.cancer()
    fit(log, network(task, 48, 48, seed=3), task, epochs=20, rate=6e-4, seed=3, batch=32, by_epoch=True, dropout=0.5, decay=2e-3)


@training("wave", {"loss": "loss"})
def wave_single_batches(log: Log) -> None:
    task = tasks.wave(0.3)
    fit(log, network(task, 32, activation="tanh", seed=4), task, epochs=40, rate=3e-3, seed=4, batch=6)


@training("diabetes", {**LIGHTNING, "loss": "train_loss_step"})
def diabetes_noisy_batches(log: Log) -> None:
    task = tasks.diabetes()
    fit(log, network(task, 8, seed=5, activation="tanh"), task, epochs=12, rate=warm_up(5e-3, 0.05), seed=5, batch=8, decay=1e-2)


@training("words", {"loss": "train/loss", "val_loss": "val/loss", "perplexity": "val/perplexity"})
def words_language_model(log: Log) -> None:
    task = tasks.words()
    fit(log, network(task, 48, seed=6), task, epochs=7, rate=lambda t: 3e-3 * (1 - t) + 1e-5, seed=6, every=3, evaluate_every=50)


@training("plane", {"loss": "loss/train", "val_loss": "loss/valid"}, axis="epoch")
def plane_gradient_descent(log: Log) -> None:
    task = tasks.plane()
    fit(log, network(task, seed=7), task, epochs=40, rate=1e-3, seed=7, batch=100, by_epoch=True, optimizer=SGD())


@training("images", {"loss": "train/recon_loss", "val_loss": "val/recon_loss", "lr": "lr/pg0"}, axis="epoch")
def images_autoencoder(log: Log) -> None:
    task = tasks.images()
    fit(log, network(task, 48, 12, 48, seed=8), task, epochs=20, rate=lambda t: 2e-3 if t < 0.7 else 4e-4, seed=8, batch=64, by_epoch=True)


@training(
    "circles",
    {**FOLDERS, "relu": "train:activations/relu{}", "weight": "train:layers.{}.weight", "gradient": "train:grads/layers.{}.weight"},
)
def circles_with_histograms(log: Log) -> None:
    task = tasks.circles()
    fit(log, network(task, 24, 24, seed=9), task, epochs=25, rate=2e-3, seed=9, batch=40, decay=1e-3)


@training("circles", {**PLAIN, "tanh": "act/tanh{}", "layer_norm": "grad_norm/layer{}"})
def circles_tanh(log: Log) -> None:
    task = tasks.circles()
    fit(log, network(task, 16, 16, seed=10, activation="tanh"), task, epochs=30, rate=lambda t: 6e-3 * (1 - 0.9 * t), seed=10, decay=1e-3)


@training("digits", {**HUGGING_FACE, "memory": "system/memory_mb", "throughput": "train/samples_per_second"})
def digits_memory_plateau(log: Log) -> None:
    """Buffers fill during the first tenth of the run and are reused from then on."""
    task = tasks.digits()
    held: list[Array] = []

    def after(step: int) -> None:
        if len(held) < 40:
            held.append(np.ones(100_000))
        log(step, memory=120 + sum(a.nbytes for a in held) / 1e6 + (step % 7) * 0.3)
        time.sleep(0.002)

    fit(log, network(task, 32, seed=11), task, epochs=9, rate=2e-3, seed=11, after=after, decay=1e-3)


@training("iris", LIGHTNING, notes="the first file ends at a checkpoint, the second goes on from it")
def iris_resumed_well(log: Log) -> None:
    task, model, adam = tasks.iris(), None, Adam()
    model = network(task, 12, seed=12)
    fit(log, model, task, epochs=25, rate=2e-3, seed=12, batch=15, optimizer=adam, decay=3e-3)
    log.reopen()
    fit(log, model, task, epochs=25, rate=1e-3, seed=13, batch=15, optimizer=adam, first_step=25 * 7, decay=3e-3)


@training("digits", {"loss": "train/loss", "val_loss": "val/loss", "lr": "train/lr", "grad_norm": "grad_norm"})
def digits_one_cycle(log: Log) -> None:
    task = tasks.digits()
    rate = lambda t: 0.15 * (0.04 + 0.96 * (t / 0.3 if t < 0.3 else (1 - t) / 0.7))  # noqa: E731
    fit(log, network(task, 40, seed=14), task, epochs=10, rate=rate, seed=14, optimizer=SGD(0.8), decay=1e-3, every=2)


@training("digits", {**PLAIN, "weight": "weights/fc{}"}, notes="a network of another task, trained on at a small learning rate")
def digits_fine_tuned(log: Log) -> None:
    task = tasks.digits()
    even = replace(task, y=task.y // 2, y_val=task.y_val // 2)
    model = network(task, 48, seed=15)
    fit(Log(log.directory, {}), model, even, epochs=4, rate=2e-3, seed=15)
    fit(log, model, task, epochs=10, rate=warm_up(2e-3, 0.05), seed=16, first_step=43 * 4, decay=1e-3)


@training("rare", {**PLAIN, "val_loss": "Loss/test", "val_accuracy": "Accuracy/test"})
def rare_class_learned(log: Log) -> None:
    task = tasks.rare(0.25)
    fit(log, network(task, 24, seed=17), task, epochs=24, rate=warm_up(4e-3), seed=17, decay=1e-2)


@training("digits", SHORT, notes="a plateau first: sigmoid units")
def digits_long_plateau(log: Log) -> None:
    task = tasks.digits()
    model = network(task, 32, 32, seed=18, activation="sigmoid", spread=0.8)
    fit(log, model, task, epochs=16, rate=warm_up(8e-3), seed=18, every=2)


@training("wave", {"loss": "Loss/train", "val_loss": "Loss/val", "lr": "lr"}, notes="no noise in the data: the loss converges towards zero")
def wave_without_noise(log: Log) -> None:
    task = tasks.wave(0.0)
    fit(log, network(task, 48, 48, seed=19, activation="tanh"), task, epochs=40, rate=warm_up(4e-3, 0.05), seed=19, batch=60, by_epoch=True)


@training("words", HUGGING_FACE)
def words_step_decay(log: Log) -> None:
    task = tasks.words()
    rate = lambda t: 0.5 if t < 0.5 else 0.1 if t < 0.8 else 0.02  # noqa: E731
    fit(
        log,
        network(task, 32, seed=20, activation="tanh"),
        task,
        epochs=12,
        rate=rate,
        seed=20,
        optimizer=SGD(),
        every=10,
        evaluate_every=100,
    )


@training(
    "digits",
    {"loss": "train/cls_loss", "val_loss": "val/cls_loss", "val_accuracy": "metrics/precision", "lr": "x/lr0"},
    axis="epoch",
)
def digits_label_noise_and_decay(log: Log) -> None:
    task = tasks.digits().mislabelled(0.1)
    fit(log, network(task, 24, seed=21), task, epochs=25, rate=warm_up(3e-3), seed=21, by_epoch=True, decay=2e-2, dropout=0.2)


@training(
    "wine",
    {**PLAIN, "weight": "params/layers.{}.weight"},
    acceptable=("weights_not_updating",),
    notes="a backbone that is frozen on purpose",
)
def wine_frozen_backbone(log: Log) -> None:
    task = tasks.wine()
    model = network(task, 64, seed=22)
    fit(log, model, task, epochs=25, rate=3e-3, seed=22, batch=16, trained=(1,), decay=2e-2)


@training(
    "images",
    {"loss": "train/total_loss", "parts": "train/{}_loss", "val_loss": "val/total_loss", "val_parts": "val/{}_loss"},
    axis="epoch",
)
def images_two_parts(log: Log) -> None:
    """An autoencoder with a penalty on its code, which grows while the total falls."""
    task = tasks.images()
    generator = np.random.default_rng(23)
    encoder, decoder, adams = Network((64, 8), generator), Network((8, 64), generator), (Adam(), Adam())
    for epoch in range(30):
        for role, parts, x in (("loss", "parts", task.x), ("val_loss", "val_parts", task.x_val)):
            code = encoder(x)
            recon, _ = squared_error(decoder(code), x)
            size = 1e-3 * float((code**2).mean())
            log(epoch, **{role: recon + size})
            log.of_layer(epoch, parts, "recon", recon)
            log.of_layer(epoch, parts, "code", size)
        for rows in np.array_split(generator.permutation(len(task.x)), 30):
            code = encoder(task.x[rows])
            _, error = squared_error(decoder(code), task.x[rows])
            decoder_gradients = decoder.gradients(error)
            back = error @ decoder.kernels[0].T + 2e-3 * code / code.size
            adams[0].step(encoder.parameters, encoder.gradients(back), 2e-3)
            adams[1].step(decoder.parameters, decoder_gradients, 2e-3)


@training("wave", {"loss": "train/nll", "val_loss": "val/nll"}, notes="a likelihood whose logarithm crosses zero")
def wave_likelihood(log: Log) -> None:
    def likelihood(output: Array, target: Array) -> tuple[float, Array]:
        """Of a Gaussian whose mean and logarithmic deviation the network gives."""
        mean, scale = output[:, :1], np.clip(output[:, 1:], -3, 3)
        z = (target - mean) / np.exp(scale)
        error = np.concatenate([-z / np.exp(scale), 1 - z**2], axis=1) / len(target)
        return float((scale + 0.5 * z**2).mean()), error

    task = replace(tasks.wave(0.2), loss=likelihood)
    model = Network((1, 32, 32, 2), np.random.default_rng(24), "tanh")
    fit(log, model, task, epochs=40, rate=warm_up(6e-3), seed=24, batch=40, evaluate_every=30, every=2)


@training("iris", {**PLAIN, "sigmoid": "activations/sigmoid{}"}, notes="add_hparams makes a run of its own")
def iris_hyperparameters(log: Log) -> None:
    task = tasks.iris()
    fit(log, network(task, 12, seed=25, activation="sigmoid"), task, epochs=40, rate=warm_up(2e-2), seed=25, batch=15, decay=3e-3)
    log.writer("").add_hparams({"rate": 2e-2, "batch": 15}, {"hparam/accuracy": 0.95})


# A loss that is no number.


@training("wine", PLAIN, labels=("nan_loss",), cause="a NaN in one row of the data")
def wine_nan_row(log: Log) -> None:
    task = tasks.wine()
    x = task.x.copy()
    x[77, 4] = np.nan
    fit(log, network(task, 16, seed=30), replace(task, x=x), epochs=12, rate=3e-3, seed=30, batch=8)


@training("digits", HUGGING_FACE, labels=("nan_loss",), cause="logarithms without a floor", acceptable=("oscillating_loss",))
def digits_log_of_zero(log: Log) -> None:
    task = replace(tasks.digits(), loss=careless_cross_entropy)
    task = replace(task, x=task.x * 16, x_val=task.x_val * 16)
    fit(log, network(task, 64, seed=31), task, epochs=9, rate=0.02, seed=31, optimizer=SGD(0.9))


@training("diabetes", {"loss": "loss", "val_loss": "val_loss"}, labels=("nan_loss",), cause="learning rate far too high")
def diabetes_overflow(log: Log) -> None:
    task = tasks.diabetes()
    fit(log, network(task, 24, seed=32), task, epochs=12, rate=1.0, seed=32, batch=30, optimizer=SGD(0.9))


# Divergence and spikes.


@training("digits", HUGGING_FACE, labels=("loss_divergence",), cause="the schedule multiplies where it should divide")
def digits_wrong_milestone(log: Log) -> None:
    task = tasks.digits()
    rate = lambda t: 2e-3 if t < 0.6 else 0.3  # noqa: E731
    fit(log, network(task, 32, 32, seed=33), task, epochs=12, rate=rate, seed=33, every=2, evaluate_every=40)


@training(
    "plane",
    {"loss": "train_loss", "val_loss": "val_loss", "grad_norm": "grad_norm"},
    labels=("loss_divergence",),
    cause="a step just beyond the stability limit",
)
def plane_beyond_the_limit(log: Log) -> None:
    task = tasks.plane()
    curvature = np.linalg.eigvalsh(2 * task.x.T @ task.x / len(task.x)).max()
    fit(log, network(task, seed=34), task, epochs=60, rate=2.06 / curvature, seed=34, batch=400, optimizer=SGD())


@training(
    "wave",
    {"loss": "Loss/train", "val_loss": "Loss/val"},
    labels=("loss_divergence",),
    cause="weight decay with the wrong sign",
    axis="epoch",
)
def wave_weights_grow(log: Log) -> None:
    task = tasks.wave()
    model = network(task, 24, seed=56, activation="tanh")
    fit(log, model, task, epochs=90, rate=0.01, seed=56, batch=50, by_epoch=True, optimizer=SGD(), decay=-0.2)


def bad_batches(at: set[int], factor: float):
    return lambda step, batch: (batch[0] * factor, batch[1]) if step in at else batch


@training("digits", HUGGING_FACE, labels=("loss_spike",), cause="three batches with unscaled inputs", onset={"loss_spike": 201})
def digits_unscaled_batches(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 48, seed=36), task, epochs=12, rate=1e-3, seed=36, before=bad_batches({201, 310, 388}, 16), decay=1e-3)


@training("diabetes", LIGHTNING, labels=("loss_spike",), cause="targets of one batch in other units", onset={"loss_spike": 150})
def diabetes_other_units(log: Log) -> None:
    task = tasks.diabetes()
    before = lambda step, batch: (batch[0], batch[1] * 8) if step == 150 else batch  # noqa: E731
    fit(log, network(task, 12, seed=37, activation="tanh"), task, epochs=18, rate=2e-3, seed=37, batch=16, before=before, decay=1e-2)


@training(
    "words",
    {"loss": "loss"},
    labels=("loss_spike",),
    cause="one huge step",
    acceptable=("exploding_gradient",),
    onset={"loss_spike": (240, 243)},
)
def words_one_huge_step(log: Log) -> None:
    task, step = tasks.words(), iter(range(10**6))
    rate = lambda t: 20.0 if next(step) == 240 else 0.3  # noqa: E731
    fit(log, network(task, 24, seed=31, activation="tanh"), task, epochs=8, rate=rate, seed=31, optimizer=SGD())


# Nothing is learned, or too little.


@training("digits", PLAIN, labels=("loss_not_decreasing",), cause="learning rate of 1e-8", chance=0.1)
def digits_tiny_rate(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 32, seed=40), task, epochs=8, rate=1e-8, seed=40)


@training("wine", FOLDERS, labels=("loss_not_decreasing",), cause="labels of each batch are shuffled", axis="epoch", chance=1 / 3)
def wine_shuffled_labels(log: Log) -> None:
    task, generator = tasks.wine(), np.random.default_rng(41)
    small = network(task, 8, seed=41, spread=0.3)
    before = lambda step, batch: (batch[0], generator.permutation(batch[1]))  # noqa: E731
    fit(log, small, task, epochs=30, rate=3e-4, seed=41, by_epoch=True, before=before)


@training(
    "words",
    {"loss": "train/loss", "val_loss": "eval/loss"},
    labels=("loss_not_decreasing",),
    cause="the optimizer was given no parameters",
)
def words_empty_optimizer(log: Log) -> None:
    task = tasks.words()
    fit(log, network(task, 32, seed=42, spread=0.5), task, epochs=5, rate=1e-3, seed=42, trained=(), every=2)


@training("circles", SHORT, labels=("underfitting",), cause="a linear model for a ring", twin="circles-with-histograms", chance=0.5)
def circles_linear(log: Log) -> None:
    task = tasks.circles()
    fit(log, network(task, seed=43, spread=6.0), task, epochs=25, rate=5e-2, seed=43, batch=40)


@training("digits", LIGHTNING, labels=("underfitting",), cause="one hidden unit", twin="digits-memory-plateau")
def digits_one_unit(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 1, seed=47, activation="tanh"), task, epochs=20, rate=1e-2, seed=44)


@training(
    "digits",
    HUGGING_FACE,
    labels=("underfitting",),
    cause="learning rate too low: still falling at the end",
    twin="digits-memory-plateau",
)
def digits_low_rate(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 32, seed=45), task, epochs=10, rate=8e-5, seed=45, every=4)


@training(
    "images",
    {"loss": "train/loss", "val_loss": "val/loss"},
    labels=("underfitting",),
    cause="too few epochs",
    twin="images-autoencoder",
)
def images_too_short(log: Log) -> None:
    task = tasks.images()
    fit(log, network(task, 48, 12, 48, seed=8), task, epochs=4, rate=2e-5, seed=46, batch=16, evaluate_every=40)


# Too much of it.


@training(
    "diabetes",
    {"loss": "Loss/train", "val_loss": "Loss/val"},
    labels=("overfitting",),
    cause="120 patients, a large network",
    axis="epoch",
)
def diabetes_by_heart(log: Log) -> None:
    task = tasks.diabetes().only(120)
    fit(log, network(task, 128, 64, seed=56), task, epochs=80, rate=1.5e-3, seed=56, batch=20, by_epoch=True)


@training("digits", HUGGING_FACE, labels=("overfitting",), cause="a third of the labels are wrong, no regularization")
def digits_wrong_labels(log: Log) -> None:
    task = tasks.digits().only(500).mislabelled(0.35)
    fit(log, network(task, 256, seed=56), task, epochs=60, rate=8e-3, seed=56, every=4, evaluate_every=32)


@training("words", {"loss": "train_loss", "val_loss": "valid_loss"}, labels=("overfitting",), cause="200 symbols of text")
def words_short_text(log: Log) -> None:
    task = tasks.words().only(300)
    fit(log, network(task, 96, seed=56), task, epochs=60, rate=5e-3, seed=56, batch=20)


@training(
    "plane",
    FOLDERS,
    labels=("overtraining",),
    cause="runs on for ten times what it needs",
    axis="epoch",
    notes="an accuracy is logged that a regression does not have",
)
def plane_runs_on(log: Log) -> None:
    task = tasks.plane(8, 1.0)
    fit(log, network(task, seed=53), task, epochs=150, rate=0.05, seed=53, batch=100, by_epoch=True, optimizer=SGD())


@training("cancer", LIGHTNING, labels=("overtraining",), cause="runs on after convergence, held by weight decay", axis="epoch")
def cancer_runs_on(log: Log) -> None:
    task = tasks.cancer()
    fit(log, network(task, 16, seed=56), task, epochs=70, rate=1e-2, seed=56, decay=3e-2, by_epoch=True)


# Gradients and steps.


@training(
    "circles",
    {"loss": "train/loss", "val_loss": "val/loss", "lr": "lr"},
    labels=("oscillating_loss",),
    cause="learning rate too high",
    axis="epoch",
)
def circles_too_fast(log: Log) -> None:
    task = tasks.circles()
    model = network(task, 24, 24, seed=56, activation="tanh")
    fit(log, model, task, epochs=40, rate=0.8, seed=56, by_epoch=True)


@training("digits", PLAIN, labels=("oscillating_loss",), cause="learning rate too high", axis="epoch")
def digits_too_fast(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 32, seed=57, activation="tanh"), task, epochs=40, rate=0.1, seed=57, by_epoch=True)


@training("digits", HUGGING_FACE, labels=("oscillating_loss",), cause="learning rate too high")
def digits_too_fast_by_step(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 24, seed=58, activation="tanh"), task, epochs=16, rate=0.15, seed=58, every=2)


@training(
    "diabetes",
    {"loss": "loss", "val_loss": "val_loss", "grad_norm": "grad_norm"},
    labels=("exploding_gradient", "nan_loss"),
    cause="targets not scaled, large weights",
)
def diabetes_unscaled_targets(log: Log) -> None:
    task = tasks.diabetes()
    task = replace(task, y=task.y * 100, y_val=task.y_val * 100)
    fit(log, network(task, 32, seed=59, spread=2.0), task, epochs=25, rate=5e-3, seed=59, batch=32, optimizer=SGD(0.9))


@training(
    "wine",
    {**PLAIN, "grad_norm": "grad/global_norm"},
    labels=("exploding_gradient",),
    acceptable=("nan_loss",),
    cause="the learning rate is set a hundredfold in mid-run",
)
def wine_rate_bug(log: Log) -> None:
    task = tasks.wine()
    fit(
        log,
        network(task, 32, 32, seed=60),
        task,
        epochs=30,
        rate=lambda t: 1e-2 if t < 0.5 else 1.0,
        seed=60,
        batch=16,
        optimizer=SGD(0.9),
    )


@training(
    "digits",
    {**PLAIN, "gradient": "gradients/layer{}.weight"},
    labels=("vanishing_gradient",),
    cause="seven sigmoid layers",
    chance=0.1,
)
def digits_deep_sigmoid(log: Log) -> None:
    task = tasks.digits()
    model = network(task, *[24] * 7, seed=61, activation="sigmoid")
    fit(log, model, task, epochs=10, rate=2e-3, seed=61, optimizer=SGD(0.9))


@training(
    "wine",
    {"loss": "train/loss", "val_loss": "val/loss", "layer_norm": "grad_norm/fc{}"},
    labels=("vanishing_gradient",),
    cause="initial weights far too small in a deep network",
)
def wine_small_weights(log: Log) -> None:
    task = tasks.wine()
    fit(
        log,
        network(task, *[16] * 6, seed=62, activation="sigmoid", spread=0.4),
        task,
        epochs=25,
        rate=1e-2,
        seed=62,
        batch=16,
        optimizer=SGD(0.9),
    )


# Layers.


@training(
    "circles",
    {**FOLDERS, "relu": "train:activations/fc{}"},
    labels=("dead_relu",),
    cause="biases far below zero",
    chance=0.5,
)
def circles_dead_units(log: Log) -> None:
    task = tasks.circles()
    fit(log, network(task, 24, 24, seed=63, bias=-6.0), task, epochs=20, rate=1e-3, seed=63)


@training(
    "digits",
    {"loss": "train/loss", "val_loss": "eval/loss", "val_accuracy": "eval/accuracy", "relu": "act/relu{}"},
    labels=("dead_relu",),
    cause="one huge step kills the units",
    chance=0.1,
)
def digits_killed_by_a_step(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 48, 32, seed=64), task, epochs=10, rate=lambda t: 1.5 if 0.2 < t < 0.22 else 1e-3, seed=64)


@training("wine", {**PLAIN, "tanh": "act/tanh{}"}, labels=("saturated_activation",), cause="inputs not scaled")
def wine_unscaled(log: Log) -> None:
    task = tasks.wine()
    task = replace(task, x=task.x * 60, x_val=task.x_val * 60)
    fit(log, network(task, 24, seed=65, activation="tanh"), task, epochs=25, rate=1e-3, seed=65, batch=16)


@training("cancer", {**SHORT, "sigmoid": "hidden/sigmoid{}"}, labels=("saturated_activation",), cause="initial weights far too large")
def cancer_wide_sigmoid(log: Log) -> None:
    task = tasks.cancer()
    fit(log, network(task, 24, seed=66, activation="sigmoid", spread=25), task, epochs=20, rate=1e-3, seed=66)


@training(
    "digits",
    {**PLAIN, "weight": "weights/fc{}"},
    labels=("poor_initialization",),
    acceptable=("underfitting",),
    cause="all weights of a layer zero",
    chance=0.1,
)
def digits_zero_weights(log: Log) -> None:
    task = tasks.digits()
    model = network(task, 32, seed=67)
    model.kernels[0][:] = 0.0
    model.kernels[1][:] = 0.0
    for layer, kernel in enumerate(model.kernels):
        log.of_layer(0, "weight", layer, kernel)
    fit(log, model, task, epochs=8, rate=1e-3, seed=67)


@training("wine", {**LIGHTNING, "weight": "params/layers.{}.weight"}, labels=("poor_initialization",), cause="weights far too large")
def wine_wide_weights(log: Log) -> None:
    task = tasks.wine()
    model = network(task, 32, 32, seed=68, spread=30)
    for layer, kernel in enumerate(model.kernels):
        log.of_layer(0, "weight", layer, kernel)
    fit(log, model, task, epochs=20, rate=1e-3, seed=68, batch=16)


@training("digits", {**FOLDERS, "weight": "train:fc{}/weight"}, labels=("weights_not_updating",), cause="a layer left out of the optimizer")
def digits_forgotten_layer(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 48, 32, seed=69), task, epochs=10, rate=1e-3, seed=69, trained=(0, 2), decay=1e-3)


@training(
    "wave",
    {"loss": "loss", "val_loss": "val_loss", "weight": "layers.{}.weight"},
    labels=("weights_not_updating",),
    cause="weights detached",
)
def wave_detached(log: Log) -> None:
    task = tasks.wave()
    fit(log, network(task, 32, 32, seed=70, activation="tanh"), task, epochs=20, rate=2e-3, seed=70, batch=30, trained=(1, 2))


# Schedules, data, process.


@training("words", HUGGING_FACE, labels=("lr_schedule",), cause="the schedule counts epochs as steps: zero after a quarter of the run")
def words_schedule_too_short(log: Log) -> None:
    task = tasks.words()
    fit(log, network(task, 32, seed=71), task, epochs=8, rate=lambda t: 3e-3 * max(0.0, 1 - 4 * t), seed=71, every=5, evaluate_every=60)


@training("digits", PLAIN, labels=("lr_schedule",), cause="the warm-up is longer than the run", acceptable=("underfitting",))
def digits_endless_warm_up(log: Log) -> None:
    task = tasks.digits()
    fit(log, network(task, 32, seed=72), task, epochs=10, rate=lambda t: 2e-3 * t, seed=72, every=3, decay=1e-3)


@training(
    "images",
    {"loss": "train/loss", "val_loss": "val/loss", "lr": "train/lr"},
    labels=("lr_schedule",),
    cause="×12 in mid-run",
    axis="epoch",
)
def images_rate_jumps(log: Log) -> None:
    task = tasks.images()
    rate = lambda t: 3e-4 if t < 0.5 else 3.6e-3  # noqa: E731
    fit(log, network(task, 48, 16, 48, seed=73), task, epochs=24, rate=rate, seed=73, batch=64, by_epoch=True)


@training("digits", LIGHTNING, labels=("val_suspicious",), cause="validation holds the easy digits only", axis="epoch")
def digits_easy_validation(log: Log) -> None:
    task = tasks.digits().mislabelled(0.25, seed=3)
    fit(log, network(task, 32, seed=74), task, epochs=18, rate=8e-4, seed=74, by_epoch=True, decay=5e-3, dropout=0.2)


@training(
    "plane",
    {"loss": "Loss/train", "val_loss": "Loss/val"},
    labels=("val_suspicious",),
    cause="validation on the training data",
    axis="epoch",
)
def plane_validated_on_training(log: Log) -> None:
    task = tasks.plane()
    task = replace(task, x_val=task.x, y_val=task.y)
    model, sgd = network(task, seed=75), SGD()
    for epoch in range(40):
        output = model(task.x)
        loss, _ = squared_error(output, task.y)
        log(epoch, loss=loss, val_loss=squared_error(model(task.x_val), task.y_val)[0])
        for rows in np.array_split(np.random.default_rng(epoch).permutation(len(task.x)), 4):
            _, error = squared_error(model(task.x[rows]), task.y[rows])
            sgd.step(model.parameters, model.gradients(error), 2e-3)


@training(
    "rare",
    {**PLAIN, "val_loss": "Loss/test", "val_accuracy": "Accuracy/test"},
    labels=("class_collapse",),
    cause="imbalanced, one input: the majority is predicted",
)
def rare_class_never_predicted(log: Log) -> None:
    task = tasks.rare(0.08)
    noise = np.random.default_rng(76)
    task = replace(task, x=noise.normal(0, 1, (len(task.x), 3)), x_val=noise.normal(0, 1, (len(task.x_val), 3)))
    fit(log, network(task, 4, seed=76), task, epochs=25, rate=1e-3, seed=76, decay=1e-2)


@training(
    "wine",
    FOLDERS,
    labels=("class_collapse",),
    cause="all units dead from the start",
    axis="epoch",
    chance=1 / 3,
    acceptable=("loss_not_decreasing",),
)
def wine_one_class(log: Log) -> None:
    task = tasks.wine()
    fit(log, network(task, 16, 16, seed=77, bias=-8.0), task, epochs=30, rate=2e-3, seed=77, batch=16, by_epoch=True)


@training(
    "digits",
    {**HUGGING_FACE, "throughput": "train/samples_per_second"},
    labels=("throughput_degradation",),
    cause="each batch takes longer to load",
    onset={"throughput_degradation": 201},
)
def digits_slow_loader(log: Log) -> None:
    task = tasks.digits()

    def before(step: int, batch):
        time.sleep(0.003 + (0.02 if step > 200 else 0.0))
        return batch

    fit(log, network(task, 32, seed=78), task, epochs=8, rate=1e-3, seed=78, before=before, decay=1e-3)


@training(
    "wave",
    {"loss": "loss", "val_loss": "val_loss", "step_time": "time/step_time_s"},
    labels=("throughput_degradation",),
    cause="a buffer that is sorted anew at every step",
)
def wave_growing_buffer(log: Log) -> None:
    task = tasks.wave()
    seen: list[float] = [1.0]

    def after(step: int) -> None:
        seen.extend(np.random.default_rng(step).random(2500).tolist())
        sorted(seen)

    fit(log, network(task, 24, seed=79, activation="tanh"), task, epochs=10, rate=3e-3, seed=79, batch=40, after=after)


@training(
    "words",
    {"loss": "train_loss", "val_loss": "val_loss"},
    labels=("throughput_degradation",),
    cause="waits for data",
    notes="wall_time only",
    onset={"throughput_degradation": 150},
)
def words_waits(log: Log) -> None:
    task = tasks.words()
    fit(
        log,
        network(task, 32, seed=80),
        task,
        epochs=4,
        rate=lambda t: 2e-2 * (1 - t),
        seed=80,
        after=lambda step: time.sleep(0.004 if step < 150 else 0.02),
    )


@training("digits", {**LIGHTNING, "memory": "memory/rss_mb"}, labels=("memory_growth",), cause="every batch's activations are kept")
def digits_keeps_everything(log: Log) -> None:
    task, process = tasks.digits(), psutil.Process()
    kept: list[Array] = []

    def after(step: int) -> None:
        kept.append(np.ones(170_000) * step)
        log(step, memory=process.memory_info().rss / 2**20)

    fit(log, network(task, 32, seed=81), task, epochs=7, rate=2e-3, seed=81, after=after, decay=1e-3)


@training(
    "wave",
    {"loss": "loss", "val_loss": "val_loss", "memory": "gpu_mem_allocated_mb"},
    labels=("memory_growth",),
    cause="a cache without a bound",
)
def wave_unbounded_cache(log: Log) -> None:
    task, cache = tasks.wave(), {}

    def before(step: int, batch):
        cache[batch[0].tobytes()] = np.tile(batch[0], (1, 40))
        log(step, memory=3.0 + sum(a.nbytes for a in cache.values()) / 2**20)
        return batch

    fit(log, network(task, 24, seed=82, activation="tanh"), task, epochs=12, rate=warm_up(3e-3), seed=82, batch=40, before=before)


@training("iris", PLAIN, labels=("restart_artefact",), cause="started anew into the same directory")
def iris_started_twice(log: Log) -> None:
    task = tasks.iris()
    fit(log, network(task, 12, seed=83), task, epochs=40, rate=2e-3, seed=83, batch=15, stop=150, decay=3e-3)
    log.reopen()
    fit(log, network(task, 12, seed=84), task, epochs=40, rate=2e-3, seed=84, batch=15, decay=3e-3)


@training("digits", HUGGING_FACE, labels=("restart_artefact",), cause="resumed from an older checkpoint")
def digits_older_checkpoint(log: Log) -> None:
    task = tasks.digits()
    model, adam = network(task, 32, seed=85), Adam()
    fit(log, model, task, epochs=6, rate=1e-3, seed=85, optimizer=adam, decay=1e-3)
    saved = [p.copy() for p in model.parameters]
    fit(log, model, task, epochs=2, rate=1e-3, seed=86, optimizer=adam, first_step=6 * 43, decay=1e-3)
    for parameter, old in zip(model.parameters, saved, strict=True):
        parameter[:] = old
    log.reopen()
    fit(log, model, task, epochs=4, rate=1e-3, seed=87, optimizer=adam, first_step=6 * 43, decay=1e-3)
