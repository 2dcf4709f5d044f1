"""What to try when several jobs are compared."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_PLAYBOOK = "https://developers.google.com/machine-learning/guides/deep-learning-tuning-playbook"
_KERAS_CHECKPOINT = "https://keras.io/api/callbacks/model_checkpoint/"
_KERAS_SEED = "https://keras.io/api/utils/python_utils/#set_random_seed-function"
_TORCH_SEED = "https://pytorch.org/docs/stable/notes/randomness.html"
_TF_HPARAMS = "https://www.tensorflow.org/tensorboard/hyperparameter_tuning_with_hparams"
_TORCH_HPARAMS = "https://pytorch.org/docs/stable/tensorboard.html#torch.utils.tensorboard.writer.SummaryWriter.add_hparams"

FIXES = (
    Fix(
        id="widen-search",
        title=Message("Search beyond the best value, by factors of three"),
        why=Message("A search has found an optimum only when both of its neighbours are worse."),
        check=Message("The best value lies inside the range that was tried, and this finding is gone."),
        cost=Cost.RETRAIN,
        effect=Message("The best value lies inside of what was tried."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """from tensorboard.plugins.hparams import api as hp

best = 0.1  # the value at the edge; for the lower edge divide
for rate in (best, 3 * best, 10 * best):
    logdir = f"logs/lr={rate:g}"
    model = make_model(learning_rate=rate)
    model.fit(train, validation_data=val, callbacks=[
        keras.callbacks.TensorBoard(logdir), hp.KerasCallback(logdir, {"learning_rate": rate}),
    ])
""",
            "pytorch": """best = 0.1  # the value at the edge; for the lower edge divide
for rate in (best, 3 * best, 10 * best):
    with SummaryWriter(f"logs/lr={rate:g}") as writer:
        val_loss = train_model(writer, lr=rate)
        writer.add_hparams({"lr": rate}, {"hparam/val_loss": val_loss}, run_name=".")
""",
            "huggingface": """best = 5e-5  # the value at the edge; for the lower edge divide
