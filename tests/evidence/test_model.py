import json
import subprocess
import sys
import time

import numpy as np
import pytest

from tb_advisor.evidence.graph import MOST_OPERATIONS
from tb_advisor.evidence.keras_config import layers_of
from tb_advisor.evidence.model import model
from tb_advisor.logdir.jobs import load
from tb_advisor.message import Missing
from tests.histogram_builders import histograms, job_of, torch_buckets
from tests.model_builders import config_job, conv, dense, entry, functional, graph_def, graph_job, sequential

IMAGE = sequential(
    (28, 28, 1),
    conv("conv", 8, activation="relu"),
    entry("MaxPooling2D", "pool", pool_size=[2, 2], strides=[2, 2], padding="valid"),
    entry("BatchNormalization", "norm"),
    entry("Flatten", "flatten"),
    dense("hidden", 64, "tanh"),
    entry("Dropout", "drop", rate=0.5),
    dense("head", 10),
)


def test_layers_of_a_keras_config(tmp_path):
    found = model(config_job(tmp_path, IMAGE))
    assert [(layer.name, layer.role, layer.activation, layer.parameters) for layer in found.layers] == [
        ("in", "input", "linear", 0),
        ("conv", "conv", "relu", 80),
        ("pool", "pool", "linear", 0),
        ("norm", "normalization", "linear", 32),
        ("flatten", "flatten", "linear", 0),
        ("hidden", "dense", "tanh", 14 * 14 * 8 * 64 + 64),
        ("drop", "dropout", "linear", 0),
        ("head", "dense", "linear", 650),
    ]
    assert [layer.inputs for layer in found.layers] == [(), (0,), (1,), (2,), (3,), (4,), (5,), (6,)]
    assert found.rows([1]) == (("conv", "Conv2D", "relu", "28×28×8", 80),)
    assert found.parameters == 80 + 32 + 100416 + 650


def test_links_of_a_functional_config_of_keras_3_and_2():
    new = functional(entry("InputLayer", "x", batch_shape=[None, 4]), dense("a", 8, inbound=["x"]), dense("b", 8, inbound=["x"]))
    new["config"]["layers"].append(entry("Add", "sum", ["a", "b"]))
    old = json.loads(json.dumps(new))
    for layer, names in zip(old["config"]["layers"], ([], ["x"], ["x"], ["a", "b"]), strict=True):
        layer["inbound_nodes"] = [[[name, 0, 0, {}] for name in names]] if names else []
    for config in (new, old):
        assert [layer.inputs for layer in layers_of(config)] == [(), (0,), (0,), (1, 2)]


def test_a_model_within_a_model_is_taken_apart():
    inner = sequential((16,), dense("a", 8, "relu"), dense("b", 4))
    outer = sequential((16,), {**inner, "name": "backbone"}, dense("head", 2))
    layers = layers_of(outer)
    assert [layer.name for layer in layers] == ["in", "backbone/in", "backbone/a", "backbone/b", "head"]
    assert [layer.inputs for layer in layers] == [(), (0,), (1,), (2,), (3,)]
    assert [layer.parameters for layer in layers] == [0, 0, 136, 36, 10]


@pytest.mark.parametrize(
    ("layer", "shape", "parameters"),
    [
        (entry("Embedding", "e", input_dim=1000, output_dim=16), (20,), 16_000),
        (entry("LSTM", "l", units=32), (20, 8), 4 * 32 * (8 + 32 + 1)),
        (entry("GRU", "g", units=32, reset_after=True), (20, 8), 3 * 32 * (8 + 32 + 2)),
        (entry("Bidirectional", "b", layer=entry("LSTM", "l", units=32)), (20, 8), 2 * 4 * 32 * (8 + 32 + 1)),
        (entry("SeparableConv2D", "s", filters=32, kernel_size=[3, 3]), (8, 8, 16), 9 * 16 + 16 * 32 + 32),
        (entry("DepthwiseConv2D", "d", kernel_size=[3, 3]), (8, 8, 16), 9 * 16 + 16),
        (entry("Conv2D", "c", filters=32, kernel_size=[3, 3], groups=4, use_bias=False), (8, 8, 16), 9 * 4 * 32),
        (entry("LayerNormalization", "n"), (20, 8), 16),
        (entry("MyBlock", "m"), (8,), None),
    ],
)
def test_numbers_of_parameters(layer, shape, parameters):
    assert layers_of(sequential(shape, layer))[1].parameters == parameters


