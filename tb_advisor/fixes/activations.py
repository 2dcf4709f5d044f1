"""What to try when units die, saturate, or do not learn."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="leaky-activation",
        title=Message("Use an activation that is not flat: LeakyReLU, ELU or GELU"),
        why=Message("A unit that was pushed out of range still gets a gradient, and comes back."),
        check=Message("The histograms of the activations have values on both sides of zero, and their share at one value stays below 75%."),
        cost=Cost.RETRAIN,
        effect=Message(
            "Units come back to life; on ImageNet, ELU networks learned considerably faster than ReLU networks of the same form."
        ),
        source=sources.CLEVERT_2015,
        figure=Figure.ACTIVATIONS,
        code={
            "keras": """x = layers.Dense(128)(x)
x = layers.LeakyReLU(negative_slope=0.1)(x)  # or layers.Dense(128, activation="elu")
""",
            "tensorflow": """hidden = tf.nn.leaky_relu(tf.matmul(x, kernel) + bias, alpha=0.1)
""",
            "pytorch": """self.hidden = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.1))  # or nn.ELU(), nn.GELU()
""",
            "jax": """x = nn.leaky_relu(nn.Dense(128)(x), negative_slope=0.1)  # flax.linen
""",
        },
        urls={
            "keras": "https://keras.io/api/layers/activation_layers/leaky_relu/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/nn/leaky_relu",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.LeakyReLU.html",
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/activation_functions.html",
        },
    ),
    Fix(
        id="relu-family",
        title=Message("Replace sigmoid and tanh by ReLU, GELU or SELU in hidden layers"),
        why=Message("Their slope does not go to zero for large inputs: the gradient reaches the layers below with its size."),
        check=Message("No share of the activations gathers at a bound, and the gradients of the first layers are larger."),
        cost=Cost.RETRAIN,
        effect=Message("Networks with rectified units train several times as fast as with tanh, and deep ones train at all."),
        source=sources.KRIZHEVSKY_2012,
        figure=Figure.LAYER_GRADIENTS,
        code={
            "keras": """x = layers.Dense(128, activation="relu", kernel_initializer="he_normal")(x)  # was "tanh"
""",
            "tensorflow": """hidden = tf.nn.relu(tf.matmul(x, kernel) + bias)  # was tf.tanh
""",
            "pytorch": """self.hidden = nn.Sequential(nn.Linear(64, 128), nn.ReLU())  # was nn.Tanh(); or nn.GELU(), nn.SELU()
""",
            "jax": """x = nn.relu(nn.Dense(128, kernel_init=nn.initializers.he_normal())(x))  # flax.linen
""",
        },
        urls={
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/activation_functions.html",
            "keras": "https://keras.io/api/layers/activations/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/nn/relu",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.ReLU.html",
        },
    ),
    Fix(
        id="normalize-layers",
        title=Message("Normalise between layers"),
        why=Message("Each layer then gets inputs with a spread near one, whatever the layers below it do."),
        check=Message("The histograms of the activations keep their place and width over the run, in every layer."),
        cost=Cost.RETRAIN,
        effect=Message("The same accuracy in up to 14 times fewer steps on ImageNet, and higher learning rates become possible."),
        source=sources.IOFFE_2015,
        figure=Figure.TRAINING_LOSS,
        code={
            "keras": """x = layers.Dense(128, use_bias=False)(x)
x = layers.BatchNormalization()(x)
x = layers.Activation("relu")(x)
""",
            "pytorch": """self.hidden = nn.Sequential(nn.Linear(64, 128, bias=False), nn.BatchNorm1d(128), nn.ReLU())
# nn.LayerNorm(128) for small batches
""",
            "jax": """x = nn.relu(nn.LayerNorm()(nn.Dense(128)(x)))  # flax.linen
""",
        },
        urls={
            "keras": "https://keras.io/api/layers/normalization_layers/batch_normalization/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html",
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html",
        },
    ),
    Fix(
        id="residual-links",
        title=Message("Add residual links around the layers"),
        why=Message("Signal and gradient have a way past every layer: one that is badly scaled cannot cut off those below it."),
        check=Message("The gradients of the first and the last layer are of similar size, and the first layer's weights change."),
        cost=Cost.REDESIGN,
        effect=Message("Networks of more than a hundred layers train, where plain ones get worse with depth on their training data."),
        source=sources.HE_2015_RESNET,
        figure=Figure.LAYER_GRADIENTS,
        code={
            "keras": """shortcut = x
x = layers.Dense(128, activation="relu")(x)
x = layers.Dense(128)(x)
x = layers.Activation("relu")(layers.Add()([x, shortcut]))
""",
            "pytorch": """class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x):
        return torch.relu(x + self.inner(x))
""",
            "jax": """x = nn.relu(x + nn.Dense(128)(nn.relu(nn.Dense(128)(x))))  # flax.linen
""",
        },
        urls={
            "jax": "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html",
            "keras": "https://keras.io/api/layers/merging_layers/add/",
            "pytorch": "https://pytorch.org/vision/stable/models/resnet.html",
        },
    ),
    Fix(
        id="trainable-parameters",
        title=Message("Check that every layer is trainable and known to the optimizer"),
        why=Message("A layer that is frozen, created after the optimizer, or missing in its list of parameters keeps its first weights."),
        check=Message("The lists below are empty, and the histogram of the layer changes from one step to the next."),
        cost=Cost.ONE_LINE,
        effect=Message(
            "The layer begins to learn. Whether a parameter is updated is decided by the optimizer's list and `requires_grad` alone."
        ),
        source=sources.TORCH_AUTOGRAD,
        figure=Figure.WEIGHTS,
        code={
            "keras": """for layer in model.layers:
    layer.trainable = True
model.compile(optimizer=optimizer, loss=loss)  # `trainable` counts from the next compile on
print([w.name for w in model.non_trainable_weights])
""",
            "tensorflow": """gradients = tape.gradient(loss, model.trainable_variables)
print([v.name for g, v in zip(gradients, model.trainable_variables) if g is None])
optimizer.apply_gradients(zip(gradients, model.trainable_variables))
""",
            "pytorch": """known = {id(p) for group in optimizer.param_groups for p in group["params"]}
print([name for name, p in model.named_parameters() if id(p) not in known or not p.requires_grad])
""",
            "lightning": """def configure_optimizers(self):
    print([name for name, p in self.named_parameters() if not p.requires_grad])
    return torch.optim.Adam(self.parameters(), lr=1e-3)
""",
            "huggingface": """print([name for name, p in model.named_parameters() if not p.requires_grad])
""",
            "jax": """changed = jax.tree_util.tree_map(lambda before, after: bool((before != after).any()), params, new_params)
print(changed)
""",
        },
        urls={
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/model",
            "jax": "https://docs.jax.dev/en/latest/pytrees.html",
            "keras": "https://keras.io/guides/transfer_learning/",
            "tensorflow": "https://www.tensorflow.org/guide/autodiff",
            "pytorch": "https://pytorch.org/docs/stable/optim.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/optimization.html",
        },
    ),
)
