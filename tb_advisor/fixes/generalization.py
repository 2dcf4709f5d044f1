"""What to try when the model is good on training data and worse on new data."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="early-stopping",
        title=Message("Stop at the best validation loss and keep that checkpoint"),
        why=Message("Training ends a few evaluations after the best one, and the best weights are the ones that remain."),
        check=Message("The run ends soon after its best validation loss, and the restored model scores that loss."),
        cost=Cost.ONE_LINE,
        effect=Message("The best checkpoint, and the time after it. More patience found errors about 4% lower, in four times the time."),
        source=sources.PRECHELT_1998,
        figure=Figure.VALIDATION_LOSS,
        code={
            "keras": """stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=«patience: 5», restore_best_weights=True)
model.fit(train, validation_data=val, callbacks=[stop])
# until then keep the checkpoint of step «best_step: with the lowest val_loss»
""",
            "pytorch": """best, patience = float("inf"), «patience: 5»
for epoch in range(epochs):
    train_one_epoch(model)
    val_loss = evaluate(model)
    if val_loss < best:
        best, waited = val_loss, 0
        torch.save(model.state_dict(), "best.pt")
    else:
        waited += 1
        if waited >= patience:
            break
model.load_state_dict(torch.load("best.pt"))  # of this run: the checkpoint of step «best_step: with the lowest val_loss»
""",
            "lightning": """from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

trainer = Trainer(callbacks=[
    EarlyStopping(monitor="val_loss", patience=«patience: 5»),
    ModelCheckpoint(monitor="val_loss", save_top_k=1),  # of this run: step «best_step: with the lowest val_loss»
])
""",
            "huggingface": """args = TrainingArguments(
    ..., eval_strategy="steps", save_strategy="steps",
    load_best_model_at_end=True, metric_for_best_model="eval_loss",
)
trainer = Trainer(..., args=args, callbacks=[EarlyStoppingCallback(early_stopping_patience=«patience: 5»)])
""",
            "jax": """from flax.training.early_stopping import EarlyStopping

early_stop = EarlyStopping(min_delta=1e-3, patience=«patience: 5»)
for epoch in range(epochs):
    early_stop = early_stop.update(evaluate(params))
    if early_stop.should_stop:
        break
""",
        },
        urls={
            "jax": "https://flax.readthedocs.io/en/latest/api_reference/flax.training.html",
            "keras": "https://keras.io/api/callbacks/early_stopping/",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/early_stopping.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/callback",
            "pytorch": "https://pytorch.org/tutorials/beginner/saving_loading_models.html",
        },
    ),
    Fix(
        id="weight-decay",
        title=Message("Add weight decay, or an L1 or L2 penalty"),
        why=Message("Small weights make smooth functions, which cannot follow every training example."),
        check=Message("The gap between training and validation loss becomes smaller; the best validation loss does not rise."),
        cost=Cost.RETRAIN,
        effect=Message("Decoupled weight decay gave 15% less test error than L2 regularization with Adam, on CIFAR-10 and ImageNet32."),
        source=sources.LOSHCHILOV_2017,
        figure=Figure.GAP,
        code={
            "keras": """optimizer = keras.optimizers.AdamW(learning_rate=«rate: 1e-3», weight_decay=1e-4)
model.compile(optimizer=optimizer, loss=loss)
# or a penalty in the layers: layers.Dense(256, kernel_regularizer=keras.regularizers.L1L2(l1=0.0, l2=1e-4))
""",
            "pytorch": """optimizer = torch.optim.AdamW(model.parameters(), lr=«rate: 1e-3», weight_decay=1e-2)
""",
            "huggingface": """args = TrainingArguments(..., weight_decay=0.01)