MLP = (
    ("Placeholder", "x", [], (None, 20)),
    *(
        (kind, f"{name}/{what}", [], shape)
        for name, shape in (("a", (20, 30)), ("b", (30, 2)))
        for kind, what in (("VariableV2", "kernel"),)
    ),
    ("VariableV2", "a/bias", [], (30,)),
    ("MatMul", "a/MatMul", ["x", "a/kernel"], (None, 30), 2),
    ("BiasAdd", "a/BiasAdd", ["a/MatMul", "a/bias"], (None, 30), 2),
    ("Tanh", "a/Tanh", ["a/BiasAdd"], (None, 30), 2),
    ("Shape", "a/Shape", ["a/Tanh"], (2,)),
    ("MatMul", "b/MatMul", ["a/Tanh", "b/kernel"], (None, 2), 2),
    ("MatMul", "gradients/b/MatMul_grad/MatMul", ["b/MatMul", "b/kernel"], (None, 30), 2),
)


def weighted(found):
    return [(la.name, la.kind, la.role, la.in_size, la.out_size, la.parameters, la.dtype) for la in found.layers if la.role == "dense"]


def test_layers_of_a_tensorflow_graph(tmp_path):
    found = model(graph_job(tmp_path, graph_def(*MLP)))
    assert weighted(found) == [("a", "MatMul", "dense", 20, 30, 630, "float64"), ("b", "MatMul", "dense", 30, 2, 60, "float64")]
    names = [layer.name for layer in found.layers]
    head = found.layers[names.index("b")]
    assert found.layers[head.inputs[0]].activation == "tanh"
    assert found.layers[found.layers[head.inputs[0]].inputs[0]].name == "a"
    assert found.rows([names.index("a")]) == (("a", "MatMul", "tanh", "30", 630),)


def test_the_function_with_the_most_layers_is_the_model(tmp_path):
    first = (("Placeholder", "x", []), ("PartitionedCall", "call", ["x"]))
    graph = graph_def(
        *first, functions={"other": MLP[:3], "train_step": [(k, n, [f"{i}:0" for i in inputs], *m) for k, n, inputs, *m in MLP]}
    )
    assert [row[0] for row in weighted(model(graph_job(tmp_path, graph)))] == ["a", "b"]


def test_attention_is_no_layer_with_weights(tmp_path):
    graph = graph_def(*MLP, ("MatMul", "attention/MatMul", ["a/Tanh", "a/BiasAdd"], (None, None)))
    assert [row[0] for row in weighted(model(graph_job(tmp_path, graph)))] == ["a", "b"]


TORCH = (
    ("IO Node", "input/x", [], (16, 20)),
    ("prim::GetAttr", "Net/Linear[fc1]/weight/1", []),
    ("aten::linear", "Net/Linear[fc1]/10", ["input/x", "Net/Linear[fc1]/weight/1"], (16, 30)),
    ("aten::relu", "Net/ReLU[act]/11", ["Net/Linear[fc1]/10"], (16, 30)),
    ("aten::dropout", "Net/Dropout[drop]/12", ["Net/ReLU[act]/11"], (16, 30)),
    ("aten::linear", "Net/Sequential[head]/Linear[0]/13", ["Net/Dropout[drop]/12", "w"], (16, 2)),
)


def test_layers_of_a_trace_of_pytorch(tmp_path):
    found = model(graph_job(tmp_path, graph_def(*TORCH)))
    assert weighted(found) == [("fc1", "Linear", "dense", 20, 30, 630, ""), ("head.0", "Linear", "dense", 30, 2, 62, "")]
    assert [layer.role for layer in found.layers[-4:]] == ["dense", "activation", "dropout", "dense"]


def test_sizes_from_histograms_of_weights():
    values = np.random.default_rng(0).normal(size=1200)
    found = model(
        job_of(*(histograms([torch_buckets(values[:n])], tag) for tag, n in (("fc1.weight", 1200), ("fc2.weight", 300), ("fc1.bias", 9))))
    )
    assert {layer.name: layer.parameters for layer in found.layers} == {"fc1": 1200, "fc2": 300}
    assert not found.has_links


def test_nothing_in_the_log():
    with pytest.raises(Missing, match="no model in the log"):
        model(job_of())


