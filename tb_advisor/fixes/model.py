"""What to try with the model itself: its layers, its size, the precision of its numbers, and how it is served."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_TFMOT = "https://www.tensorflow.org/model_optimization/guide"
_TFLITE = "https://ai.google.dev/edge/litert/conversion/tensorflow/quantization"

FIXES = (
    Fix(
        id="activation-between",
        title=Message("Put an activation between the two layers"),
        why=Message("Without one the two compute what one of them can. With one the model can represent more for the same parameters."),
        check=Message("The finding is gone, and training loss falls below its old plateau."),
        cost=Cost.RETRAIN,
        effect=Message("Layers without activation between them are one linear map; with one they represent more."),
        source=sources.ML_CRASH_COURSE_NN,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """x = layers.Dense(256, activation="relu")(x)  # was without activation
outputs = layers.Dense(classes)(x)
""",
            "pytorch": """head = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Linear(256, classes))
""",
            "jax": """x = nn.relu(nn.Dense(256)(x))  # flax.linen
outputs = nn.Dense(classes)(x)
""",
        },
        urls={
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html",
            "keras": "https://keras.io/api/layers/activations/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.ReLU.html",
        },
    ),
    Fix(
        id="merge-layers",
        title=Message("Take the redundant layer out"),
        why=Message(
            "The layers that remain compute the same with fewer parameters. A loss that expects logits wants no softmax before it."
        ),
        check=Message("The number of parameters falls, and the validation metric stays."),
        cost=Cost.REDESIGN,
        effect=Message("The same function from fewer parameters."),
        source=sources.ML_CRASH_COURSE_NN,
        figure=Figure.MODEL_SIZE,
        code={
            "keras": """outputs = layers.Dense(classes)(x)  # one layer, no softmax: the loss takes logits
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
""",
            "pytorch": """model.head = nn.Linear(features, classes)  # one layer, no softmax: the loss takes logits
loss_fn = nn.CrossEntropyLoss()
""",
        },
        urls={
            "keras": "https://keras.io/api/losses/probabilistic_losses/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
        },
    ),
    Fix(
        id="global-pooling",
        title=Message("Average over height and width instead of flattening"),
        why=Message("Global average pooling hands one value a channel to the dense layer, which then has a hundredth of the weights."),
        check=Message("The dense layer no longer holds most of the parameters, and the validation metric stays or improves."),
        cost=Cost.REDESIGN,
        effect=Message("The dense layers lose most of their weights, and overfitting with them."),
        source=sources.LIN_2013,
        figure=Figure.MODEL_SIZE,
        code={
            "keras": """x = layers.GlobalAveragePooling2D()(x)  # was layers.Flatten()(x)
outputs = layers.Dense(classes)(x)
""",
            "pytorch": """head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
""",
            "jax": """x = x.mean(axis=(1, 2))  # was x.reshape((x.shape[0], -1))
outputs = nn.Dense(classes)(x)
""",
        },
        urls={
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html",
            "keras": "https://keras.io/api/layers/pooling_layers/global_average_pooling2d/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html",
        },
    ),
    Fix(
        id="depthwise-separable",
        title=Message("Use a depthwise separable convolution"),
        why=Message(
            "One filter a channel and a 1×1 convolution take an eighth or ninth of the weights and operations of a 3×3 convolution."
        ),
        check=Message("The convolution no longer holds most of the parameters, and the validation metric loses little."),
        cost=Cost.REDESIGN,
        effect=Message("An eighth or ninth of the operations for 1 point of accuracy on ImageNet."),
        source=sources.HOWARD_2017,
        figure=Figure.MODEL_SIZE,
        code={
            "keras": """x = layers.SeparableConv2D(256, 3, padding="same", activation="relu")(x)  # was layers.Conv2D
""",
            "pytorch": """separable = nn.Sequential(
    nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
    nn.Conv2d(channels, 256, 1),  # was nn.Conv2d(channels, 256, 3, padding=1)
)
""",
            "jax": """x = nn.Conv(x.shape[-1], (3, 3), feature_group_count=x.shape[-1])(x)
x = nn.Conv(256, (1, 1))(x)  # was nn.Conv(256, (3, 3))
""",
        },
        urls={
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html",
            "keras": "https://keras.io/api/layers/convolution_layers/separable_convolution2d/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.Conv2d.html",
        },
    ),
    Fix(
        id="prune-weights",
        title=Message("Prune weights while training goes on, then strip and compress"),
        why=Message("Weights that are almost zero are set to zero for good; the compressed model shrinks by about their share."),
        check=Message("After a few epochs of fine-tuning the validation metric is back, and the compressed file is smaller."),
        cost=Cost.RETRAIN,
        effect=Message("Half of the weights at no loss of accuracy for InceptionV3, and three quarters for two points."),
        source=sources.ZHU_2017,
        figure=Figure.MODEL_SIZE,
        code={
            "keras": """import tensorflow_model_optimization as tfmot  # needs tf_keras: TF_USE_LEGACY_KERAS=1

