"""What to check in the data, and what to try when its classes, its split or its labels are the trouble."""

from __future__ import annotations

from tb_advisor.fixes.fix import Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="check-split",
        title=Message("Look for examples that are in both sets"),
        why=Message("Duplicates, crops of one image or rows of one person on both sides make validation a test of memory."),
        check=Message("No example and no group is in both sets, and the validation score is at or below the training score."),
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
    ),
    Fix(
        id="check-features",
        title=Message("Find the input that gives the label away"),
        why=Message("A column that is computed from the label, or known only after it, solves the task in training and is absent in use."),
        check=Message("No single input predicts the label almost perfectly, and the loss falls as slowly as the task deserves."),
        code={
            "keras": """for column in range(x_train.shape[1]):
    print(column, abs(np.corrcoef(x_train[:, column], y_train)[0, 1]))
""",
            "pytorch": """for column in range(x_train.shape[1]):
    print(column, torch.corrcoef(torch.stack([x_train[:, column], y_train.float()]))[0, 1].abs().item())
""",
        },
    ),
    Fix(
        id="check-labels",
        title=Message("Look at the training examples that the model gets wrong"),
        why=Message("Wrong or shuffled training labels hold training accuracy down while clean validation labels do not."),
        check=Message("The labels of the examples with the highest loss are right."),
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
    ),
    Fix(
        id="representative-validation",
        title=Message("Draw the validation set at random, with all classes"),
        why=Message("The first files of a sorted folder, or the easy cases alone, are not what the model will meet."),
        check=Message("Shares of the classes agree between both sets, and so does the difficulty of the examples."),
        code={
            "keras": """from sklearn.model_selection import train_test_split

x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, stratify=y, random_state=0)
""",
            "pytorch": """from sklearn.model_selection import train_test_split

train_ids, val_ids = train_test_split(range(len(dataset)), test_size=0.2, stratify=labels, random_state=0)
train_set, val_set = torch.utils.data.Subset(dataset, train_ids), torch.utils.data.Subset(dataset, val_ids)
""",
        },
    ),
    Fix(
        id="imbalance-metric",
        title=Message("Log a metric that sees rare classes"),
        why=Message("Accuracy is as high as the most frequent class is frequent; balanced accuracy, F1 and the area under PR are not."),
        check=Message("The new metric is near its value for a guess now, and rises once the model tells the classes apart."),
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
            "keras": "https://keras.io/api/metrics/classification_metrics/",
            "lightning": "https://lightning.ai/docs/torchmetrics/stable/classification/accuracy.html",
        },
    ),
    Fix(
        id="class-weights",
        title=Message("Weight the classes by how rare they are"),
        why=Message("With equal weights, always saying the frequent class is the cheapest way to a low loss."),
        check=Message("The model predicts every class, and balanced accuracy rises above that of a guess."),
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
        code={
            "keras": """loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
""",
            "pytorch": """loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
""",
            "huggingface": """args = TrainingArguments(..., label_smoothing_factor=0.1)
""",
        },
        urls={
            "keras": "https://keras.io/api/losses/probabilistic_losses/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
        },
    ),
    Fix(
        id="larger-validation-set",
        title=Message("Evaluate on more examples, always the same ones"),
        why=Message("The jitter of a mean falls with the root of the number of examples: four times as many halve it."),
        check=Message("Two evaluations of the same weights agree, and the jitter is small against the improvement."),
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
            "keras": "https://keras.io/api/models/model_training_apis/",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/trainer.html",
        },
    ),
    Fix(
        id="more-data",
        title=Message("Get more training examples"),
        why=Message("What a model learns by heart from a thousand examples it has to understand from a hundred thousand."),
        check=Message("With half of the data the gap is wider: then more data will narrow it."),
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
    ),
    Fix(
        id="monitor-metric",
        title=Message("Choose the checkpoint by the metric that matters"),
        why=Message("Where loss and metric disagree, the best of one is not the best of the other."),
        check=Message("The kept checkpoint has the best metric of the run."),
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
            "keras": "https://keras.io/api/callbacks/model_checkpoint/",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/checkpointing.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
        },
    ),
)
