"""The trainings of the demo: real Keras models on scikit-learn's bundled data, each healthy or with one real fault."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import keras
import numpy as np
import psutil
import tensorflow as tf
from keras import layers
from scipy import ndimage
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from tensorboard.plugins.hparams import api as hp

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
IMAGE = (96, 96, 1)


def healthy(logs: Path) -> None:
    """A digit classifier with dropout, stopped while it still improves a little."""
    x, x_val, y, y_val = digits()
    model = classifier(64, layers.Dense(64, "relu"), layers.Dropout(0.2), layers.Dense(10, "softmax"), rate=1e-3)
    model.fit(x, y, batch_size=32, epochs=12, validation_data=(x_val, y_val), callbacks=[log(logs, histogram_freq=1)], verbose=0)


def healthy_noisy(logs: Path) -> None:
    """A regression whose batches are small, so that the batch loss jumps about while the model learns."""
    x, x_val, y, y_val = diabetes(validation=0.25)
    model = regressor(x.shape[1], layers.Dense(16, "tanh"), layers.Dense(1), optimizer=keras.optimizers.SGD(3e-3))
    model.fit(x, y, batch_size=8, epochs=14, validation_data=(x_val, y_val), callbacks=[log(logs, update_freq=1)], verbose=0)


def diverging(logs: Path) -> None:
    """A schedule that should lower the learning rate after eight epochs, and raises it a thousandfold."""
    x, x_val, y, y_val = digits()
    model = classifier(64, layers.Dense(64, "relu"), layers.Dense(10, "softmax"), rate=1e-3)
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 1e-3 if epoch < 8 else 1.0)
    model.fit(x, y, batch_size=32, epochs=14, validation_data=(x_val, y_val), callbacks=[schedule, log(logs)], verbose=0)


def nan(logs: Path) -> None:
    """A cross-entropy without a floor under the logarithm: NaN as soon as the model is sure of one answer."""
    x, x_val, y, y_val = breast_cancer()

    def cross_entropy(truth: tf.Tensor, predicted: tf.Tensor) -> tf.Tensor:
        return -tf.reduce_mean(truth * tf.math.log(predicted) + (1 - truth) * tf.math.log(1 - predicted))

    model = keras.Sequential([keras.Input((x.shape[1],)), layers.Dense(32, "relu"), layers.Dense(1, "sigmoid")])
    model.compile(keras.optimizers.Adam(1.2e-2), cross_entropy)
    model.fit(x, y, batch_size=32, epochs=14, validation_data=(x_val, y_val), callbacks=[log(logs, histogram_freq=1)], verbose=0)


def overfitting(logs: Path) -> None:
    """A large network on 60 patients: it learns them by heart."""
    x, x_val, y, y_val = diabetes(validation=0.5)
    x, y = x[:60], y[:60]
    stack = (layers.Dense(256, "relu"), layers.Dense(256, "relu"), layers.Dense(1))
    model = regressor(x.shape[1], *stack, optimizer=keras.optimizers.Adam(1e-3))
    model.fit(x, y, batch_size=20, epochs=60, validation_data=(x_val, y_val), callbacks=[log(logs, histogram_freq=1)], verbose=0)


def input_bound(logs: Path) -> None:
    """Images turned in Python, one at a time, while the model waits: no parallel calls, no prefetch."""

    def turned(image: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        large = ndimage.zoom(image.reshape(8, 8), IMAGE[0] // 8, order=1, mode="nearest", grid_mode=True)
        return ndimage.rotate(large, degrees, reshape=False, order=1)[..., None]

    def enlarge(image: tf.Tensor, label: tf.Tensor, degrees: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.ensure_shape(tf.numpy_function(turned, [image, degrees], tf.float32), IMAGE), label

    fit_to_images(logs, lambda images: images.map(enlarge).batch(32))


def input_repaired(logs: Path) -> None:
    """The same images, turned by TensorFlow's operations: in parallel, cached, and prefetched while the model works."""

    def enlarge(image: tf.Tensor, label: tf.Tensor, degrees: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        large = tf.image.resize(tf.reshape(image, (8, 8, 1)), IMAGE[:2])
        cos, sin, middle = tf.cos(degrees * np.pi / 180), tf.sin(degrees * np.pi / 180), (IMAGE[0] - 1) / 2
        rotation = tf.stack([cos, -sin, middle * (1 - cos + sin), sin, cos, middle * (1 - cos - sin), 0.0, 0.0])
        return keras.ops.image.affine_transform(large, rotation), label

    fit_to_images(logs, lambda images: images.map(enlarge, tf.data.AUTOTUNE).cache().batch(32).prefetch(tf.data.AUTOTUNE))


def eager(logs: Path) -> None:
    """A convolutional network that was debugged with run_eagerly, and still runs op by op."""
    x, x_val, y, y_val = digits()
    stack = [
        layers.Reshape((8, 8, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(32, "relu"),
        layers.Dense(10, "softmax"),
    ]
    model = keras.Sequential([keras.Input((64,)), *stack])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], run_eagerly=True)
    capture = log(logs, profile_batch=(25, 35))
    model.fit(x, y, batch_size=32, epochs=3, validation_data=(x_val, y_val), callbacks=[capture], verbose=0)


def retracing(logs: Path) -> None:
    """A loop of its own whose step gets the learning rate as a number of Python: a new graph whenever it changes."""
    x, x_val, y, y_val = digits()
    model = keras.Sequential([keras.Input((64,)), layers.Dense(64, "relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images: tf.Tensor, labels: tf.Tensor, rate: float) -> tf.Tensor:
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        for weight, gradient in zip(model.trainable_weights, tape.gradient(value, model.trainable_weights), strict=True):
            weight.assign_sub(rate * gradient)
        return value

    train, validation = (tf.summary.create_file_writer(str(logs / run)) for run in ("train", "validation"))
    batches = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=1).batch(64).prefetch(tf.data.AUTOTUNE)
    step = 0
    for _ in range(4):
        for images, labels in batches:
            if step == 30:
                tf.profiler.experimental.start(str(logs / "train"))
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                value = train_step(images, labels, 0.5 * 0.99**step)
            if step == 40:
                tf.profiler.experimental.stop()
            with train.as_default():
                tf.summary.scalar("loss", value, step)
            step += 1
        with validation.as_default():
            tf.summary.scalar("loss", loss(y_val, model(x_val)), step)
    train.close()
    validation.close()


def dead_relu(logs: Path) -> None:
    """Pixels that were not scaled, and a learning rate that is too high for them: the first steps kill almost all units."""
    x, x_val, y, y_val = digits()
    x, x_val = 16 * x, 16 * x_val
    model = classifier(64, layers.Dense(64, "relu"), layers.Dense(32, "relu"), layers.Dense(10, "softmax"), rate=0.1)
    callbacks = [LogActivations(logs / "train", x[:200]), log(logs, histogram_freq=1)]
    model.fit(x, y, batch_size=32, epochs=10, validation_data=(x_val, y_val), callbacks=callbacks, verbose=0)


def trial(logs: Path, rate: float, seed: int) -> None:
    """One of the jobs of a small search for the learning rate, each run with two seeds."""
    x, x_val, y, y_val = breast_cancer()
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input((x.shape[1],)), layers.Dense(16, "relu"), layers.Dense(1, "sigmoid")])
    model.compile(keras.optimizers.SGD(rate), "binary_crossentropy")
    with tf.summary.create_file_writer(str(logs / "train"), filename_suffix=".hparams").as_default():
        hp.hparams({"learning_rate": rate, "seed": seed})
    model.fit(x, y, batch_size=32, epochs=10, validation_data=(x_val, y_val), callbacks=[log(logs)], verbose=0)


def memory_spike(logs: Path) -> None:
    """One step compares every digit with every other at once: 1.7 GB that no other step needs."""
    x, x_val, y, y_val = digits()
    model = classifier(64, layers.Dense(64, "relu"), layers.Dropout(0.2), layers.Dense(10, "softmax"), rate=1e-3)
    memory = LogMemory(logs / "train", np.concatenate([x, x_val]), spike_at=250)
    model.fit(x, y, batch_size=32, epochs=10, validation_data=(x_val, y_val), callbacks=[memory, log(logs)], verbose=0)


def no_validation(logs: Path) -> None:
    """A wine classifier that is never evaluated on data it has not seen."""
    x, y = datasets.load_wine(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    model = classifier(x.shape[1], layers.Dense(32, "relu"), layers.Dense(3, "softmax"), rate=1e-3)
    model.fit(x, y, batch_size=16, epochs=14, callbacks=[log(logs)], verbose=0)


# The memory job comes first: its spike stands out from a process that has not grown yet.
JOBS: dict[str, Callable[[Path], None]] = {
    "memory-spike": memory_spike,
    **{f"search/lr={rate},seed={seed}": partial(trial, rate=rate, seed=seed) for rate in (0.01, 0.03, 0.1) for seed in (1, 2)},
    "healthy": healthy,
    "healthy-noisy": healthy_noisy,
    "diverging": diverging,
    "nan": nan,
    "overfitting": overfitting,
    "input-bound": input_bound,
    "input-repaired": input_repaired,
    "eager": eager,
    "retracing": retracing,
    "dead-relu": dead_relu,
    "no-validation": no_validation,
}


class LogMemory(keras.callbacks.Callback):
    """Logs the resident memory of this process at every step, and takes a lot of it at one."""

    def __init__(self, directory: Path, samples: np.ndarray, *, spike_at: int) -> None:
        super().__init__()
        self._writer = tf.summary.create_file_writer(str(directory), filename_suffix=".memory")
        self._process = psutil.Process()
        self._samples = samples.astype(np.float64)
        self._spike_at = spike_at
        self._step = 0

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        differences = self._samples[:, None] - self._samples[None] if self._step == self._spike_at else None
        with self._writer.as_default():
            tf.summary.scalar("memory/rss_bytes", self._process.memory_info().rss, step=self._step)
        del differences
        self._step += 1

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self._writer.close()


class LogActivations(keras.callbacks.Callback):
    """Logs the histogram of what each ReLU layer answers to the same samples before every epoch."""

    def __init__(self, directory: Path, samples: np.ndarray) -> None:
        super().__init__()
        self._writer = tf.summary.create_file_writer(str(directory), filename_suffix=".activations")
        self._samples = samples

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        values = self._samples
        with self._writer.as_default():
            for layer in self.model.layers[:-1]:
                values = layer(values)
                tf.summary.histogram(f"{self.model.name}/{layer.name}/relu", values, step=epoch)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self._writer.close()


def fit_to_images(logs: Path, batches: Callable[[tf.data.Dataset], tf.data.Dataset]) -> None:
    """A small convolutional network on what `batches` makes of digits, labels and angles; the second epoch is captured."""
    x, x_val, y, y_val = digits()
    angles = np.random.default_rng(0).uniform(-10, 10, len(x)).astype(np.float32)
    training, validation = (
        batches(tf.data.Dataset.from_tensor_slices((images, labels, angles[: len(labels)]))) for images, labels in ((x, y), (x_val, y_val))
    )
    model = keras.Sequential(
        [keras.Input(IMAGE), layers.Conv2D(8, 3, strides=4, activation="relu"), layers.Flatten(), layers.Dense(10, "softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(training, shuffle=False, epochs=3, validation_data=validation, callbacks=[log(logs, profile_batch=(50, 65))], verbose=0)


def log(logs: Path, *, profile_batch: int | tuple[int, int] = 0, **options: int) -> keras.callbacks.TensorBoard:
    """The callback that everyone uses, without the graph."""
    return keras.callbacks.TensorBoard(logs, write_graph=False, profile_batch=profile_batch, **options)


def classifier(inputs: int, *stack: layers.Layer, rate: float) -> keras.Model:
    model = keras.Sequential([keras.Input((inputs,)), *stack])
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def regressor(inputs: int, *stack: layers.Layer, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    model = keras.Sequential([keras.Input((inputs,)), *stack])
    model.compile(optimizer, "mse")
    return model


def digits() -> Split:
    """1,347 training and 450 validation images of 8 × 8 pixels in one row."""
    x, y = datasets.load_digits(return_X_y=True)
    return train_test_split((x / 16.0).astype(np.float32), y, test_size=450, random_state=0, stratify=y)


def breast_cancer() -> Split:
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x).astype(np.float32)
    return train_test_split(x, y.reshape(-1, 1).astype(np.float32), test_size=0.3, random_state=0)


def diabetes(*, validation: float) -> Split:
    """Ten standardized features; the progression of the disease in hundreds."""
    x, y = datasets.load_diabetes(return_X_y=True)
    x = StandardScaler().fit_transform(x).astype(np.float32)
    return train_test_split(x, (y / 100.0).astype(np.float32), test_size=validation, random_state=0)
