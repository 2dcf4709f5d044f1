"""Starting a training again so that its log stays one curve, and keeping it from standing still."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_TF_CHECKPOINT = "https://www.tensorflow.org/guide/checkpoint"
_TORCH_SAVING = "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
_TORCH_TENSORBOARD = "https://pytorch.org/docs/stable/tensorboard.html"
_KERAS_FIT = "https://keras.io/api/models/model_training_apis/#fit-method"
_LIGHTNING_CHECKPOINT = "https://lightning.ai/docs/pytorch/stable/common/checkpointing_basic.html"
_HF_TRAINER = "https://huggingface.co/docs/transformers/main_classes/trainer"

FIXES = (
    Fix(
        id="directory-per-run",
        title=Message("Give every training a directory of its own"),
        why=Message("TensorBoard joins all event files of a directory into one curve, whichever training wrote them."),
        check=Message("The run selector shows two runs, and neither curve runs back."),
        cost=Cost.ONE_LINE,
        effect=Message("One curve a training, and both can be compared."),
        source=sources.TB_RUNS,
        figure=Figure.STEPS_IN_LOG,
        code={
            "keras": """log_dir = f"logs/{datetime.now():%Y%m%d-%H%M%S}"
model.fit(x, y, callbacks=[keras.callbacks.TensorBoard(log_dir)])
""",
            "tensorflow": """writer = tf.summary.create_file_writer(f"logs/{datetime.now():%Y%m%d-%H%M%S}")
""",
            "pytorch": """writer = SummaryWriter()  # without a directory: runs/<date>_<host>, a new one each time
""",
            "lightning": """logger = TensorBoardLogger("logs", name="exp")  # without a version: version_0, version_1, …
""",
            "huggingface": """args = TrainingArguments(..., logging_dir=f"logs/{datetime.now():%Y%m%d-%H%M%S}")
""",
        },
        urls={
            "keras": "https://keras.io/api/callbacks/tensorboard/",
            "tensorflow": "https://www.tensorflow.org/tensorboard/get_started",
            "pytorch": _TORCH_TENSORBOARD,
            "lightning": "https://lightning.ai/docs/pytorch/stable/extensions/generated/lightning.pytorch.loggers.TensorBoardLogger.html",
            "huggingface": _HF_TRAINER,
        },
    ),
    Fix(
        id="checkpoint-whole-state",
        title=Message("Save weights, optimizer and step together, and often"),
        why=Message(
            "Weights alone start the optimizer's moments, the schedule and the counter again. With a checkpoint every few minutes, no more "
            "than that is ever done twice."
        ),
        check=Message("After a restart the first step follows the last one of the checkpoint, and the loss goes on at its level."),
        cost=Cost.ONE_LINE,
        effect=Message("A restart goes on where the checkpoint was written, with the optimizer's state."),
        source=sources.TF_CHECKPOINT,
        figure=Figure.STEPS_IN_LOG,
        code={
            "keras": """backup = keras.callbacks.BackupAndRestore("backup", save_freq=500)
model.fit(x, y, epochs=50, callbacks=[backup])  # the same call again goes on where it stopped
""",
            "tensorflow": """step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=3)
checkpoint.restore(manager.latest_checkpoint)
while step < total_steps:
    train_step(next(batches))
    step.assign_add(1)
    if step % 500 == 0:
        manager.save()
""",
            "pytorch": """parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
torch.save({"step": step, **{name: part.state_dict() for name, part in parts.items()}}, "last.pt")
# to resume:
state = torch.load("last.pt")
for name, part in parts.items():
    part.load_state_dict(state[name])
step = state["step"] + 1
""",
            "lightning": """trainer = Trainer(callbacks=[ModelCheckpoint(every_n_train_steps=500, save_last=True)])
trainer.fit(model, data, ckpt_path="last")
""",
            "huggingface": """args = TrainingArguments(..., save_steps=500)
trainer.train(resume_from_checkpoint=True)
""",
            "jax": """manager = ocp.CheckpointManager("/checkpoints", options=ocp.CheckpointManagerOptions(save_interval_steps=500))
state = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(state))
""",
        },
        urls={
            "keras": "https://keras.io/api/callbacks/backup_and_restore/",
            "tensorflow": _TF_CHECKPOINT,
            "pytorch": _TORCH_SAVING,
            "lightning": _LIGHTNING_CHECKPOINT,
            "huggingface": _HF_TRAINER,
            "jax": "https://orbax.readthedocs.io/en/latest/guides/checkpoint/orbax_checkpoint_101.html",
        },
    ),
    Fix(
        id="resume-step",
        title=Message("Tell the second training at which step it begins"),
        why=Message("A counter that starts at zero writes over the first curve, and starts schedules that depend on it again."),
        check=Message("The first step of the new event file is above the last one of the old file."),
        cost=Cost.ONE_LINE,
        effect=Message("The second curve continues the first one, and schedules do not begin again."),
        source=sources.KERAS_FIT,
        figure=Figure.STEPS_IN_LOG,
        code={
            "keras": """board = keras.callbacks.TensorBoard("logs/run1")
model.fit(x, y, initial_epoch=20, epochs=50, callbacks=[board])  # epochs is the number of the last one
""",
            "tensorflow": """for step in range(int(checkpoint.step), total_steps):
    tf.summary.scalar("loss", train_step(next(batches)), step=step)
""",
            "pytorch": """for step in range(state["step"] + 1, total_steps):
    writer.add_scalar("train/loss", train_step(next(batches)), step)
# Stable-Baselines3: model.learn(100_000, reset_num_timesteps=False)
""",
            "lightning": """trainer.fit(model, data, ckpt_path="last")  # restores the global step; loading the weights does not
""",
        },
        urls={
            "keras": _KERAS_FIT,
            "tensorflow": _TF_CHECKPOINT,
            "pytorch": _TORCH_SAVING,
            "lightning": _LIGHTNING_CHECKPOINT,
        },
    ),
    Fix(
        id="purge-step",
        title=Message("Say in the log what the second training replaces"),
        why=Message("TensorBoard then hides the points of the first training from that step on. They stay in the file."),
        check=Message("The curve no longer runs back once TensorBoard is started again."),
        cost=Cost.ONE_LINE,
        effect=Message("TensorBoard hides what the second training did again."),
        source=sources.TORCH_TENSORBOARD,
        figure=Figure.STEPS_IN_LOG,
        code={
            "pytorch": """writer = SummaryWriter("logs/run1", purge_step=state["step"] + 1)
""",
            "lightning": """logger = TensorBoardLogger("logs", name="exp", version=0, purge_step=resumed_at + 1)
""",
        },
        urls={"pytorch": _TORCH_TENSORBOARD, "lightning": _TORCH_TENSORBOARD},
    ),
    Fix(
        id="find-stall",
        title=Message("Have the process say where it waits"),
        why=Message("A stack of every thread names the call that does not return: a queue, a lock, a file, a collective."),
        check=Message("The next stall leaves stacks in the output; without one nothing is printed."),
        cost=Cost.ONE_LINE,
        effect=Message("The call that does not return is named."),
        source=sources.PYTHON_FAULTHANDLER,
        figure=Figure.STEP_TIME,
        code={
            "keras": """import faulthandler

class Watch(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        faulthandler.dump_traceback_later(300)  # prints all stacks unless the next batch begins within 5 minutes
""",
            "pytorch": """import faulthandler

for batch in loader:
    faulthandler.dump_traceback_later(300)  # prints all stacks unless the next step begins within 5 minutes
    train_step(batch)
faulthandler.cancel_dump_traceback_later()
""",
            "jax": """import faulthandler

for batch in batches:
    faulthandler.dump_traceback_later(300)
    state = jax.block_until_ready(train_step(state, batch))
""",
        },
        urls={
            "keras": "https://docs.python.org/3/library/faulthandler.html",
            "pytorch": "https://docs.python.org/3/library/faulthandler.html",
            "jax": "https://docs.python.org/3/library/faulthandler.html",
        },
    ),
    Fix(
        id="stall-timeout",
        title=Message("Let waiting end in an error, and resume from the last checkpoint"),
        why=Message("A job that fails after minutes can be started again; one that waits is paid for until somebody looks."),
        check=Message("A worker that is killed by hand ends the job with a message."),
        cost=Cost.ONE_LINE,
        effect=Message("A stall costs minutes instead of hours."),
        source=sources.TORCH_DISTRIBUTED,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """loader = DataLoader(dataset, num_workers=4, timeout=120)  # seconds for one batch
torch.distributed.init_process_group("nccl", timeout=timedelta(minutes=10))
""",
            "lightning": """trainer = Trainer(strategy=DDPStrategy(timeout=timedelta(minutes=10)))
""",
            "huggingface": """args = TrainingArguments(..., ddp_timeout=600)
""",
        },
        urls={
            "pytorch": "https://pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group",
            "lightning": "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.strategies.DDPStrategy.html",
            "huggingface": _HF_TRAINER,
        },
    ),
)
