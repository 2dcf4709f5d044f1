"""What to log so that more can be checked."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import WRITERS, Cost, Figure, Fix
from tb_advisor.message import Message

_README = "https://github.com/tensorflow/tensorboard/blob/master/README.md"

FIXES = (
    Fix(
        id="log-validation-loss",
        title=Message("Evaluate on held-out data and log it"),
        why=Message("A second curve shows from which step on the model only memorises, and which checkpoint to keep."),
        check=Message("The Advisor lists a validation loss among the roles of the tags."),
        cost=Cost.ONE_LINE,
        effect=Message("Overfitting, overtraining and the checkpoint to keep can be seen."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """model.fit(x, y, validation_split=0.2, callbacks=[keras.callbacks.TensorBoard("logs/run1")])
""",
            "tensorflow": """with tf.summary.create_file_writer("logs/run1/validation").as_default():
    tf.summary.scalar("loss", val_loss, step=step)
""",
            "pytorch": """model.eval()
with torch.no_grad():
    val_loss = sum(loss_fn(model(x), y).item() for x, y in val) / len(val)
writer.add_scalar("val/loss", val_loss, step)
""",
            "lightning": """def validation_step(self, batch, batch_idx):
    self.log("val_loss", self.loss(batch))
""",
            "huggingface": """args = TrainingArguments(..., eval_strategy="steps", eval_steps=200)