schedule = tfmot.sparsity.keras.PolynomialDecay(0.0, 0.5, begin_step=0, end_step=2000)
pruned = tfmot.sparsity.keras.prune_low_magnitude(model, pruning_schedule=schedule)
pruned.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
pruned.fit(train, validation_data=val, epochs=2, callbacks=[tfmot.sparsity.keras.UpdatePruningStep()])
final = tfmot.sparsity.keras.strip_pruning(pruned)
""",
            "pytorch": """from torch.nn.utils import prune

layers = [(m, "weight") for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
prune.global_unstructured(layers, pruning_method=prune.L1Unstructured, amount=0.5)
train_one_epoch(model)  # fine-tune with the zeros held
for module, name in layers:
    prune.remove(module, name)
""",
        },
        urls={
            "keras": f"{_TFMOT}/pruning/pruning_with_keras",
            "pytorch": "https://pytorch.org/tutorials/intermediate/pruning_tutorial.html",
        },
    ),
    Fix(
        id="quantize-weights",
        title=Message("Quantize to int8 after training, with representative data and a scale for each channel"),
        why=Message(
            "The model takes a quarter of the memory. Representative inputs set the ranges of activations, and a scale for "
            "each channel keeps one large weight from coarsening all others."
        ),
        check=Message("The converted model's accuracy on the validation data is within a point of the original's."),
        cost=Cost.ONE_LINE,
        effect=Message("A quarter of the size; within two points of the accuracy for most networks with a scale for each channel."),
        source=sources.KRISHNAMOORTHI_2018,
        figure=Figure.MODEL_SIZE,
        code={
            "keras": """def representative_dataset():
    for x, _ in train.unbatch().batch(1).take(200):
        yield [x]

converter = tf.lite.TFLiteConverter.from_keras_model(model)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = representative_dataset  # weights of convolutions get a scale for each channel
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
open("model.tflite", "wb").write(converter.convert())
""",
            "pytorch": """from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

quantize_(model.eval(), Int8DynamicActivationInt8WeightConfig())  # weights get a scale for each output channel
""",
        },
        urls={"keras": _TFLITE, "pytorch": "https://pytorch.org/ao/stable/index.html"},
    ),
    Fix(
        id="quantization-aware-training",
        title=Message("Fine-tune with quantization in the forward pass"),
        why=Message("The model learns weights that survive rounding: the accuracy that conversion alone would lose comes back."),
        check=Message("The quantized model's accuracy matches the original's, and the weights' outliers are fewer."),
        cost=Cost.RETRAIN,
        effect=Message("Within a point of the original's accuracy at 8 bits."),
        source=sources.KRISHNAMOORTHI_2018,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """import tensorflow_model_optimization as tfmot  # needs tf_keras: TF_USE_LEGACY_KERAS=1

quantized = tfmot.quantization.keras.quantize_model(model)
quantized.compile(optimizer=keras.optimizers.Adam(1e-5), loss=loss, metrics=["accuracy"])
quantized.fit(train, validation_data=val, epochs=2)
""",
            "pytorch": """from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.qat import QATConfig

base = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8)
quantize_(model, QATConfig(base, step="prepare"))
train_one_epoch(model)
quantize_(model, QATConfig(base, step="convert"))
""",
        },
        urls={
            "keras": f"{_TFMOT}/quantization/training_example",
            "pytorch": "https://pytorch.org/ao/stable/index.html",
        },
    ),
    Fix(
        id="distill-model",
        title=Message("Train a small model on the outputs of this one"),
        why=Message("The large model's soft outputs say more than labels: a student of a fraction of its size keeps most of its accuracy."),
        check=Message(
            "The student's validation metric is close to the teacher's, and above that of the same model trained on labels alone."
        ),
        cost=Cost.REDESIGN,
        effect=Message("A small network keeps most of what a large one or an ensemble gained."),
        source=sources.HINTON_2015,
        figure=Figure.MODEL_SIZE,
        code={
            "keras": """class Distiller(keras.Model):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        soft = keras.ops.softmax(teacher(x, training=False) / 4.0)
        distilled = keras.losses.categorical_crossentropy(soft, y_pred / 4.0, from_logits=True)
        labelled = keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True)
        return keras.ops.mean(0.1 * labelled + 0.9 * 16.0 * distilled)
""",
            "pytorch": """with torch.no_grad():
    soft = F.softmax(teacher(x) / 4.0, dim=-1)
