"""Trains 12 jobs, learning rate × seed, as a user would: python tests/keras_sweep.py LOGDIR"""

import os
import sys
from pathlib import Path

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1")

import keras
import numpy as np
from tensorboard.plugins.hparams import api as hp

# All rather high: the lowest is the best, for the noise of the batches grows with the rate, and the highest diverges.
RATES, SEEDS = (0.01, 0.03, 0.05, 3.0), (0, 1, 2)


def main(root: Path) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(1280, 64)).astype("float32")
    y = (x @ np.arange(1, 65) / 64 + generator.normal(size=1280)).astype("float32")
    model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(), "mse")
    for rate in RATES:
        for seed in SEEDS:
            keras.utils.set_random_seed(seed)
            model.set_weights([0.1 * np.random.normal(size=weight.shape) for weight in model.get_weights()])
            model.optimizer.learning_rate.assign(rate)
            logdir = str(root / f"{rate}-{seed}")
            callbacks = [
                keras.callbacks.TensorBoard(logdir, write_graph=False),
                hp.KerasCallback(logdir, {"learning_rate": rate, "seed": seed}),
            ]
            data = {"validation_data": (x[640:], y[640:]), "batch_size": 8, "epochs": 6}
            model.fit(x[:640], y[:640], verbose=0, callbacks=callbacks, **data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
