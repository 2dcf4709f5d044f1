"""Train the demo's jobs anew, each into its own directory of demo/logs: python demo/train.py"""

import os
import shutil
import time
from pathlib import Path

os.environ.update(
    KERAS_BACKEND="tensorflow",
    TF_CPP_MIN_LOG_LEVEL="3",
    TF_ENABLE_ONEDNN_OPTS="0",  # this and the next: the curves should be alike on every machine
    CUDA_VISIBLE_DEVICES="-1",
)

import keras
import tensorflow as tf
from jobs import JOBS

LOGS = Path(__file__).resolve().parent / "logs"


def main() -> None:
    tf.get_logger().setLevel("ERROR")  # it warns of what the job `retracing` is there to show
    shutil.rmtree(LOGS, ignore_errors=True)
    for number, (name, train) in enumerate(JOBS.items(), 1):
        start = time.monotonic()
        print(f"[{number:>2}/{len(JOBS)}] {name:<22}", end=" ", flush=True)
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        train(LOGS / name)
        print(f"{time.monotonic() - start:5.1f} s", flush=True)


if __name__ == "__main__":
    main()
