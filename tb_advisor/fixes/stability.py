"""What to try when a loss breaks, jumps, or does not move at all."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="lower-learning-rate",
        title=Message("Lower the learning rate by a factor of 3 to 10"),
        why=Message("Steps that are too long leave the region in which the gradient says anything about the loss."),
        check=Message("The loss falls past the step at which it broke."),
        cost=Cost.RETRAIN,
        effect=Message(
            "Training becomes stable: the largest rate that does not diverge is an upper limit, and the best one lies near below it."
        ),
        source=sources.BENGIO_2012,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """model.compile(optimizer=keras.optimizers.Adam(learning_rate=«lower_rate: 1e-4»), loss=loss)  # was «rate: 1e-3»
""",
            "pytorch": """optimizer = torch.optim.Adam(model.parameters(), lr=«lower_rate: 1e-4»)  # was «rate: 1e-3»
""",
            "huggingface": """args = TrainingArguments(..., learning_rate=«lower_rate: 5e-6»)  # was «rate: 5e-5»
""",
            "jax": """optimizer = optax.adam(«lower_rate: 1e-4»)  # was «rate: 1e-3»
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizers.html",
            "keras": "https://keras.io/api/optimizers/",
            "pytorch": "https://pytorch.org/docs/stable/optim.html",
        },
    ),
    Fix(
        id="warm-up",
        title=Message("Raise the learning rate slowly at the start"),
        why=Message("Early gradients are large and point in all directions; a warm-up keeps the first steps short."),
        check=Message("The loss falls without a jump during the first few percent of the run."),
        cost=Cost.RETRAIN,
        effect=Message("Higher rates become stable: batches of 8,192 trained ImageNet as well as those of 256."),
        source=sources.GOYAL_2017,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """schedule = keras.optimizers.schedules.CosineDecay(
    initial_learning_rate=0.0, warmup_target=«rate: 1e-3», warmup_steps=1000, decay_steps=total_steps,
)
model.compile(optimizer=keras.optimizers.Adam(schedule), loss=loss)
""",
            "pytorch": """warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=1000)
for batch in train:
    train_step(batch)
    warm_up.step()
""",
            "huggingface": """args = TrainingArguments(..., warmup_steps=1000)
""",
            "jax": """schedule = optax.warmup_cosine_decay_schedule(0.0, «rate: 1e-3», warmup_steps=1000, decay_steps=total_steps)
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/optimizer_schedules",
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html",
            "keras": "https://keras.io/api/optimizers/learning_rate_schedules/cosine_decay/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LinearLR.html",
        },
    ),
    Fix(
        id="clip-gradients",
        title=Message("Clip the gradient norm"),
        why=Message("One bad batch then moves the weights no further than any other. Start with the usual norm's 90th percentile."),
        check=Message("Spikes become lower or vanish; the logged gradient norm stays at or below the ceiling."),
        cost=Cost.RETRAIN,
        effect=Message("Single large gradients no longer undo what was learned; recurrent networks need it to train at all."),
        source=sources.PASCANU_2012,
        figure=Figure.GRADIENT_NORM,
        code={
            "keras": """optimizer = keras.optimizers.Adam(learning_rate=«rate: 1e-3», global_clipnorm=«clip_norm: 1.0»)
""",
            "tensorflow": """gradients = tape.gradient(loss_value, model.trainable_variables)
gradients, norm = tf.clip_by_global_norm(gradients, «clip_norm: 1.0»)
optimizer.apply_gradients(zip(gradients, model.trainable_variables))
tf.summary.scalar("grad_norm", norm, step=step)
""",
            "pytorch": """loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=«clip_norm: 1.0»)
optimizer.step()
""",
            "lightning": """trainer = Trainer(gradient_clip_val=«clip_norm: 1.0»)
""",
            "huggingface": """args = TrainingArguments(..., max_grad_norm=«clip_norm: 1.0»)