trainer = Trainer(..., args=args, eval_dataset=val)
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/summary/scalar",
            "keras": "https://keras.io/api/models/model_training_apis/",
            "pytorch": "https://pytorch.org/docs/stable/tensorboard.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/visualize/logging_basic.html",
        },
    ),
    Fix(
        id="log-learning-rate",
        title=Message("Log the learning rate of each step"),
        why=Message("Its curve shows at once whether a schedule ends too early, never arrives or jumps."),
        check=Message("The Advisor lists a learning rate among the roles of the tags."),
        cost=Cost.ONE_LINE,
        effect=Message("Faults of the schedule can be seen, and values for the next rate are taken from it."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """class LogLearningRate(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)

# before TensorBoard, which then writes it as epoch_learning_rate
model.fit(train, callbacks=[LogLearningRate(), keras.callbacks.TensorBoard("logs/run1")])
""",
            "tensorflow": """tf.summary.scalar("learning_rate", optimizer.learning_rate, step=step)
""",
            "pytorch": """writer.add_scalar("train/lr", optimizer.param_groups[0]["lr"], step)
""",
            "lightning": """from lightning.pytorch.callbacks import LearningRateMonitor

trainer = Trainer(callbacks=[LearningRateMonitor(logging_interval="step")])
""",
            "jax": """writer.scalar("train/lr", schedule(step), step)
""",
        },
        urls={
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html",
            "keras": "https://keras.io/api/callbacks/tensorboard/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/summary/scalar",
            "pytorch": "https://pytorch.org/docs/stable/tensorboard.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.LearningRateMonitor.html",
        },
    ),
    Fix(
        id="log-more-often",
        title=Message("Log the training loss every few steps"),
        why=Message("Spikes, a first NaN and the step at which a loss turns lie between two points when these are far apart."),
        check=Message("The loss has a few hundred points or more, and more rules say clear instead of not applicable."),
        cost=Cost.ONE_LINE,
        effect=Message("Spikes, the first NaN and the turn of a loss get their step."),
        source=sources.KERAS_TENSORBOARD,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """model.fit(train, callbacks=[keras.callbacks.TensorBoard("logs/run1", update_freq=10)])  # every 10 batches
""",
            "tensorflow": """if step % 10 == 0:
    tf.summary.scalar("train/loss", loss, step=step)
""",
            "pytorch": """if step % 10 == 0:
    writer.add_scalar("train/loss", loss.item(), step)
""",
            "lightning": """trainer = Trainer(log_every_n_steps=10)
""",
            "huggingface": """args = TrainingArguments(..., logging_steps=10)
""",
        },
        urls={
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/summary/scalar",
            "keras": "https://keras.io/api/callbacks/tensorboard/",
            "pytorch": "https://pytorch.org/docs/stable/tensorboard.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/trainer.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
        },
    ),
    Fix(
        id="draw-every-point",
        title=Message("Start TensorBoard without a limit on scalar points"),
        why=Message("With scalars=0 it keeps all points of each tag instead of 1,000 picked at random. It takes more memory."),
        check=Message("The chart shows the marked values."),
        cost=Cost.ONE_LINE,
        effect=Message("The chart shows every point of the log."),
        source=sources.TENSORBOARD_SAMPLES,
        figure=Figure.LOGGED_TAGS,
        code={
            writer: """# on the command line: tensorboard --logdir logs --samples_per_plugin scalars=0
from tensorboard import program

tensorboard = program.TensorBoard()
tensorboard.configure(argv=[None, "--logdir", "logs", "--samples_per_plugin", "scalars=0"])
print(tensorboard.launch())
"""
            for writer in WRITERS
        },
        urls={writer: _README for writer in WRITERS},
    ),
    Fix(
        id="log-gradient-norm",
        title=Message("Log the norm of the gradient"),
        why=Message(
            "It rises before the loss does, shows whether clipping works, and tells a bad batch from a learning rate that is too high."
        ),
        check=Message("The Advisor lists a gradient norm among the roles of the tags."),
        cost=Cost.ONE_LINE,
        effect=Message("Instability is seen before the loss shows it, and a ceiling for clipping can be taken from the 90th percentile."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """class Model(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss_value = self.compute_loss(x, y, self(x, training=True))
        gradients = tape.gradient(loss_value, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss_value, "grad_norm": tf.linalg.global_norm(gradients)}  # TensorBoard writes both
""",
            "tensorflow": """gradients = tape.gradient(loss_value, model.trainable_variables)
tf.summary.scalar("grad_norm", tf.linalg.global_norm(gradients), step=step)
""",
            "pytorch": """loss.backward()
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=float("inf"))  # measures, clips nothing
writer.add_scalar("train/grad_norm", norm, step)
optimizer.step()
""",
            "lightning": """def on_before_optimizer_step(self, optimizer):
    self.log_dict(lightning.pytorch.utilities.grad_norm(self, norm_type=2))
""",
            "huggingface": """args = TrainingArguments(..., logging_steps=10)  # since 4.38 the Trainer logs train/grad_norm
""",
            "jax": """writer.scalar("train/grad_norm", optax.global_norm(gradients), step)
""",
        },
        urls={
            "keras": "https://keras.io/guides/custom_train_step_in_tensorflow/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/linalg/global_norm",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/debug/debugging_intermediate.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "jax": "https://optax.readthedocs.io/en/latest/api/utilities.html",
        },
    ),
    Fix(
        id="log-histograms",
        title=Message("Log histograms of weights, gradients and activations"),
        why=Message("A loss says that something is wrong, the layers say where: which are dead, saturated, frozen or badly initialised."),
        check=Message("The Histograms tab shows the layers, and the Advisor's rules on layers say clear instead of not applicable."),
        cost=Cost.ONE_LINE,
        effect=Message("Dead, saturated, frozen and badly initialised layers can be told apart."),
        source=sources.GLOROT_2010,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """model.fit(train, callbacks=[keras.callbacks.TensorBoard("logs/run1", histogram_freq=1)])
""",
            "tensorflow": """for variable, gradient in zip(model.trainable_variables, gradients):
    tf.summary.histogram(f"weights/{variable.name}", variable, step=step)
    tf.summary.histogram(f"gradients/{variable.name}", gradient, step=step)
""",
            "pytorch": """if step % 100 == 0:
    for name, parameter in model.named_parameters():
        writer.add_histogram(f"weights/{name}", parameter, step)
        writer.add_histogram(f"gradients/{name}", parameter.grad, step)
""",
            "lightning": """def on_after_backward(self):
    if self.global_step % 100 == 0:
        for name, parameter in self.named_parameters():
            self.logger.experiment.add_histogram(f"weights/{name}", parameter, self.global_step)
            self.logger.experiment.add_histogram(f"gradients/{name}", parameter.grad, self.global_step)
""",
            "jax": """for path, leaf in jax.tree_util.tree_leaves_with_path(params):
    writer.histogram(f"weights/{jax.tree_util.keystr(path)}", leaf, step)
""",
        },
        urls={
            "keras": "https://keras.io/api/callbacks/tensorboard/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/summary/histogram",
            "pytorch": "https://pytorch.org/docs/stable/tensorboard.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/visualize/logging_advanced.html",
            "jax": "https://flax.readthedocs.io/en/latest/api_reference/flax.training.html",
        },
    ),
    Fix(
        id="log-metric",
        title=Message("Log a metric with a scale"),
        why=Message(
            "An accuracy of 40% or an R² of 0.1 says how far the model is from its goal; a loss of 1.3 says it beside another one only."
        ),
        check=Message("The Advisor lists a metric of validation among the roles of the tags."),
        cost=Cost.ONE_LINE,
        effect=Message("How far the model is from what the task allows can be judged; a loss alone has no such scale."),
        source=sources.TF_SCALARS,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])  # a regression: [keras.metrics.R2Score()]
model.fit(train, validation_data=val, callbacks=[keras.callbacks.TensorBoard("logs/run1")])
""",
            "tensorflow": """accuracy.update_state(y, model(x, training=False))  # tf.keras.metrics.SparseCategoricalAccuracy()
tf.summary.scalar("accuracy", accuracy.result(), step=step)
""",
            "pytorch": """accuracy = (model(x_val).argmax(1) == y_val).float().mean()
writer.add_scalar("val/accuracy", accuracy, step)
""",
            "lightning": """def validation_step(self, batch, batch_idx):
    x, y = batch
    self.log("val_acc", self.accuracy(self(x), y))  # torchmetrics.classification.MulticlassAccuracy
""",
            "huggingface": """def compute_metrics(prediction):
    return {"accuracy": (prediction.predictions.argmax(-1) == prediction.label_ids).mean()}

trainer = Trainer(..., compute_metrics=compute_metrics)
""",
        },
        urls={
            "keras": "https://keras.io/api/metrics/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/summary/scalar",
            "pytorch": "https://pytorch.org/docs/stable/tensorboard.html",
            "lightning": "https://lightning.ai/docs/torchmetrics/stable/",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
        },
    ),
)