for rate in (best, 3 * best, 10 * best):
    args = TrainingArguments(..., learning_rate=rate, output_dir=f"out/lr={rate:g}")
    Trainer(model_init=make_model, args=args, ...).train()
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/hpo_train",
            "keras": _TF_HPARAMS,
            "pytorch": _TORCH_HPARAMS,
            "tensorflow": _PLAYBOOK,
        },
    ),
    Fix(
        id="narrow-search",
        title=Message("Leave the region that fails out of the search"),
        why=Message("No job trains there. The budget is better spent on the side of the border that trains, on a logarithmic scale."),
        check=Message("All jobs of the next search end, and the best value lies inside the range."),
        cost=Cost.RETRAIN,
        effect=Message("No job is spent where nothing trains."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """highest = 0.1  # the largest value that trained
for rate in np.geomspace(highest / 100, highest, 5):
    model = make_model(learning_rate=float(rate))
    model.fit(train, validation_data=val, callbacks=[keras.callbacks.TensorBoard(f"logs/lr={rate:g}")])
""",
            "pytorch": """highest = 0.1  # the largest value that trained
for rate in np.geomspace(highest / 100, highest, 5):
    train_model(SummaryWriter(f"logs/lr={rate:g}"), lr=float(rate))
""",
        },
        urls={"keras": _PLAYBOOK, "pytorch": _PLAYBOOK},
    ),
    Fix(
        id="more-seeds",
        title=Message("Run the best configurations with several seeds"),
        why=Message("The mean of n jobs moves by √n less than one job: with four seeds half as large a difference can be seen."),
        check=Message("The difference that means something gets smaller, or the order of the configurations changes."),
        cost=Cost.RETRAIN,
        effect=Message("Differences below the noise of the seed are no longer taken for progress."),
        source=sources.BOUTHILLIER_2021,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """for seed in range(4):
    keras.utils.set_random_seed(seed)
    model = make_model(**best)
    model.fit(train, validation_data=val, callbacks=[keras.callbacks.TensorBoard(f"logs/best_seed={seed}")])
""",
            "pytorch": """for seed in range(4):
    torch.manual_seed(seed)
    np.random.seed(seed)
    train_model(SummaryWriter(f"logs/best_seed={seed}"), **best)
""",
            "lightning": """for seed in range(4):
    L.seed_everything(seed, workers=True)
    trainer = L.Trainer(logger=TensorBoardLogger("logs", name=f"best_seed={seed}"))
    trainer.fit(make_model(**best), datamodule=data)
""",
            "huggingface": """for seed in range(4):
    args = TrainingArguments(..., seed=seed, output_dir=f"out/seed={seed}")
    Trainer(model_init=make_model, args=args, ...).train()
""",
            "jax": """for seed in range(4):
    params = model.init(jax.random.PRNGKey(seed), batch)
    train_model(params, logdir=f"logs/best_seed={seed}")
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/trainer.html#reproducibility",
            "jax": "https://docs.jax.dev/en/latest/random-numbers.html",
            "keras": _KERAS_SEED,
            "pytorch": _TORCH_SEED,
        },
    ),
    Fix(
        id="keep-best-checkpoint",
        title=Message("Keep the checkpoint with the best validation value of each job"),
        why=Message("Later checkpoints are worse or no better, and the one that is named must still be there when the search ends."),
        check=Message("The restored checkpoint gives the validation value that is named here."),
        cost=Cost.ONE_LINE,
        effect=Message("The best checkpoint of each job remains, rather than its last one."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """checkpoint = keras.callbacks.ModelCheckpoint("best.keras", monitor="val_loss", save_best_only=True)
model.fit(train, validation_data=val, callbacks=[checkpoint])
model = keras.models.load_model("best.keras")
""",
            "tensorflow": """if val_loss < best:
    best = val_loss
    manager.save()  # tf.train.CheckpointManager(checkpoint, logdir, max_to_keep=1)
""",
            "pytorch": """if val_loss < best:
    best = val_loss
    torch.save({"step": step, "model": model.state_dict(), "val_loss": val_loss}, f"{logdir}/best.pt")
""",
            "lightning": """trainer = L.Trainer(callbacks=[ModelCheckpoint(monitor="val_loss", save_top_k=1)])
trainer.fit(model, datamodule=data)
best = trainer.checkpoint_callback.best_model_path
""",
            "huggingface": """args = TrainingArguments(
    ..., eval_strategy="steps", save_strategy="steps",
    load_best_model_at_end=True, metric_for_best_model="eval_loss", save_total_limit=2,
)
""",
        },
        urls={
            "keras": _KERAS_CHECKPOINT,
            "tensorflow": "https://www.tensorflow.org/guide/checkpoint",
            "pytorch": "https://pytorch.org/tutorials/beginner/saving_loading_models.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/checkpointing_intermediate.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
        },
    ),
    Fix(
        id="compare-environments",
        title=Message("Log what no hyperparameter names: versions, commit, data, device"),
        why=Message("The same hyperparameters gave another result, so that the cause is something that the log does not hold."),
        check=Message("The texts of the two jobs differ where the cause is, or the job repeats the result of its siblings."),
        cost=Cost.ONE_LINE,
        effect=Message("What differs between equal jobs is in the log."),
        source=sources.TORCH_RANDOMNESS,
        figure=Figure.LOGGED_TAGS,
        code={
            "keras": """commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
device = tf.config.experimental.get_device_details(tf.config.list_physical_devices()[0])
with tf.summary.create_file_writer(logdir).as_default():
    tf.summary.text("environment", f"{tf.__version__} {commit} {device} {len(train_files)} files", step=0)
""",
            "pytorch": """commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
writer.add_text("environment", f"{torch.__version__} {commit} {torch.cuda.get_device_name()} {len(dataset)} examples")
""",
        },
        urls={"keras": "https://www.tensorflow.org/api_docs/python/tf/summary/text", "pytorch": _TORCH_SEED},
    ),
    Fix(
        id="use-sibling-settings",
        title=Message("Start from the settings of the sibling that trained and change one at a time"),
        why=Message("The job that fails first names the setting that breaks the training."),
        check=Message("The job with the sibling's settings trains; the one that fails differs from it in one setting."),
        cost=Cost.RETRAIN,
        effect=Message("The setting that breaks the training is found in as many jobs as there are differences."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """for name in failed:
    if failed[name] != trained[name]:
        settings = {**trained, name: failed[name]}
        model = make_model(**settings)
        model.fit(train, validation_data=val, callbacks=[keras.callbacks.TensorBoard(f"logs/{name}={failed[name]}")])
""",
            "pytorch": """for name in failed:
    if failed[name] != trained[name]:
        train_model(SummaryWriter(f"logs/{name}={failed[name]}"), **{**trained, name: failed[name]})
""",
        },
        urls={"keras": _PLAYBOOK, "pytorch": _PLAYBOOK},
    ),
)
