"""Runs of Keras with its TensorBoard callback, and of TensorFlow loops with tf.summary."""

import numpy as np

from tests.accuracy import tasks
from tests.accuracy.catalog import training
from tests.accuracy.log import Log
from tests.accuracy.network import Array

EPOCHS = {
    "loss": "train:epoch_loss",
    "val_loss": "validation:epoch_loss",
    "accuracy": "train:epoch_accuracy",
    "val_accuracy": "validation:epoch_accuracy",
    "lr": "train:epoch_learning_rate",
}
KERNELS = {"weight": "train:*kernel*"}
LOOP = {"loss": "train:loss", "val_loss": "test:loss", "val_accuracy": "test:accuracy", "accuracy": "train:accuracy"}


def model_of(
    *stack,
    rate: float = 1e-3,
    loss: str = "sparse_categorical_crossentropy",
    optimizer=None,
    seed: int = 1,
    metrics=("accuracy",),
):
    """A compiled Keras model."""
    import keras

    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([layer() for layer in stack])
    model.compile(optimizer() if optimizer else keras.optimizers.Adam(rate), loss, metrics=list(metrics))
    return model


def dense(units: int, activation: str | None = "relu", *, penalty: float = 0.0, **options):
    def make():
        from keras import layers, regularizers

        return layers.Dense(units, activation, kernel_regularizer=regularizers.L2(penalty) if penalty else None, **options)

    return make


def dropout(share: float):
    def make():
        from keras import layers

        return layers.Dropout(share)

    return make


def inputs(*shape: int):
    def make():
        import keras

        return keras.Input(shape)

    return make


def learn(
    log: Log,
    model,
    task: tasks.Task,
    *,
    epochs: int,
    batch: int = 64,
    callbacks=(),
    histogram_freq: int = 0,
    update_freq="epoch",
    **options,
):
    """`Model.fit` with the TensorBoard callback that everyone uses, without graph and profile."""
    import keras

    board = keras.callbacks.TensorBoard(
        log.directory, write_graph=False, histogram_freq=histogram_freq, update_freq=update_freq, profile_batch=0
    )
    options.setdefault("validation_data", (task.x_val, task.y_val))
    model.fit(task.x, task.y, batch_size=batch, epochs=epochs, callbacks=[*callbacks, board], verbose=0, **options)


def schedule(function):
    import keras

    return keras.callbacks.LearningRateScheduler(function)


def loop(
    log: Log,
    model,
    task: tasks.Task,
    *,
    steps: int,
    rate,
    batch: int = 32,
    evaluate_every: int = 20,
    before=None,
    activations: str = "",
    seed: int = 0,
) -> None:
    """A custom loop: gradient tape, tf.summary, optionally histograms of kernels, gradients and one role of activations."""
    import keras
    import tensorflow as tf

    generator = np.random.default_rng(seed)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    objective = keras.losses.SparseCategoricalCrossentropy() if task.classes else keras.losses.MeanSquaredError()

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            output = model(x, training=True)
            loss = objective(y, output)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, output, tf.linalg.global_norm(gradients), gradients

    @tf.function
    def hidden(x):
        outputs = []
        for layer in model.layers:
            x = layer(x)
            outputs.append(x)
        return outputs

    for step in range(steps):
        rows = generator.integers(0, len(task.x), batch)
        x, y = task.x[rows].astype(np.float32), task.y[rows]
        if before:
            x, y = before(step, (x, y))
        optimizer.learning_rate.assign(rate((step + 1) / steps) if callable(rate) else rate)
        loss, output, norm, gradients = train(tf.constant(x, tf.float32), tf.constant(y))
        log(step, loss=loss, grad_norm=norm, lr=optimizer.learning_rate)
        if task.classes:
            log(step, accuracy=float((output.numpy().argmax(axis=1) == y).mean()))
        if step % evaluate_every == 0:
            outputs = hidden(tf.constant(task.x_val, tf.float32))
            log(step, val_loss=objective(task.y_val, outputs[-1]))
            if task.classes:
                log(step, val_accuracy=float((outputs[-1].numpy().argmax(axis=1) == task.y_val).mean()))
            for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
                if "kernel" in variable.path:
                    log.of_layer(step, "gradient", variable.path, gradient.numpy())
                    log.of_layer(step, "weight", variable.path, variable.numpy())
            for layer, values in zip(model.layers[:-1], outputs[:-1], strict=True):
                log.of_layer(step, activations, layer.name, values.numpy())


