"""What to log so that more can be checked."""

from __future__ import annotations

from tb_advisor.fixes.fix import WRITERS, Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="log-validation-loss",
        title=Message("Evaluate on held-out data and log it"),
        why=Message("A second curve shows from which step on the model only memorises, and which checkpoint to keep."),
        check=Message("The Advisor lists a validation loss among the roles of the tags."),
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
        code={
            writer: """# on the command line: tensorboard --logdir logs --samples_per_plugin scalars=0
from tensorboard import program

tensorboard = program.TensorBoard()
tensorboard.configure(argv=[None, "--logdir", "logs", "--samples_per_plugin", "scalars=0"])
print(tensorboard.launch())
"""
            for writer in WRITERS
        },
        urls={"tensorflow": "https://github.com/tensorflow/tensorboard/blob/master/README.md"},
    ),
)
