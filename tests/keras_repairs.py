"""Trains three jobs of the demo again, each with the fix that the Advisor names first: python tests/keras_repairs.py LOGDIR"""

import os
import sys
from pathlib import Path

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1")
sys.path.insert(0, str(Path(__file__).parent.parent / "demo"))

import jobs
import keras
import tensorflow as tf
from keras import layers


def lower_learning_rate(logs: Path, rate: float) -> None:
    """`diverging`, whose schedule now rises to `rate`."""
    x, x_val, y, y_val = jobs.digits()
    model = jobs.classifier(64, layers.Dense(64, "relu"), layers.Dense(10, "softmax"), rate=1e-3)
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch, _: 1e-3 if epoch < 8 else rate)
    model.fit(x, y, batch_size=32, epochs=14, validation_data=(x_val, y_val), callbacks=[schedule, jobs.log(logs)], verbose=0)


def early_stopping(logs: Path) -> None:
    """`overfitting`, stopped after its best epoch."""
    x, x_val, y, y_val = jobs.diabetes(validation=0.5)
    x, y = x[:60], y[:60]
    stack = (layers.Dense(256, "relu"), layers.Dense(256, "relu"), layers.Dense(1))
    model = jobs.regressor(x.shape[1], *stack, optimizer=keras.optimizers.Adam(1e-3))
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=5, restore_best_weights=True)
    callbacks = [stop, jobs.log(logs, histogram_freq=1)]
    model.fit(x, y, batch_size=20, epochs=60, validation_data=(x_val, y_val), callbacks=callbacks, verbose=0)


def tensorflow_ops(logs: Path) -> None:
    """`input-bound`, with TensorFlow's operations instead of Python functions, in parallel, cached and prefetched."""
    x, x_val, y, y_val = jobs.digits()
    shape = (64, 64, 1)

    def enlarge(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.image.resize(tf.reshape(image, (8, 8, 1)), shape[:2], "bicubic"), label

    def batches(images: tf.Tensor, labels: tf.Tensor) -> tf.data.Dataset:
        ds = tf.data.Dataset.from_tensor_slices((images, labels)).map(enlarge, num_parallel_calls=tf.data.AUTOTUNE)
        return ds.cache().batch(32).prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [keras.Input(shape), layers.Conv2D(8, 3, strides=4, activation="relu"), layers.Flatten(), layers.Dense(10, "softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    capture = jobs.log(logs, profile_batch=(5, 20))
    model.fit(batches(x, y), shuffle=False, epochs=3, validation_data=batches(x_val, y_val), callbacks=[capture], verbose=0)


def main(root: Path) -> None:
    for name, train in (
        ("diverging", lambda logs: lower_learning_rate(logs, rate=1.0 / 10)),
        ("overfitting", early_stopping),
        ("input-bound", tensorflow_ops),
    ):
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        train(root / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