# Healthy.


@training("digits", EPOCHS | KERNELS, framework="keras", axis="epoch")
def keras_digits_dropout(log: Log) -> None:
    task = tasks.digits()
    learn(log, model_of(inputs(64), dense(48), dropout(0.3), dense(10, "softmax")), task, epochs=14, histogram_freq=1)


@training(
    "cancer",
    {**EPOCHS, "batch": "train:batch_loss"},
    framework="keras",
    axis="epoch",
    notes="running means of batches that begin again at every epoch",
)
def keras_cancer_batch_loss(log: Log) -> None:
    task = tasks.cancer()
    learn(log, model_of(inputs(30), dense(16), dense(2, "softmax"), rate=6e-4), task, epochs=14, batch=16, update_freq=1)


@training("digits", EPOCHS, framework="keras", axis="epoch")
def keras_digits_convolution_cosine(log: Log) -> None:
    def shaped():
        from keras import layers

        return layers.Reshape((8, 8, 1))

    def convolution():
        from keras import layers

        return layers.Conv2D(8, 3, activation="relu")

    def flat():
        from keras import layers

        return layers.Flatten()

    task = tasks.digits()
    model = model_of(inputs(64), shaped, convolution, flat, dense(10, "softmax"))
    learn(log, model, task, epochs=15, callbacks=[schedule(lambda epoch, rate: 3e-3 * 0.5 * (1 + np.cos(np.pi * epoch / 15)) + 1e-5)])


@training("diabetes", EPOCHS, framework="keras", axis="epoch")
def keras_diabetes_rate_on_plateau(log: Log) -> None:
    import keras

    task = tasks.diabetes()
    model = model_of(inputs(10), dense(12, "tanh"), dense(1, None), rate=2e-3, loss="mse", metrics=())
    learn(log, model, task, epochs=30, batch=32, callbacks=[keras.callbacks.ReduceLROnPlateau(patience=3, factor=0.5)])


@training("wine", EPOCHS, framework="keras", axis="epoch")
def keras_wine_stopped_early(log: Log) -> None:
    import keras

    stop = keras.callbacks.EarlyStopping(patience=4, restore_best_weights=True)
    learn(log, model_of(inputs(13), dense(16), dense(3, "softmax"), rate=6e-3), tasks.wine(), epochs=40, batch=16, callbacks=[stop])


@training("words", {**LOOP, "sigmoid": "train:activations/{}"}, framework="tensorflow")
def tensorflow_words_sigmoid(log: Log) -> None:
    model = model_of(inputs(48), dense(32, "sigmoid"), dense(24, "softmax"))
    loop(log, model, tasks.words(), steps=400, rate=lambda t: 0.6 * (1 - 0.9 * t), batch=64, activations="sigmoid", evaluate_every=25)


@training("wave", {"loss": "train:loss", "val_loss": "test:v_loss", "grad_norm": "train:1. Gradient norm"}, framework="tensorflow")
def tensorflow_wave(log: Log) -> None:
    model = model_of(inputs(1), dense(24, "tanh"), dense(24, "tanh"), dense(1, None), loss="mse", metrics=())
    loop(log, model, tasks.wave(0.2), steps=400, rate=lambda t: 0.05 * (1 - t) + 1e-3)


@training(
    "digits",
    {**LOOP, "relu": "train:activations/{}", "gradient": "train:gradients/{}", "weight": "train:weights/{}"},
    framework="tensorflow",
)
def tensorflow_digits_histograms(log: Log) -> None:
    model = model_of(inputs(64), dense(32), dense(32), dense(10, "softmax"))
    loop(log, model, tasks.digits(), steps=300, rate=0.03, evaluate_every=25, activations="relu")


# Faults.


@training(
    "cancer",
    EPOCHS,
    framework="keras",
    labels=("nan_loss",),
    axis="epoch",
    cause="cross entropy without a floor under the logarithm",
)
def keras_log_of_zero(log: Log) -> None:
    import tensorflow as tf

    def careless(truth, predicted):
        truth = tf.one_hot(tf.cast(tf.reshape(truth, [-1]), tf.int32), 2)
        return -tf.reduce_mean(truth * tf.math.log(predicted) + (1 - truth) * tf.math.log(1 - predicted))

    task = tasks.cancer()
    learn(log, model_of(inputs(30), dense(32), dense(2, "softmax"), rate=3e-2, loss=careless), task, epochs=16, batch=32)


