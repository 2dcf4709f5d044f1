"""Runs the snippets for Keras and TensorFlow on a toy, as a user would paste them: python tests/fixes/run_snippets.py DIRECTORY

Prints a line of JSON for each: fix, framework, and the error or null.
"""

import collections
import datetime
import gc
import json
import os
import subprocess
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1")

import keras
import numpy as np
import tensorflow as tf

from tb_advisor.fixes import all_fixes

# What a toy on one CPU does not have.
LACKS = {
    "check-machine": "nvidia-smi",
    "check-slow-host": "a GPU",
    "compare-within-batch": "a GAN",
    "compare-environments": "a repository",
    "data-service": "a cluster",
    "debugger-dump": "a process of its own: a dump slows down all that comes after it (tests/logdir/test_debug_events.py records one)",
    "gradient-penalty": "a GAN",
    "memory-share": "a GPU",
    "nccl-backend": "several hosts",
    "normalize-rewards": "gymnasium",
    "overlap-communication": "several hosts",
    "prune-weights": "tensorflow_model_optimization",
    "quantization-aware-training": "tensorflow_model_optimization",
    "soften-discriminator": "a GAN",
    "stronger-architecture": "the weights of a large model",
    "two-time-scale-update": "a GAN",
}


# What a snippet needs beside the toy: it says so in a comment, or a name says it.
PRELUDES = {
    **dict.fromkeys(
        ("avoid-sync", "delete-references", "log-more-often", "trainable-parameters"),
        "loss = loss_value if framework == 'tensorflow' else loss",
    ),
    "balance-shards": "ds = train if framework == 'keras' else ds",
    "find-growth": "train = lambda steps: None",
    "free-after-evaluation": "val = ds if framework == 'tensorflow' else val",
    "gradient-accumulation": "weights = model.trainable_variables\ntotal = [tf.zeros_like(w) for w in weights]\n"
    "loss_fn = lambda part: tf.reduce_sum(model(part))",
    "less-host-work": "ds = train",
    "representative-validation": "x, y = x_train, y_train",
    "activation-between": "x = layers.Input((8,))",
    "arrays-in-workers": "class Images: pass\nself, paths = Images(), ['a']",
    "augment-data": "train = images",
    "bounded-cache": "files, load = ds, lambda x, y: (x, y)",
    "dataloader-workers": "Images = lambda files, **options: train\nfiles = []",
    "depthwise-separable": "x = layers.Input((8, 8, 3))",
    "dropout": "x = layers.Input((8,))",
    "entropy-bonus": "surrogate = entropy = tf.ones(4)",
    "feature-engineering": """columns = {"age": [1.0, 2.0], "city": ["a", "b"], "job": ["c", "d"]}
train = tf.data.Dataset.from_tensor_slices((columns, [0, 1])).batch(2)""",
    "global-pooling": "x = layers.Input((8, 8, 3))",
    "keep-best-checkpoint": "best = 2.0",
    "keep-best-policy": "best_return, eval_env, actor, evaluate = 0, None, model, lambda *_, **__: 1.0",
    "leaky-activation": "x = layers.Input((8,)) if framework == 'keras' else x",
    "less-regularization": "x = layers.Input((8,))",
    "lighter-dataset": "layers = [keras.layers.Dense(3)]",
    "load-in-background": "load, spec = lambda: iter([1, 2]), tf.TensorSpec((), tf.int32)",
    "look-at-batch": "train = images",
    "loss-scaling": "x = layers.Input((8,)) if framework == 'keras' else x",
    "merge-layers": "x = inputs = layers.Input((8,))",
    "move-periodic-work": "checkpoint = tf.train.Checkpoint(model=model)",
    "normalize-layers": "x = layers.Input((8,))",
    "parallel-interleave": "write_records()",
    "relu-family": "x = layers.Input((8,)) if framework == 'keras' else x",
    "resample-classes": "train = ds",
    "residual-links": "x = layers.Input((128,))",
    "sizes-that-repeat": "ds = sequences",
    "smaller-batch": "train = ds",
    "smaller-policy-updates": "new_log_probability, old_log_probability, advantage = tf.ones((3, 4)) * 0.1",
    "static-shapes": "ds = sequences",
    "stable-loss": "logits = model(x)",
    "input-signature": "ds = train.unbatch()\nx, y = tf.zeros((2, 28, 28)), tf.zeros(2, tf.int64)",
    "tensorflow-ops": "write_image()\nds = tf.data.Dataset.from_tensors('image.jpg')",
    "train-value-function": "train_value_function, observations, returns = lambda *_: None, 0, 0",
    "vectorize-map": "normalise_batch = lambda x, y: (x, y)",
}


def write_records() -> None:
    with tf.io.TFRecordWriter("train-00.tfrecord") as writer:
        writer.write(b"example")


def write_image() -> None:
    tf.io.write_file("image.jpg", tf.io.encode_jpeg(tf.zeros((8, 8, 3), tf.uint8)))


