"""What to try when numbers overflow, underflow or are none."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_TF_DEBUGGER = "https://www.tensorflow.org/tensorboard/debugger_v2"

FIXES = (
    Fix(
        id="loss-scaling",
        title=Message("Scale the loss in float16, or use bfloat16"),
        why=Message(
            "Gradients below 6e-8 are zero in float16, and values above 65,504 are infinite. A scaled loss keeps gradients in range and "
            "skips the steps that overflow; bfloat16 has the range of float32 and needs no scale. Clip after the scale is divided out."
        ),
        check=Message("The loss stays finite, and the scale settles after a few hundred steps instead of falling to one."),
        cost=Cost.ONE_LINE,
        effect=Message("Training in 16 bits matched 32 bits in all networks of the paper; some diverged without the scale."),
        source=sources.MICIKEVICIUS_2017,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """keras.mixed_precision.set_global_policy("mixed_bfloat16")  # with "mixed_float16", compile() scales the loss itself
outputs = layers.Dense(classes, dtype="float32")(x)  # the loss is computed in float32
""",
            "tensorflow": """optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-3))
with tf.GradientTape() as tape:
    loss_value = optimizer.scale_loss(loss(y, model(x, training=True)))
gradients = tape.gradient(loss_value, model.trainable_variables)
optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # divides by the scale, skips what is not finite
""",
            "pytorch": """scaler = torch.amp.GradScaler("cuda")