""",
            "jax": """optimizer = optax.chain(optax.clip_by_global_norm(«clip_norm: 1.0»), optax.adam(«rate: 1e-3»))
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "lightning": "https://lightning.ai/docs/pytorch/stable/advanced/training_tricks.html#gradient-clipping",
            "jax": "https://optax.readthedocs.io/en/latest/api/transformations.html",
            "keras": "https://keras.io/api/optimizers/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/clip_by_global_norm",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html",
        },
    ),
    Fix(
        id="check-inputs",
        title=Message("Assert that inputs and labels are finite and in range"),
        why=Message("One row with NaN, or a label outside the classes, is enough to break every weight."),
        check=Message("The assertion names the bad batch, or passes for a whole epoch."),
        cost=Cost.ONE_LINE,
        effect=Message("The batch that breaks the loss is named, or the data is cleared of suspicion."),
        source=sources.TF_DEBUGGING,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """def checked(x, y):
    tf.debugging.assert_all_finite(x, "input is not finite")
    tf.debugging.assert_less(y, tf.cast(classes, y.dtype), "label out of range")
    return x, y

train = train.map(checked)
""",
            "tensorflow": """@tf.function
def train_step(x, y):
    tf.debugging.assert_all_finite(x, "input is not finite")
    tf.debugging.assert_non_negative(y, "label below zero")
    tf.debugging.assert_less(y, tf.cast(classes, y.dtype), "label out of range")
    return update(x, y)
""",
            "pytorch": """for x, y in train:
    assert torch.isfinite(x).all(), "input is not finite"
    assert 0 <= y.min() and y.max() < classes, "label out of range"
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/api_docs/python/tf/debugging/assert_all_finite",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/debugging",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.isfinite.html",
        },
    ),
    Fix(
        id="stable-loss",
        title=Message("Compute the loss from logits"),
        why=Message("log(0) is -Inf: a softmax or sigmoid followed by a hand-written log breaks as soon as the model is sure."),
        check=Message("The loss stays finite when training accuracy reaches 100%."),
        cost=Cost.ONE_LINE,
        effect=Message("The loss is finite for any logits: the sum of exponentials is computed without overflow and without log(0)."),
        source=sources.TF_SOFTMAX_LOGITS,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """# no softmax or sigmoid in the last layer; two classes: BinaryCrossentropy(from_logits=True)
model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
""",
            "tensorflow": """loss_value = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)  # no softmax before
""",
            "pytorch": """loss = nn.functional.cross_entropy(logits, y)  # not nll_loss(log(softmax(logits)))
""",
            "jax": """loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
""",
        },
        urls={
            "jax": "https://optax.readthedocs.io/en/latest/api/losses.html",
            "keras": "https://keras.io/api/losses/probabilistic_losses/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/nn/sparse_softmax_cross_entropy_with_logits",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
        },
    ),
    Fix(
        id="terminate-on-nan",
        title=Message("End the run at the first NaN"),
        why=Message("Nothing after it can be used; the machine is free for the next try."),
        check=Message("A broken run ends within one step of its first NaN."),
        cost=Cost.ONE_LINE,
        effect=Message("Nothing is trained after the first NaN, and its time is saved."),
        source=sources.KERAS_TERMINATE,
        figure=Figure.STEPS_IN_LOG,
        code={
            "keras": """model.fit(train, callbacks=[keras.callbacks.TerminateOnNaN()])
""",
            "tensorflow": """if not tf.math.is_finite(loss_value):  # outside of tf.function
    raise RuntimeError(f"loss is {loss_value} at step {step}")
""",
            "pytorch": """if not torch.isfinite(loss):
    raise RuntimeError(f"loss is {loss.item()} at step {step}")
""",
            "lightning": """from lightning.pytorch.callbacks import EarlyStopping

trainer = Trainer(callbacks=[EarlyStopping(monitor="train_loss", check_finite=True)])
""",
        },
        urls={
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.isfinite.html",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/math/is_finite",
            "keras": "https://keras.io/api/callbacks/terminate_on_nan/",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/early_stopping.html",
        },
    ),
    Fix(
        id="find-first-nan",
        title=Message("Find the operation that makes the first NaN"),
        why=Message("Training stops at the operation itself, with its stack. It becomes slow: use it for one short run."),
        check=Message("The error names a line of the model or of the loss."),
        cost=Cost.ONE_LINE,
        effect=Message("The operation and its line are named at the step at which the first NaN appears."),
        source=sources.TF_NUMERICS,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """tf.debugging.enable_check_numerics()
