"""What to try when the model does not even follow its training data, or was stopped before it did."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="train-longer",
        title=Message("Train for more steps, until validation no longer improves"),
        why=Message("A loss that still falls at the end has not shown yet what the model can reach."),
        check=Message("The loss levels off before the run ends, and early stopping ends the run."),
        cost=Cost.RETRAIN,
        effect=Message("The loss goes on along its curve until it levels off."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.VALIDATION_LOSS,
        code={
            "keras": """stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=«patience: 5», restore_best_weights=True)
model.fit(train, validation_data=val, epochs=200, callbacks=[stop])  # was 20
""",
            "pytorch": """best, waited = float("inf"), 0
for epoch in range(200):  # was 20
    train_one_epoch(model)
    val_loss = evaluate(model)
    best, waited = (val_loss, 0) if val_loss < best else (best, waited + 1)
    if waited >= «patience: 5»:
        break
""",
            "lightning": """from lightning.pytorch.callbacks import EarlyStopping

trainer = Trainer(max_epochs=200, callbacks=[EarlyStopping(monitor="val_loss", patience=«patience: 5»)])
""",
            "huggingface": """args = TrainingArguments(..., num_train_epochs=10)  # was 3
""",
        },
        urls={
            "pytorch": "https://pytorch.org/tutorials/beginner/basics/optimization_tutorial.html",
            "keras": "https://keras.io/api/callbacks/early_stopping/",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/early_stopping.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
        },
    ),
    Fix(
        id="raise-learning-rate",
        title=Message("Raise the learning rate by a factor of 3 to 10"),
        why=Message("A smooth loss that creeps has room for longer steps: it falls as far in a fraction of the time."),
        check=Message("The loss falls several times as fast, without jumps."),
        cost=Cost.RETRAIN,
        effect=Message("The best rate is usually within a factor of two below the largest one that does not diverge."),
        source=sources.BENGIO_2012,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """model.compile(optimizer=keras.optimizers.Adam(learning_rate=«higher_rate: 1e-3»), loss=loss)  # was «rate: 1e-4»
""",
            "pytorch": """optimizer = torch.optim.Adam(model.parameters(), lr=«higher_rate: 1e-3»)  # was «rate: 1e-4»
""",
            "huggingface": """args = TrainingArguments(..., learning_rate=«higher_rate: 5e-5», warmup_ratio=0.05)  # was «rate: 5e-6»
""",
            "jax": """optimizer = optax.adam(«higher_rate: 1e-3»)  # was «rate: 1e-4»
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "keras": "https://keras.io/api/optimizers/",
            "pytorch": "https://pytorch.org/docs/stable/optim.html",
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizers.html",
        },
    ),
    Fix(
        id="less-regularization",
        title=Message("Take regularization out until the training data is learned"),
        why=Message("Weight decay, penalties, dropout and augmentation hold back a model that does not even fit its training data."),
        check=Message("Training accuracy rises well above its old level; add regularization again when validation falls behind."),
        cost=Cost.RETRAIN,
        effect=Message("A network that trains fits even random labels; one that does not fit its training data is held back."),
        source=sources.ZHANG_2016,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """x = layers.Dense(256, activation="relu")(x)  # without kernel_regularizer=keras.regularizers.L2(1e-1)
x = layers.Dropout(0.1)(x)  # was 0.6
""",
            "pytorch": """optimizer = torch.optim.AdamW(model.parameters(), lr=«rate: 1e-3», weight_decay=1e-4)  # was 1.0
""",
            "huggingface": """args = TrainingArguments(..., weight_decay=0.0)
""",
            "jax": """optimizer = optax.adamw(«rate: 1e-3», weight_decay=1e-4)  # was 1.0
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizers.html",
            "keras": "https://keras.io/api/layers/regularizers/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.optim.AdamW.html",
        },
    ),
    Fix(
        id="larger-model",
        title=Message("Give the model more layers or units"),
        why=Message("A linear model or a narrow layer cannot represent the function that the task asks for."),
        check=Message("Training loss falls below its old plateau. If it does not, size was not the limit."),
        cost=Cost.RETRAIN,
        effect=Message("The loss of language models falls as a power of the number of parameters, as long as data does not limit it."),
        source=sources.KAPLAN_2020,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """model = keras.Sequential([
    layers.Dense(256, activation="relu"),  # was 4
    layers.Dense(256, activation="relu"),
    layers.Dense(classes),
])
""",
            "pytorch": """model = nn.Sequential(
    nn.Linear(features, 256), nn.ReLU(),  # was 4
    nn.Linear(256, 256), nn.ReLU(),
    nn.Linear(256, classes),
)
""",
            "jax": """model = nn.Sequential([nn.Dense(256), nn.relu, nn.Dense(256), nn.relu, nn.Dense(classes)])  # flax.linen, was 4
""",
        },
        urls={
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html",
            "keras": "https://keras.io/guides/sequential_model/",
            "pytorch": "https://pytorch.org/docs/stable/nn.html",
        },
    ),
    Fix(
        id="stronger-architecture",
        title=Message("Use an architecture made for this kind of data"),
        why=Message(
            "Convolutions with residual links for images and transformers for text learn what a plain network of any size does not."
        ),
        check=Message("Training loss falls below its old plateau within the first epochs."),
        cost=Cost.REDESIGN,
        effect=Message(
            "A residual network of 152 layers about halved the error of earlier ones on ImageNet, with fewer operations than VGG."
        ),
        source=sources.HE_2015_RESNET,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """base = keras.applications.ResNet50V2(include_top=False, pooling="avg", input_shape=(224, 224, 3))
model = keras.Sequential([base, layers.Dense(classes)])
""",
            "pytorch": """from torchvision.models import ResNet50_Weights, resnet50

model = resnet50(weights=ResNet50_Weights.DEFAULT)
model.fc = nn.Linear(model.fc.in_features, classes)
""",
        },
        urls={
            "keras": "https://keras.io/api/applications/",
            "pytorch": "https://pytorch.org/vision/stable/models.html",
        },
    ),
    Fix(
        id="feature-engineering",
        title=Message("Give the model better features"),
        why=Message("Scaled inputs, combinations of columns and embeddings of categories make a function simple enough to be learned."),
        check=Message("A small model with the new features reaches a lower training loss than a large one without them."),
        cost=Cost.REDESIGN,
        effect=Message("Crosses of columns let a linear model learn what needs a combination of them; scaled columns let it converge."),
        source=sources.ML_CRASH_COURSE,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """space = keras.utils.FeatureSpace(
    features={"age": "float_normalized", "city": "string_categorical", "job": "string_categorical"},
    crosses=[keras.utils.FeatureSpace.cross(("city", "job"), crossing_dim=64)],
)
space.adapt(train.map(lambda x, y: x))
train = train.map(lambda x, y: (space(x), y))
""",
            "pytorch": """mean, spread = x_train.mean(0), x_train.std(0)
scaled = (x_train - mean) / spread
x_train = torch.cat([scaled, scaled**2, scaled[:, :1] * scaled[:, 1:2]], dim=1)
""",
        },
        urls={"pytorch": "https://pytorch.org/docs/stable/generated/torch.cat.html", "keras": "https://keras.io/api/utils/feature_space/"},
    ),
)