for x, y in train:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):  # torch.bfloat16 needs no scaler
        loss = loss_fn(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
""",
            "lightning": """trainer = Trainer(precision="bf16-mixed")  # "16-mixed" scales the loss
""",
            "huggingface": """args = TrainingArguments(..., bf16=True)  # fp16=True scales the loss
""",
            "jax": """optimizer = optax.apply_if_finite(optax.adam(1e-3), max_consecutive_errors=5)  # with bfloat16 activations
""",
        },
        urls={
            "keras": "https://keras.io/api/mixed_precision/",
            "tensorflow": "https://www.tensorflow.org/guide/mixed_precision",
            "pytorch": "https://pytorch.org/docs/stable/notes/amp_examples.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/precision_basic.html",
            "huggingface": "https://huggingface.co/docs/transformers/perf_train_gpu_one",
            "jax": "https://optax.readthedocs.io/en/latest/api/transformations.html",
        },
    ),
    Fix(
        id="safe-log",
        title=Message("Keep logarithms, roots and divisions away from zero"),
        why=Message("log(0) is -Inf, the slope of a root at zero is infinite, and 0/0 is NaN: one such value reaches every weight."),
        check=Message("The operation that makes the first NaN is another one, or there is none."),
        cost=Cost.ONE_LINE,
        effect=Message("The loss and its gradient stay finite where the argument reaches zero."),
        source=sources.JAX_FAQ_WHERE,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """epsilon = 1e-7  # small against the values, large enough for their precision: float16 needs 1e-4
log_p = keras.ops.log(keras.ops.maximum(p, epsilon))
distance = keras.ops.sqrt(keras.ops.sum(keras.ops.square(a - b), axis=-1) + epsilon)
mean = keras.ops.divide_no_nan(total, count)
""",
            "tensorflow": """epsilon = 1e-7  # small against the values, large enough for their precision: float16 needs 1e-4
log_p = tf.math.log(tf.maximum(p, epsilon))
distance = tf.sqrt(tf.reduce_sum(tf.square(a - b), axis=-1) + epsilon)
mean = tf.math.divide_no_nan(total, count)
""",
            "pytorch": """epsilon = 1e-7  # small against the values, large enough for their precision: float16 needs 1e-4
log_p = torch.log(p.clamp_min(epsilon))
distance = torch.sqrt(((a - b) ** 2).sum(-1) + epsilon)
mean = total / count.clamp_min(1)
""",
            "jax": """epsilon = 1e-7
log_p = jnp.log(jnp.maximum(p, epsilon))
distance = jnp.sqrt(jnp.sum((a - b) ** 2, axis=-1) + epsilon)  # inside the root: jnp.where outside still has a NaN gradient
""",
        },
        urls={
            "keras": "https://keras.io/api/ops/numpy/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/math/divide_no_nan",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.clamp.html",
            "jax": "https://docs.jax.dev/en/latest/faq.html",
        },
    ),
    Fix(
        id="clean-rows",
        title=Message("Drop the rows that are not finite"),
        why=Message(
            "Missing values and divisions in the preparation of the data arrive as NaN or infinite values, often in few rows only."
        ),
        check=Message("The count of dropped rows is known and small, and the loss stays finite over whole epochs."),
        cost=Cost.ONE_LINE,
        effect=Message("The loss stays finite over whole epochs: one value that is not reaches every weight in one step."),
        source=sources.TF_NUMERICS,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """finite = np.isfinite(x_train).all(axis=1) & np.isfinite(y_train)
print(f"{(~finite).sum()} of {len(finite)} rows are not finite")
model.fit(x_train[finite], y_train[finite])
""",
            "tensorflow": """def is_finite(x, y):
    return tf.reduce_all(tf.math.is_finite(x))

train = train.filter(is_finite).batch(32)  # before batching: drops rows, not batches
""",
            "pytorch": """finite = torch.isfinite(x_train).all(dim=1) & torch.isfinite(y_train)
print(f"{(~finite).sum()} of {len(finite)} rows are not finite")
dataset = torch.utils.data.TensorDataset(x_train[finite], y_train[finite])
""",
            "huggingface": """dataset = dataset.filter(lambda row: np.isfinite(row["values"]).all())
""",
        },
        urls={
            "keras": "https://numpy.org/doc/stable/reference/generated/numpy.isfinite.html",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#filter",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.isfinite.html",
            "huggingface": "https://huggingface.co/docs/datasets/process",
        },
    ),
    Fix(
        id="debugger-dump",
        title=Message("Record every operation for TensorBoard's Debugger tab"),
        why=Message("The tab lists the operations that made NaN or infinite values, in order, with the line of code of each."),
        check=Message("The Debugger tab shows alerts. Record a few steps only: it is slow, and the dump is large."),
        cost=Cost.ONE_LINE,
        effect=Message("The first operation that made NaN or infinite values is named, with its line of code."),
        source=sources.TF_DEBUGGER,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """tf.debugging.experimental.enable_dump_debug_info(
    "logs/debug", tensor_debug_mode="FULL_HEALTH", circular_buffer_size=-1,
)
model.fit(train, steps_per_epoch=20, epochs=1)  # then: tensorboard --logdir logs/debug
""",
            "tensorflow": """tf.debugging.experimental.enable_dump_debug_info(
    "logs/debug", tensor_debug_mode="FULL_HEALTH", circular_buffer_size=-1,
)
for x, y in train.take(20):
    train_step(x, y)
tf.debugging.experimental.disable_dump_debug_info()  # then: tensorboard --logdir logs/debug
""",
        },
        urls={"keras": _TF_DEBUGGER, "tensorflow": _TF_DEBUGGER},
    ),
    Fix(
        id="clip-at-percentile",
        title=Message("Put the ceiling at the 90th percentile of the norm"),
        why=Message(
            "Clipping is for the few gradients that are far too large. Where it works on more than half of the steps, it hides that the "
            "learning rate is too high: raise the ceiling and lower the rate."
        ),
        check=Message("About one step in ten has the norm of the ceiling."),
        cost=Cost.RETRAIN,
        effect=Message("One step in ten is clipped instead of most of them; what remains unstable asks for a lower rate."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.GRADIENT_NORM,
        code={
            "keras": """norms = []  # without clipping, after a few hundred steps of training
for x, y in train.take(200):
    with tf.GradientTape() as tape:
        loss_value = loss(y, model(x, training=True))
    norms.append(tf.linalg.global_norm(tape.gradient(loss_value, model.trainable_variables)))
optimizer = keras.optimizers.Adam(«lower_rate: 1e-4», global_clipnorm=float(np.percentile(norms, 90)))  # rate was «rate: 1e-3»
""",
            "pytorch": """norms = []  # without clipping, in the first few hundred steps
for x, y in train:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=float("inf")))
    optimizer.step()
ceiling = torch.stack(norms).quantile(0.9).item()
""",
            "lightning": """def on_before_optimizer_step(self, optimizer):
    self.log_dict(lightning.pytorch.utilities.grad_norm(self, norm_type=2))  # logged before clipping

trainer = Trainer(gradient_clip_val=2.0)  # the 90th percentile of grad_2.0_norm_total
""",
            "huggingface": """# the 90th percentile of train/grad_norm, which is logged before clipping
args = TrainingArguments(..., max_grad_norm=2.0)
""",
            "jax": """norms.append(optax.global_norm(gradients))  # in a few hundred steps, without clipping
optimizer = optax.chain(optax.clip_by_global_norm(float(np.percentile(norms, 90))), optax.adam(3e-4))
""",
        },
        urls={
            "keras": "https://keras.io/api/optimizers/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/advanced/training_tricks.html#gradient-clipping",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "jax": "https://optax.readthedocs.io/en/latest/api/transformations.html",
        },
    ),
)