""",
            "tensorflow": """tf.debugging.enable_check_numerics()  # of every operation
logits = tf.debugging.check_numerics(logits, "logits")  # of one tensor
""",
            "pytorch": """torch.autograd.set_detect_anomaly(True)
""",
            "lightning": """trainer = Trainer(detect_anomaly=True, max_steps=200)
""",
            "huggingface": """from transformers.debug_utils import DebugUnderflowOverflow

DebugUnderflowOverflow(model)  # prints the last modules before the first NaN or infinite activation
""",
            "jax": """jax.config.update("jax_debug_nans", True)
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/api_docs/python/tf/debugging/enable_check_numerics",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/debugging/check_numerics",
            "lightning": "https://lightning.ai/docs/pytorch/stable/debug/debugging_intermediate.html",
            "huggingface": "https://huggingface.co/docs/transformers/debugging",
            "pytorch": "https://pytorch.org/docs/stable/autograd.html",
            "jax": "https://docs.jax.dev/en/latest/debugging/flags.html",
        },
    ),
    Fix(
        id="check-training-loop",
        title=Message("Overfit one batch on purpose"),
        why=Message("A model that cannot learn 32 examples has a broken loop: frozen weights, a detached loss, no optimizer step."),
        check=Message("Loss on the one batch goes to almost zero within a few hundred steps."),
        cost=Cost.ONE_LINE,
        effect=Message("A loop that works drives the loss of one batch to almost zero; one that does not is found in a minute."),
        source=sources.KARPATHY_2019,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """x, y = next(iter(train))
model.fit(x, y, epochs=300, verbose=0)
print(model.evaluate(x, y), len(model.trainable_weights))
""",
            "pytorch": """x, y = next(iter(train))
for step in range(300):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), sum(p.grad is not None for p in model.parameters()))
""",
        },
        urls={
            "keras": "https://keras.io/api/models/model_training_apis/#fit-method",
            "pytorch": "https://pytorch.org/tutorials/beginner/basics/optimization_tutorial.html",
        },
    ),
    Fix(
        id="tune-learning-rate",
        title=Message("Try the learning rate a factor of 10 up and down"),
        why=Message("Too small a rate does not move the loss, too large a one throws away every step; both look flat."),
        check=Message("One of the three runs falls within the first tenth of the steps."),
        cost=Cost.RETRAIN,
        effect=Message("The rate is the one hyperparameter that matters most: tune it first."),
        source=sources.BENGIO_2012,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """for rate in («lower_rate: 1e-4», «rate: 1e-3», «higher_rate: 1e-2»):
    model = make_model()
    model.compile(optimizer=keras.optimizers.Adam(rate), loss=loss)
    model.fit(train, epochs=3, callbacks=[keras.callbacks.TensorBoard(f"logs/lr{rate}")])
""",
            "pytorch": """for rate in («lower_rate: 1e-4», «rate: 1e-3», «higher_rate: 1e-2»):
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    train_some_steps(model, optimizer, SummaryWriter(f"logs/lr{rate}"))
""",
        },
        urls={
            "keras": "https://keras.io/api/optimizers/",
            "pytorch": "https://pytorch.org/docs/stable/optim.html",
        },
    ),
    Fix(
        id="better-initialization",
        title=Message("Use He or Glorot initialization and normalise the inputs"),
        why=Message("Weights of the wrong scale, or inputs in the hundreds, leave the activations where gradients vanish."),
        check=Message("Activations of every layer have a spread near one at the first step."),
        cost=Cost.RETRAIN,
        effect=Message("With He's initialization a network of 30 rectified layers converged that stood still with Glorot's."),
        source=sources.HE_2015_INIT,
        figure=Figure.ACTIVATIONS,
        code={
            "keras": """normalize = layers.Normalization()
normalize.adapt(x_train)
model = keras.Sequential([normalize, layers.Dense(64, activation="relu", kernel_initializer="he_normal"), layers.Dense(classes)])
""",
            "pytorch": """def init(module):
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)

model.apply(init)
""",
        },
        urls={
            "keras": "https://keras.io/api/layers/initializers/",
            "pytorch": "https://pytorch.org/docs/stable/nn.init.html",
        },
    ),
)