@training(
    "digits",
    EPOCHS,
    framework="keras",
    labels=("loss_divergence",),
    axis="epoch",
    cause="the schedule multiplies the rate by 500",
    onset={"loss_divergence": (8, 11)},
)
def keras_rate_of_one(log: Log) -> None:
    task = tasks.digits()
    model = model_of(inputs(64), dense(64), dense(10, "softmax"), rate=2e-3)
    learn(log, model, task, epochs=20, batch=32, callbacks=[schedule(lambda epoch, rate: 2e-3 if epoch < 10 else 1.0)])


@training("circles", EPOCHS, framework="keras", labels=("loss_not_decreasing",), axis="epoch", cause="no layer is trainable", chance=0.5)
def keras_nothing_trainable(log: Log) -> None:
    task = tasks.circles()
    model = model_of(inputs(2), dense(16, trainable=False), dense(2, "softmax", trainable=False))
    learn(log, model, task, epochs=14)


@training(
    "digits",
    EPOCHS,
    framework="keras",
    labels=("underfitting",),
    axis="epoch",
    cause="a penalty far too strong",
    twin="keras-digits-dropout",
)
def keras_strong_penalty(log: Log) -> None:
    model = model_of(inputs(64), dense(48, penalty=0.3), dense(10, "softmax", penalty=0.3))
    learn(log, model, tasks.digits(), epochs=25)


@training(
    "cancer",
    EPOCHS,
    framework="keras",
    labels=("overfitting",),
    axis="epoch",
    cause="150 patients, a fifth of the labels wrong, a large network",
)
def keras_by_heart(log: Log) -> None:
    task = tasks.cancer().only(150).mislabelled(0.2)
    learn(log, model_of(inputs(30), dense(128), dense(64), dense(2, "softmax"), rate=2e-3), task, epochs=40, batch=32)


@training("wine", EPOCHS, framework="keras", labels=("overtraining",), axis="epoch", cause="runs on after convergence, held by a penalty")
def keras_runs_on(log: Log) -> None:
    model = model_of(inputs(13), dense(16, penalty=0.03), dense(3, "softmax", penalty=0.03), rate=3e-2)
    callbacks = [schedule(lambda epoch, rate: 3e-2 if epoch < 12 else 3e-3)]
    learn(log, model, tasks.wine(), epochs=45, batch=16, callbacks=callbacks)


@training(
    "digits",
    {**LOOP, "gradient": "train:gradients/{}"},
    framework="tensorflow",
    labels=("vanishing_gradient",),
    cause="eight sigmoid layers",
    chance=0.1,
)
def tensorflow_deep_sigmoid(log: Log) -> None:
    model = model_of(inputs(64), *[dense(16, "sigmoid")] * 8, dense(10, "softmax"))
    loop(log, model, tasks.digits(), steps=200, rate=0.05)


@training(
    "wave",
    {"loss": "train:loss", "val_loss": "test:loss", "grad_norm": "train:grad_norm"},
    framework="tensorflow",
    labels=("exploding_gradient",),
    cause="targets lose their scale in mid-run",
    onset={"exploding_gradient": (180, 185)},
)
def tensorflow_lost_scale(log: Log) -> None:
    model = model_of(inputs(1), dense(24, "tanh"), dense(1, None), loss="mse", metrics=())
    before = lambda step, batch: (batch[0], batch[1] * 400) if step >= 180 else batch  # noqa: E731
    loop(log, model, tasks.wave(), steps=300, rate=1e-3, before=before)


@training(
    "digits",
    {**LOOP, "relu": "train:activations/{}"},
    framework="tensorflow",
    labels=("dead_relu",),
    cause="biases far below zero",
    chance=0.1,
)
def tensorflow_dead_units(log: Log) -> None:
    model = model_of(inputs(64), dense(32), dense(32), dense(10, "softmax"))
    model.layers[1].bias.assign(np.full(32, -9.0))
    loop(log, model, tasks.digits(), steps=160, rate=0.01, activations="relu")