def toy() -> dict[str, object]:
    """The names that snippets take for granted."""
    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    layers, classes, features = keras.layers, 3, 8
    y_train = generator.integers(0, classes, 64)
    x_train = (generator.normal(size=(64, features)) + y_train[:, None]).astype("float32")
    x_val, y_val = x_train[:32], y_train[:32]
    ds = tf.data.Dataset.from_tensor_slices((x_train, y_train))
    train, val = ds.batch(16), ds.take(32).batch(16)
    images = tf.data.Dataset.from_tensor_slices((generator.random((32, 8, 8, 3)).astype("float32"), y_val)).batch(16)
    sequences = tf.data.Dataset.from_generator(
        lambda: iter([(np.ones(5), 1)] * 200), output_signature=(tf.TensorSpec([None]), tf.TensorSpec([], tf.int64))
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def make_model(**_: object) -> keras.Model:
        model = keras.Sequential([layers.Input((features,)), layers.Dense(8, activation="relu"), layers.Dense(classes)])
        model.compile("adam", loss)
        return model

    def train_step(x: object, y: object = None) -> tf.Tensor:
        return tf.constant(1.0)

    model = make_model()
    x, y = tf.constant(x_train), tf.constant(y_train)
    with tf.GradientTape(persistent=True) as tape:
        loss_value = loss(y, model(x))
    given = {
        "batch": x,
        "batches": iter(train.repeat()),
        "best": {},
        "block": model,
        "build": make_model,
        "build_model": make_model,
        "checkpoint": tf.train.Checkpoint(model=model, step=tf.Variable(0)),
        "collections": collections,
        "datetime": datetime.datetime,
        "epochs": 2,
        "examples": [(b"image", 1)],
        "failed": {"rate": 1},
        "gc": gc,
        "gradients": tape.gradient(loss_value, model.trainable_variables),
        "logdir": "logs",
        "loss_fn": lambda y_or_x, prediction=None: loss_value,
        "loss_metric": keras.metrics.Mean(),
        "losses": [],
        "manager": tf.train.CheckpointManager(tf.train.Checkpoint(model=model), "kept", max_to_keep=1),
        "members": [make_model(), make_model()],
        "optimizer": keras.optimizers.Adam(),
        "os": os,
        "psutil": __import__("psutil"),
        "schedule": keras.optimizers.schedules.CosineDecay(1e-3, 100),
        "step": 10,
        "steps": 22,
        "subprocess": subprocess,
        "time": time,
        "total_steps": 40,
        "tracemalloc": tracemalloc,
        "trained": {"rate": 2},
        "val_loss": 1.0,
        "accuracy": keras.metrics.SparseCategoricalAccuracy(),
        "metric": keras.metrics.SparseCategoricalAccuracy(),
        "a": x,
        "b": x,
        "p": tf.nn.softmax(x),
        "total": x,
        "count": x,
        "logits": model(x),
        "kernel": tf.ones((features, 4)),
        "bias": tf.zeros(4),
        "embeddings": tf.ones((4, 4)),
        "decode": lambda x, y=None: (x, y),
        "augment": lambda x, y=None: (x, y),
    }
    libraries = {"tf": tf, "keras": keras, "np": np, "write_records": write_records, "write_image": write_image}
    return {name: value for name, value in locals().items() if name not in ("generator", "given", "libraries")} | given | libraries


def forget() -> None:
    """Undo what a snippet set for the whole process."""
    tf.debugging.disable_check_numerics()
    tf.debugging.experimental.disable_dump_debug_info()
    keras.mixed_precision.set_global_policy("float32")
    tf.config.run_functions_eagerly(True)
    tf.summary.experimental.set_step(None)


def short(fit: Callable[..., object]) -> Callable[..., object]:
    """`fit` of one epoch, however many are asked for."""

    def of_one_epoch(*arguments: object, **options: object) -> object:
        return fit(*arguments, **options | {"epochs": int(options.get("initial_epoch", 0)) + 1, "verbose": 0})

    return of_one_epoch


def main() -> None:
    keras.Model.fit = short(keras.Model.fit)
    os.chdir(sys.argv[1])
    tf.config.run_functions_eagerly(True)
    for name, fix in all_fixes().items():
        for framework in ("keras", "tensorflow"):
            if framework not in fix.code or name in LACKS:
                continue
            error = None
            names = toy() | {"framework": framework}
            try:
                exec(PRELUDES.get(name, ""), names)
                exec(compile(fix.code_with({})[framework], f"<{name}>", "exec"), names)
            except Exception as failure:
                line = traceback.extract_tb(failure.__traceback__)[-1]
                error = f"{type(failure).__name__}: {str(failure)[:200]} ({line.filename}:{line.lineno})"
            forget()
            print(json.dumps([name, framework, error]), flush=True)


if __name__ == "__main__":
    main()