logits = student(x)
distilled = F.kl_div(F.log_softmax(logits / 4.0, dim=-1), soft, reduction="batchmean") * 16.0
loss = 0.1 * F.cross_entropy(logits, y) + 0.9 * distilled
""",
        },
        urls={
            "keras": "https://keras.io/examples/vision/knowledge_distillation/",
            "pytorch": "https://pytorch.org/tutorials/beginner/knowledge_distillation_tutorial.html",
        },
    ),
    Fix(
        id="float32-inputs",
        title=Message("Cast inputs and weights to float32"),
        why=Message(
            "NumPy makes float64 by default, and one such array takes the model with it. float32 halves memory and is many "
            "times faster on accelerators."
        ),
        check=Message("The finding is gone, and a step takes less time; the loss curve stays the same."),
        cost=Cost.ONE_LINE,
        effect=Message("Half the memory, and many times the speed on GPUs, which have few units for 64 bits."),
        source=sources.TORCH_DEFAULT_DTYPE,
        figure=Figure.STEP_TIME,
        code={
            "keras": """keras.config.set_floatx("float32")
keras.mixed_precision.set_global_policy("float32")
x_train = x_train.astype("float32")
""",
            "tensorflow": """train = train.map(lambda x, y: (tf.cast(x, tf.float32), y))
weights = tf.Variable(tf.random.normal([20, 20], dtype=tf.float32))  # was tf.float64
""",
            "pytorch": """torch.set_default_dtype(torch.float32)
model = model.float()
x = torch.from_numpy(features).float()  # NumPy makes float64
""",
            "jax": """jax.config.update("jax_enable_x64", False)
x = jnp.asarray(x, jnp.float32)
""",
        },
        urls={
            "keras": "https://keras.io/api/mixed_precision/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/cast",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.set_default_dtype.html",
            "jax": "https://docs.jax.dev/en/latest/default_dtypes.html",
        },
    ),
    Fix(
        id="spread-embeddings",
        title=Message("Give the loss a reason to keep the vectors apart"),
        why=Message(
            "Without negatives, or a term that asks for variance, one point for all inputs is a solution. Larger batches "
            "bring more negatives, and a lower temperature weighs the near ones."
        ),
        check=Message("The spread of the embeddings and the number of their directions rise while the loss falls."),
        cost=Cost.RETRAIN,
        effect=Message("Collapse is excluded by the variance term alone, without negatives."),
        source=sources.BARDES_2021,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """def loss_with_variance(z):  # z: embeddings of a batch
    spread = keras.ops.sqrt(keras.ops.var(z, axis=0) + 1e-4)
    return keras.ops.mean(keras.ops.relu(1.0 - spread))  # VICReg: a standard deviation of 1 in each dimension
""",
            "pytorch": """a, b = F.normalize(z1, dim=-1), F.normalize(z2, dim=-1)
logits = a @ b.T / 0.1  # every other pair of the batch is a negative
contrastive = F.cross_entropy(logits, torch.arange(len(a), device=a.device))
variance = F.relu(1.0 - (z1.var(dim=0) + 1e-4).sqrt()).mean()
loss = contrastive + variance
""",
        },
        urls={
            "keras": "https://keras.io/examples/vision/semisupervised_simclr/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html",
        },
    ),
    Fix(
        id="check-saved-model",
        title=Message("Check the exported model before it is served"),
        why=Message(
            "A model that was pruned or converted must give the answers of the original, with the signature that TF Serving calls."
        ),
        check=Message("The difference is below 1e-4 for float32 and small against the logits for int8; the server answers the same."),
        cost=Cost.ONE_LINE,
        effect=Message("Errors of the export are found before they are served."),
        source=sources.TF_SERVING,
        figure=Figure.VALIDATION_METRIC,
        code={
            "keras": """model.export("serving/1")  # tensorflow_model_server --model_base_path=$PWD/serving --model_name=model
served = tf.saved_model.load("serving/1").signatures["serving_default"]
print(served.structured_input_signature, served.structured_outputs)
answers = list(served(tf.constant(x_val[:32])).values())[0]
print(np.abs(answers - model.predict(x_val[:32])).max())
""",
            "tensorflow": """served = tf.saved_model.load("serving/1").signatures["serving_default"]
answers = list(served(tf.constant(x_val[:32])).values())[0]
print(np.abs(answers - model(x_val[:32])).max())  # and: saved_model_cli show --dir serving/1 --all
""",
            "pytorch": """exported = torch.export.export(model.eval(), (x_val[:32],))
torch.export.save(exported, "model.pt2")
answers = torch.export.load("model.pt2").module()(x_val[:32])
print((answers - model(x_val[:32])).abs().max())
""",
        },
        urls={
            "keras": "https://keras.io/api/models/model_saving_apis/export/",
            "tensorflow": "https://www.tensorflow.org/tfx/serving/serving_basic",
            "pytorch": "https://pytorch.org/docs/stable/export.html",
        },
    ),
)