@training("wine", {**LOOP, "sigmoid": "train:act/{}"}, framework="tensorflow", labels=("saturated_activation",), cause="inputs not scaled")
def tensorflow_saturated(log: Log) -> None:
    from dataclasses import replace

    task = tasks.wine()
    task = replace(task, x=task.x * 80, x_val=task.x_val * 80)
    loop(log, model_of(inputs(13), dense(24, "sigmoid"), dense(3, "softmax")), task, steps=240, rate=0.01, activations="sigmoid")


@training(
    "iris",
    EPOCHS | KERNELS,
    framework="keras",
    labels=("poor_initialization",),
    axis="epoch",
    cause="weights a hundred times too large",
)
def keras_wide_weights(log: Log) -> None:
    import keras

    wide = lambda: keras.initializers.RandomNormal(stddev=12.0, seed=1)  # noqa: E731
    task = tasks.iris()
    model = model_of(inputs(4), dense(32, kernel_initializer=wide()), dense(3, "softmax", kernel_initializer=wide()))
    learn(log, model, task, epochs=20, batch=16, histogram_freq=1)


@training("digits", EPOCHS | KERNELS, framework="keras", labels=("weights_not_updating",), axis="epoch", cause="a layer was left frozen")
def keras_frozen_layer(log: Log) -> None:
    task = tasks.digits()
    model = model_of(inputs(64), dense(64), dense(32, trainable=False), dense(10, "softmax"))
    learn(log, model, task, epochs=14, histogram_freq=1)


@training("digits", EPOCHS, framework="keras", labels=("lr_schedule",), axis="epoch", cause="the callback multiplies by 0.1 at every epoch")
def keras_rate_to_zero(log: Log) -> None:
    task = tasks.digits()
    model = model_of(inputs(64), dense(32), dense(10, "softmax"), rate=2e-3)
    learn(log, model, task, epochs=20, callbacks=[schedule(lambda epoch, rate: rate * (0.3 if epoch else 1))])


@training(
    "digits",
    EPOCHS,
    framework="keras",
    labels=("val_suspicious",),
    axis="epoch",
    cause="a quarter of the training labels are wrong, none for validation",
)
def keras_clean_validation(log: Log) -> None:
    task = tasks.digits().mislabelled(0.45)
    model = model_of(inputs(64), dense(24), dropout(0.2), dense(10, "softmax"), rate=4e-4)
    learn(log, model, task, epochs=18)


@training("rare", EPOCHS, framework="keras", labels=("class_collapse",), axis="epoch", cause="a deep sigmoid network predicts the majority")
def keras_majority(log: Log) -> None:
    task = tasks.rare(0.15)
    model = model_of(inputs(12), *[dense(12, "sigmoid")] * 5, dense(2, "softmax"), rate=5e-4)
    learn(log, model, task, epochs=20)


@training(
    "digits",
    {**EPOCHS, "memory": "train:memory/live_mb"},
    framework="keras",
    labels=("memory_growth",),
    axis="epoch",
    cause="a callback keeps every prediction",
)
def keras_callback_keeps(log: Log) -> None:
    import keras
    import tensorflow as tf

    task = tasks.digits()
    writer = tf.summary.create_file_writer(str(log.directory / "train"), filename_suffix=".memory")

    kept: list[Array] = []

    class Keep(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            kept.append(np.array(self.model(task.x_val[:200])))
            with writer.as_default():
                tf.summary.scalar("memory/live_mb", 0.5 + sum(a.nbytes for a in kept) / 2**20, step=len(kept))

    learn(log, model_of(inputs(64), dense(32), dense(10, "softmax")), task, epochs=6, callbacks=[Keep()])
    writer.close()


@training("wine", EPOCHS, framework="keras", labels=("restart_artefact",), axis="epoch", cause="fit was called again without initial_epoch")
def keras_forgotten_epoch(log: Log) -> None:
    task = tasks.wine()
    model = model_of(inputs(13), dense(16), dense(3, "softmax"))
    learn(log, model, task, epochs=14, batch=16)
    learn(log, model, task, epochs=12, batch=16)


@training("digits", EPOCHS, framework="keras", labels=("oscillating_loss",), axis="epoch", cause="learning rate too high")
def keras_too_fast(log: Log) -> None:
    task = tasks.digits()
    learn(log, model_of(inputs(64), dense(32, "tanh"), dense(10, "softmax"), rate=0.12), task, epochs=30, batch=32)
