"""What to check in the data, and what to try when its classes, its split or its labels are the trouble."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="check-split",
        title=Message("Look for examples that are in both sets"),
        why=Message("Duplicates, crops of one image or rows of one person on both sides make validation a test of memory."),
        check=Message("No example and no group is in both sets, and the validation score is at or below the training score."),
        cost=Cost.RETRAIN,
        effect=Message("The validation score becomes the true one, usually a worse one: leakage was found in 17 fields of science."),
        source=sources.KAPOOR_2022,
        figure=Figure.VALIDATION_LOSS,
        code={
            "keras": """def digests(examples):
    return {hash(x.tobytes()) for x in examples}

print(len(digests(x_train) & digests(x_val)), "examples are in both sets")
""",
            "pytorch": """def digests(dataset):
    return {hash(x.numpy().tobytes()) for x, _ in dataset}

print(len(digests(train_set) & digests(val_set)), "examples are in both sets")
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/guide/data",
            "pytorch": "https://pytorch.org/docs/stable/data.html",
        },
    ),
    Fix(
        id="check-features",
        title=Message("Find the input that gives the label away"),
        why=Message("A column that is computed from the label, or known only after it, solves the task in training and is absent in use."),
        check=Message("No single input predicts the label almost perfectly, and the loss falls as slowly as the task deserves."),
        cost=Cost.REDESIGN,
        effect=Message("The score in training comes down to what the model reaches in use."),
        source=sources.KAPOOR_2022,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """for column in range(x_train.shape[1]):
    print(column, abs(np.corrcoef(x_train[:, column], y_train)[0, 1]))
""",
            "pytorch": """for column in range(x_train.shape[1]):
    print(column, torch.corrcoef(torch.stack([x_train[:, column], y_train.float()]))[0, 1].abs().item())
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/guide/keras/preprocessing_layers",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.corrcoef.html",
        },
    ),
    Fix(
        id="check-labels",
        title=Message("Look at the training examples that the model gets wrong"),
        why=Message("Wrong or shuffled training labels hold training accuracy down while clean validation labels do not."),
        check=Message("The labels of the examples with the highest loss are right."),
        cost=Cost.RETRAIN,
        effect=Message("Ten common test sets held 3.3% wrong labels on average; with the labels corrected the ranking of models changes."),
        source=sources.NORTHCUTT_2021,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """losses = keras.losses.sparse_categorical_crossentropy(y_train, model.predict(x_train), from_logits=True)
for i in np.argsort(-np.asarray(losses))[:20]:
    print(i, y_train[i])
""",
            "pytorch": """with torch.no_grad():
    losses = nn.functional.cross_entropy(model(x_train), y_train, reduction="none")
print(losses.topk(20).indices)
""",
        },
        urls={
            "keras": "https://keras.io/api/losses/probabilistic_losses/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html",
        },
    ),
    Fix(
        id="representative-validation",
        title=Message("Draw the validation set at random, with all classes"),
        why=Message("The first files of a sorted folder, or the easy cases alone, are not what the model will meet."),
        check=Message("Shares of the classes agree between both sets, and so does the difficulty of the examples."),
        cost=Cost.RETRAIN,
        effect=Message(
            "Training and validation become comparable; stratified splits estimate with less variance and bias than plain ones."
        ),
        source=sources.KOHAVI_1995,
        figure=Figure.GAP,
        code={
            "keras": """from sklearn.model_selection import train_test_split

x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, stratify=y, random_state=0)
""",
            "pytorch": """from sklearn.model_selection import train_test_split