@pytest.mark.parametrize(
    "config",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        "[" * 100_000,
        '{"config": ' * 50_000,
        '{"config": {"layers": 3}}',
        '{"config": {"layers": [null, 3, [], {"config": []}]}}',
        '{"class_name": "Sequential", "config": [{"config": {"units": 1e400}}]}',
        '{"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": {"units": %s}}]}}' % ("9" * 5000),
        json.dumps(
            sequential((4,), dense("a", -3), dense("b", "x"), conv("c", 1 << 62, [0, []]), entry("Reshape", "r", target_shape=[-1, {}]))
        ),
        json.dumps(sequential((4,), entry("Dense", "a", activation={"class_name": "Custom"}, dtype=[1], units=True))),
        json.dumps(functional(entry("Dense", "a", ["a", "b"]), entry("Dense", "b", ["a"]), entry("Dense", "a", ["missing"]))),
    ],
)
def test_no_config_breaks_it(tmp_path, config):
    try:
        found = model(config_job(tmp_path, config))
    except Missing:
        return
    assert all(index < at for at, layer in enumerate(found.layers) for index in layer.inputs)


def test_models_in_models_without_end():
    config = sequential((4,), dense("a", 4))
    for _ in range(50):
        config = {**sequential((4,), config), "name": "inner"}
    assert len(layers_of(config)) <= 12


@pytest.mark.parametrize("data", [b"", b"\xff" * 100, b"\n\x05ab", b"\n" * 1000])
def test_no_graph_breaks_it(tmp_path, data):
    with pytest.raises(Missing):
        model(graph_job(tmp_path, data))


def test_circles_and_missing_nodes(tmp_path):
    nodes = (
        *MLP,
        ("Identity", "p", ["q"]),
        ("Identity", "q", ["p"]),
        ("Relu", "r", ["p"]),
        ("Relu", "s", ["s"]),
        ("MatMul", "t", ["later", "a/kernel"]),
    )
    found = model(graph_job(tmp_path, graph_def(*nodes, ("Relu", "later", ["t"]), ("Add", "u", []), ("MatMul", "v", []))))
    assert all(index < at for at, layer in enumerate(found.layers) for index in layer.inputs)


def test_large_graphs_take_linear_time(tmp_path):
    chain = [("Identity", f"i{n}", [f"i{n - 1}"]) for n in range(1, 60_000)]
    relus = [("Relu", f"r{n}", ["i59999"]) for n in range(20_000)]
    job = graph_job(tmp_path, graph_def(*MLP, ("Placeholder", "i0", []), *chain, *relus))
    start = time.perf_counter()
    assert len(model(job).layers) > 20_000
    assert time.perf_counter() - start < 10


def test_a_graph_that_is_too_large_is_left_alone(tmp_path):
    graph = graph_def(*[("NoOp", "", [])] * (MOST_OPERATIONS + 1))
    with pytest.raises(Missing, match="no model in the log"):
        model(graph_job(tmp_path, graph))


TRAINING = """
import keras, numpy as np
from keras import layers
inputs = keras.Input((8, 8, 1))
x = layers.Conv2D(4, 3, activation="relu", name="conv")(inputs)
x = layers.Flatten(name="flatten")(x)
x = layers.Dense(16, activation="sigmoid", name="hidden")(x)
model = keras.Model(inputs, layers.Dense(3, name="head")(x))
model.compile(optimizer="adam", loss="mse")
model.fit(np.zeros((8, 8, 8, 1)), np.zeros((8, 3)), verbose=0, callbacks=[keras.callbacks.TensorBoard("logs", histogram_freq=1)])
print(model.count_params())
"""


@pytest.mark.slow
def test_the_config_that_keras_itself_writes(tmp_path):
    pytest.importorskip("tensorflow")
    done = subprocess.run([sys.executable, "-c", TRAINING], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300)
    (job,) = load(tmp_path / "logs").jobs
    found = model(job)
    assert found.parameters == int(done.stdout.split()[-1])
    assert [(layer.kind, layer.activation) for layer in found.layers[1:]] == [
        ("Conv2D", "relu"),
        ("Flatten", "linear"),
        ("Dense", "sigmoid"),
        ("Dense", "linear"),
    ]


GRAPHS = """
import tensorflow as tf
weights = [tf.Variable(tf.zeros([20, 20], tf.float64)) for _ in range(3)]
@tf.function
def step(x):
    for weight in weights:
        x = tf.tanh(tf.matmul(x, weight))
    return x
with tf.summary.create_file_writer("logs").as_default():
    tf.summary.graph(step.get_concrete_function(tf.zeros([4, 20], tf.float64)).graph)
"""


@pytest.mark.slow
def test_the_graph_that_tensorflow_itself_writes(tmp_path):
    pytest.importorskip("tensorflow")
    subprocess.run([sys.executable, "-c", GRAPHS], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    found = model(load(tmp_path / "logs").jobs[0])
    assert [(la.in_size, la.out_size, la.dtype) for la in found.layers if la.role == "dense"] == [(20, 20, "float64")] * 3
    assert [la.activation for la in found.layers if la.role == "activation"] == ["tanh"] * 3
