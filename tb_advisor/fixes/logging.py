"""What to log so that more can be checked."""

from __future__ import annotations

from tb_advisor.fixes.fix import Fix
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
)