train_ids, val_ids = train_test_split(range(len(dataset)), test_size=0.2, stratify=labels, random_state=0)
train_set, val_set = torch.utils.data.Subset(dataset, train_ids), torch.utils.data.Subset(dataset, val_ids)
""",
        },
        urls={
            "keras": "https://keras.io/api/models/model_training_apis/#fit-method",
            "pytorch": "https://pytorch.org/docs/stable/data.html#torch.utils.data.Subset",
        },
    ),
    Fix(
        id="imbalance-metric",
        title=Message("Log a metric that sees rare classes"),
        why=Message("Accuracy is as high as the most frequent class is frequent; balanced accuracy, F1 and the area under PR are not."),
        check=Message("The new metric is near its value for a guess now, and rises once the model tells the classes apart."),
        cost=Cost.ONE_LINE,
        effect=Message("Precision and recall show what accuracy hides where one class is rare."),
        source=sources.SAITO_2015,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """model.compile(
    optimizer="adam", loss=loss,
    metrics=["accuracy", keras.metrics.F1Score(average="macro"), keras.metrics.AUC(curve="PR", multi_label=True)],
)
""",
            "pytorch": """from torchmetrics.classification import MulticlassAccuracy

balanced = MulticlassAccuracy(num_classes=classes, average="macro")
writer.add_scalar("val/balanced_accuracy", balanced(predictions, targets), step)
""",
        },
        urls={
            "pytorch": "https://lightning.ai/docs/torchmetrics/stable/classification/accuracy.html",
            "keras": "https://keras.io/api/metrics/classification_metrics/",
            "lightning": "https://lightning.ai/docs/torchmetrics/stable/classification/accuracy.html",
        },
    ),
    Fix(
        id="class-weights",
        title=Message("Weight the classes by how rare they are"),
        why=Message("With equal weights, always saying the frequent class is the cheapest way to a low loss."),
        check=Message("The model predicts every class, and balanced accuracy rises above that of a guess."),
        cost=Cost.RETRAIN,
        effect=Message("Recall of the rare class rises, at some cost in precision."),
        source=sources.TF_IMBALANCED,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """counts = np.bincount(y_train)
weights = {i: len(y_train) / (len(counts) * n) for i, n in enumerate(counts)}
model.fit(train, validation_data=val, class_weight=weights)
""",
            "pytorch": """counts = torch.bincount(y_train).float()
loss_fn = nn.CrossEntropyLoss(weight=counts.sum() / (len(counts) * counts))
""",
        },
        urls={
            "keras": "https://keras.io/examples/structured_data/imbalanced_classification/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
        },
    ),
    Fix(
        id="resample-classes",
        title=Message("Draw rare classes more often"),
        why=Message("Batches in which every class appears give a gradient to each of them in every step."),
        check=Message("Batches hold about as many examples of each class, and the model predicts every class."),
        cost=Cost.RETRAIN,
        effect=Message(
            "Oversampling was the best or an equal cure for imbalance in almost all cases of a systematic study, without overfitting."
        ),
        source=sources.BUDA_2017,
        figure=Figure.VALIDATION_METRIC,
        code={
            "tensorflow": """per_class = [train.filter(lambda x, y, k=k: y == k).repeat() for k in range(classes)]
train = tf.data.Dataset.sample_from_datasets(per_class, weights=[1 / classes] * classes)
""",
            "pytorch": """weights = 1.0 / torch.bincount(y_train)[y_train]
sampler = torch.utils.data.WeightedRandomSampler(weights, num_samples=len(weights))
train = DataLoader(train_set, batch_size=64, sampler=sampler)
""",
        },
        urls={
            "tensorflow": "https://www.tensorflow.org/tutorials/structured_data/imbalanced_data",
            "pytorch": "https://pytorch.org/docs/stable/data.html",
        },
    ),
    Fix(
        id="focal-loss",
        title=Message("Use the focal loss"),
        why=Message("It counts examples less that are right already, so that the many easy ones do not drown the rare ones."),
        check=Message("The loss of rare classes falls, and balanced accuracy rises."),
        cost=Cost.RETRAIN,
        effect=Message(
            "On COCO, with a thousand easy examples for each hard one, 2.9 points of precision more than weighted cross entropy."
        ),
        source=sources.LIN_2017,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """model.compile(optimizer="adam", loss=keras.losses.CategoricalFocalCrossentropy(gamma=2.0), metrics=["accuracy"])
""",
            "pytorch": """def focal_loss(logits, targets, gamma=2.0):
    cross_entropy = nn.functional.cross_entropy(logits, targets, reduction="none")
    return ((1 - torch.exp(-cross_entropy)) ** gamma * cross_entropy).mean()
