"""Trains three jobs of the demo again, each with the fix that the Advisor names first: python tests/keras_repairs.py LOGDIR"""

import os
import sys
from pathlib import Path

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1")
sys.path.insert(0, str(Path(__file__).parent.parent / "demo"))

import jobs
import keras
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


def main(root: Path) -> None:
    for name, train in (
        ("diverging", lambda logs: lower_learning_rate(logs, rate=1.0 / 10)),
        ("overfitting", early_stopping),
        ("input-bound", jobs.input_repaired),
    ):
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        train(root / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