""",
            "jax": """optimizer = optax.adamw(learning_rate=«rate: 1e-3», weight_decay=1e-4)
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "keras": "https://keras.io/api/optimizers/adamw/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.optim.AdamW.html",
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizers.html",
        },
    ),
    Fix(
        id="dropout",
        title=Message("Add dropout before the last layers"),
        why=Message("Units that are switched off at random cannot rely on each other to recall single examples."),
        check=Message("Training loss rises a little, validation loss falls and stays down longer."),
        cost=Cost.RETRAIN,
        effect=Message("Lower test error on images, speech and text, for two to three times as many steps."),
        source=sources.SRIVASTAVA_2014,
        figure=Figure.GAP,
        code={
            "keras": """x = layers.Dense(256, activation="relu")(x)
x = layers.Dropout(0.3)(x)
""",
            "pytorch": """self.head = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, classes))
""",
            "jax": """x = nn.Dropout(rate=0.3, deterministic=not train)(x)  # flax.linen
""",
        },
        urls={
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html",
            "keras": "https://keras.io/api/layers/regularization_layers/dropout/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.Dropout.html",
        },
    ),
    Fix(
        id="augment-data",
        title=Message("Augment the training data"),
        why=Message("Examples that never look the same twice cannot be learned by heart. It costs input time."),
        check=Message("Training loss falls more slowly and validation loss reaches a lower value."),
        cost=Cost.RETRAIN,
        effect=Message("With RandAugment, 1.0 point of accuracy on ImageNet more than with the usual augmentation."),
        source=sources.CUBUK_2019,
        figure=Figure.GAP,
        code={
            "keras": """augment = keras.Sequential([
    layers.RandomFlip("horizontal"),
    layers.RandomRotation(0.1),
    layers.RandomZoom(0.1),
])
train = train.map(lambda x, y: (augment(x, training=True), y), num_parallel_calls=tf.data.AUTOTUNE)
""",
            "pytorch": """from torchvision.transforms import v2

transform = v2.Compose([
    v2.ToImage(),
    v2.RandomHorizontalFlip(),
    v2.RandomResizedCrop(224, scale=(0.7, 1.0)),
    v2.ToDtype(torch.float32, scale=True),
])
""",
        },
        urls={
            "keras": "https://keras.io/api/layers/preprocessing_layers/image_augmentation/",
            "pytorch": "https://pytorch.org/vision/stable/transforms.html",
        },
    ),
    Fix(
        id="smaller-model",
        title=Message("Use a smaller model"),
        why=Message("A model with fewer weights than the task needs for memorising has to generalise."),
        check=Message("Training and validation loss lie closer together, and the best validation loss is as good."),
        cost=Cost.RETRAIN,
        effect=Message("Less room to memorize. With too few weights both losses rise: then take some back."),
        source=sources.TF_OVERFITTING,
        figure=Figure.GAP,
        code={
            "keras": """model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(classes)])  # was 512
""",
            "pytorch": """model = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, classes))  # was 512
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/tutorials/keras/overfit_and_underfit",
            "pytorch": "https://pytorch.org/docs/stable/nn.html",
        },
    ),
    Fix(
        id="decay-learning-rate",
        title=Message("Lower the learning rate when validation stops improving"),
        why=Message("Smaller steps can reach a lower loss where large ones only circle around it."),
        check=Message("Validation loss falls again after the first drop of the learning rate, or the run can end there."),
        cost=Cost.RETRAIN,
        effect=Message(
            "A lower floor of the loss: on ImageNet the error drops at once where the rate is divided by ten, at epochs 30, 60 and 80."
        ),
        source=sources.GOYAL_2017,
        figure=Figure.VALIDATION_LOSS,
        code={
            "keras": """reduce = keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.3, patience=«patience: 5»)
model.fit(train, validation_data=val, callbacks=[reduce])
""",
            "pytorch": """scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=«patience: 5»)
for epoch in range(epochs):
    train_one_epoch(model)
    scheduler.step(evaluate(model))
""",
            "jax": """schedule = optax.cosine_decay_schedule(init_value=«rate: 1e-3», decay_steps=total_steps)
optimizer = optax.adamw(schedule)
""",
        },
        urls={
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html",
            "keras": "https://keras.io/api/callbacks/reduce_lr_on_plateau/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html",
        },
    ),
    Fix(
        id="ensemble",
        title=Message("Average the predictions of several models"),
        why=Message("Each model learns other examples by heart; what they have in common is what they learned."),
        check=Message("The validation metric of the mean is better than that of each member."),
        cost=Cost.RETRAIN,
        effect=Message("Five members lower the error of one and give better calibrated probabilities, for five times the cost."),
        source=sources.LAKSHMINARAYANAN_2016,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """inputs = keras.Input(x_train.shape[1:])
ensemble = keras.Model(inputs, layers.Average()([member(inputs) for member in members]))  # trained with other seeds
ensemble.compile(loss=loss, metrics=["accuracy"])
ensemble.evaluate(val)
""",
            "pytorch": """with torch.no_grad():
    probabilities = torch.stack([member(x).softmax(-1) for member in members]).mean(0)  # trained with other seeds
""",
        },
        urls={
            "keras": "https://keras.io/api/layers/merging_layers/average/",
            "pytorch": "https://pytorch.org/tutorials/intermediate/ensembling.html",
        },
    ),
)