""",
        },
        urls={
            "keras": "https://keras.io/api/losses/probabilistic_losses/",
            "pytorch": "https://pytorch.org/vision/stable/generated/torchvision.ops.sigmoid_focal_loss.html",
        },
    ),
    Fix(
        id="label-smoothing",
        title=Message("Smooth the labels"),
        why=Message("A target of 0.9 instead of 1 does not reward a model for being ever more certain, of its mistakes as well."),
        check=Message("Validation loss no longer rises while accuracy improves. The training loss has a higher floor."),
        cost=Cost.RETRAIN,
        effect=Message("0.2 points of error less on ImageNet."),
        source=sources.SZEGEDY_2015,
        figure=Figure.VALIDATION_LOSS,
        code={
            "keras": """loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
""",
            "pytorch": """loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
""",
            "huggingface": """args = TrainingArguments(..., label_smoothing_factor=0.1)
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "keras": "https://keras.io/api/losses/probabilistic_losses/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
        },
    ),
    Fix(
        id="larger-validation-set",
        title=Message("Evaluate on more examples, always the same ones"),
        why=Message("The jitter of a mean falls with the root of the number of examples: four times as many halve it."),
        check=Message("Two evaluations of the same weights agree, and the jitter is small against the improvement."),
        cost=Cost.ONE_LINE,
        effect=Message("Four times the examples halve the jitter, whose standard deviation falls with their root."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.VALIDATION_LOSS,
        code={
            "keras": """model.fit(train, validation_data=val, validation_steps=None)  # the whole set, was validation_steps=5
""",
            "pytorch": """val = DataLoader(val_set, batch_size=256, shuffle=False, drop_last=False)
model.eval()
with torch.no_grad():
    val_loss = sum(loss_fn(model(x), y).item() * len(x) for x, y in val) / len(val_set)
""",
            "lightning": """trainer = Trainer(limit_val_batches=1.0)  # was 0.1
""",
        },
        urls={
            "pytorch": "https://pytorch.org/docs/stable/data.html",
            "keras": "https://keras.io/api/models/model_training_apis/",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/trainer.html",
        },
    ),
    Fix(
        id="more-data",
        title=Message("Get more training examples"),
        why=Message("What a model learns by heart from a thousand examples it has to understand from a hundred thousand."),
        check=Message("With half of the data the gap is wider: then more data will narrow it."),
        cost=Cost.REDESIGN,
        effect=Message("The error falls as a power of the number of examples, with exponents of 0.07 to 0.35 in four fields."),
        source=sources.HESTNESS_2017,
        figure=Figure.GAP,
        code={
            "keras": """for share in (0.25, 0.5, 1.0):
    model = make_model()
    n = int(share * len(x_train))
    model.fit(x_train[:n], y_train[:n], validation_data=(x_val, y_val))
""",
            "pytorch": """for share in (0.25, 0.5, 1.0):
    model = make_model()
    subset = torch.utils.data.Subset(train_set, range(int(share * len(train_set))))
    train_and_evaluate(model, subset)
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/tutorials/keras/overfit_and_underfit",
            "pytorch": "https://pytorch.org/docs/stable/data.html#torch.utils.data.Subset",
        },
    ),
    Fix(
        id="monitor-metric",
        title=Message("Choose the checkpoint by the metric that matters"),
        why=Message("Where loss and metric disagree, the best of one is not the best of the other."),
        check=Message("The kept checkpoint has the best metric of the run."),
        cost=Cost.ONE_LINE,
        effect=Message("The kept checkpoint is the best by the metric; loss and accuracy can have their best values epochs apart."),
        source=sources.KERAS_CHECKPOINT,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """keep_best = keras.callbacks.ModelCheckpoint("best.keras", monitor="val_accuracy", mode="max", save_best_only=True)
model.fit(train, validation_data=val, callbacks=[keep_best])
""",
            "pytorch": """best = 0.0
for epoch in range(epochs):
    train_one_epoch(model)
    accuracy = evaluate(model)
    if accuracy > best:
        best = accuracy
        torch.save(model.state_dict(), "best.pt")
""",
            "lightning": """from lightning.pytorch.callbacks import ModelCheckpoint

trainer = Trainer(callbacks=[ModelCheckpoint(monitor="val_acc", mode="max")])
""",
            "huggingface": """args = TrainingArguments(..., load_best_model_at_end=True, metric_for_best_model="eval_accuracy")
""",
        },
        urls={
            "pytorch": "https://pytorch.org/tutorials/beginner/saving_loading_models.html",
            "keras": "https://keras.io/api/callbacks/model_checkpoint/",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/checkpointing.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
        },
    ),
    Fix(
        id="scale-inputs",
        title=Message("Scale inputs and targets to a spread near one"),
        why=Message("Inputs in the hundreds drive units out of range, and the gradients of their weights are as large."),
        check=Message("The activations of the first layer lie within a few units of zero, and the first loss is near that of a guess."),
        cost=Cost.RETRAIN,
        effect=Message("Convergence is usually faster when each input has mean zero and the same variance."),
        source=sources.LECUN_1998,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """normalize = layers.Normalization()
normalize.adapt(x_train)  # the mean and the spread of each input, of the training data alone
model = keras.Sequential([normalize, layers.Dense(64, activation="relu"), layers.Dense(classes)])
""",
            "tensorflow": """mean, variance = tf.nn.moments(x_train, axes=[0])
train = train.map(lambda x, y: ((x - mean) / tf.sqrt(variance + 1e-6), y))
""",
            "pytorch": """mean, spread = x_train.mean(0), x_train.std(0).clamp_min(1e-6)  # of the training data alone
x_train, x_val = (x_train - mean) / spread, (x_val - mean) / spread
y_train = (y_train - y_mean) / y_spread  # in a regression; the prediction is y * y_spread + y_mean
""",
            "jax": """mean, spread = x_train.mean(0), x_train.std(0) + 1e-6
x_train = (x_train - mean) / spread
""",
        },
        urls={
            "keras": "https://keras.io/api/layers/preprocessing_layers/numerical/normalization/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/nn/moments",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.std.html",
            "jax": "https://docs.jax.dev/en/latest/jax.numpy.html",
        },
    ),
    Fix(
        id="look-at-batch",
        title=Message("Look at a batch as the model gets it, inputs beside labels"),
        why=Message(
            "Labels that do not belong to their inputs, or inputs that are all alike, leave nothing to learn, and no other log shows them."
        ),
        check=Message("Each label fits its input, and the inputs differ from one another with a mean near zero and a spread near one."),
        cost=Cost.ONE_LINE,
        effect=Message(
            "Shuffled labels, empty inputs and wrong scales are seen at once, in the one place where nothing lies between data and model."
        ),
        source=sources.KARPATHY_2019,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """x, y = next(iter(train))  # behind all shuffling, augmentation and scaling
print(x.shape, float(tf.reduce_mean(x)), float(tf.math.reduce_std(x)), np.bincount(y))
with tf.summary.create_file_writer("logs/batch").as_default():
    tf.summary.image("batch", x, step=0, max_outputs=16)
    tf.summary.text("labels", str(y[:16].numpy()), step=0)
""",
            "pytorch": """x, y = next(iter(train))  # behind all shuffling, augmentation and scaling
print(x.shape, x.mean().item(), x.std().item(), torch.bincount(y))
writer.add_images("batch", x[:16], 0)  # a table: print(torch.cat([x[:16], y[:16, None]], dim=1))
writer.add_text("labels", str(y[:16].tolist()), 0)
""",
            "huggingface": """batch = next(iter(trainer.get_train_dataloader()))
for ids, label in zip(batch["input_ids"][:8], batch["labels"][:8]):
    print(label, tokenizer.decode(ids))
""",
            "jax": """x, y = next(batches)
print(x.shape, x.mean(), x.std(), jnp.bincount(y), y[:16])
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/tensorboard/image_summaries",
            "pytorch": "https://pytorch.org/docs/stable/tensorboard.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "jax": "https://docs.jax.dev/en/latest/jax.numpy.html",
        },
    ),
)
