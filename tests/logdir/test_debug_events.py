import subprocess
import sys

import numpy as np
import pytest

from tb_advisor.logdir.debug_events import DebuggerDump, payloads, read_dump
from tests.dump_builders import dump_files, dump_of, health, write

GOOD, NAN, HIGH, LOW = health(), health(nan=2), health(high=1), health(low=3)


def bad(dump):
    return [(each.value, each.type, each.name) for each in dump.bad]


def test_the_first_operation_that_made_nan_and_its_stack(tmp_path):
    dump = dump_of(
        tmp_path, ("MatMul", "model/dense/MatMul", GOOD), ("Log", "loss/Log", NAN, "model/dense/MatMul:0"), ("Sum", "loss/Sum", NAN)
    )
    assert dump.values == 2  # what comes after the first NaN is not read
    (found,) = dump.bad
    assert (found.value, found.type, found.name, found.inputs) == ("NaN", "Log", "loss/Log", ("model/dense/MatMul:0",))
    assert [(frame.file, frame.line, frame.function, frame.code) for frame in found.stack] == [
        ("/home/me/train.py", 12, "<module>", "line 12"),
        ("/venv/lib/python3.11/site-packages/keras/src/layers/layer.py", 40, "call", "line 40"),
    ]


def test_an_infinite_value_before_the_first_nan_is_named_first(tmp_path):
    dump = dump_of(tmp_path, ("Exp", "a/Exp", HIGH), ("Mul", "a/Mul", HIGH, "a/Exp:0"), ("Sub", "a/Sub", NAN))
    assert bad(dump) == [("+Inf", "Exp", "a/Exp"), ("NaN", "Sub", "a/Sub")]


def test_a_mask_is_infinite_on_purpose_and_so_is_what_is_made_of_it(tmp_path):
    mask = (("Const", "mask", LOW), ("AddV2", "scores", LOW, "logits:0", "mask:0"))
    assert bad(dump_of(tmp_path, *mask)) == []
    assert bad(dump_of(tmp_path, *mask, ("Softmax", "softmax", NAN, "scores:0"))) == [("NaN", "Softmax", "softmax")]


def test_the_logarithm_of_zero(tmp_path):
    assert bad(dump_of(tmp_path, ("Log", "loss/Log", LOW))) == [("-Inf", "Log", "loss/Log")]


def test_runs_of_the_operation_are_counted(tmp_path):
    dump = dump_of(tmp_path, ("Log", "loss/Log", GOOD), ("Log", "loss/Log", GOOD), ("Log", "loss/Log", NAN))
    assert dump.bad[0].execution == 3


def test_an_eager_operation_has_no_name(tmp_path):
    dump = dump_of(tmp_path, eager=[("Mul", GOOD), ("Sqrt", NAN)])
    assert bad(dump) == [("NaN", "Sqrt", "")]
    assert dump.bad[0].stack[0].line == 12


def test_graphs_and_eager_operations_are_in_one_order(tmp_path):
    assert bad(dump_of(tmp_path, ("Log", "l", GOOD), ("Log", "l", NAN), eager=[("Sqrt", NAN)])) == [("NaN", "Sqrt", "")]


@pytest.mark.parametrize(
    ("mode", "values", "value"),
    [
        (2, [1, 1], "NaN or Inf"),
        (3, [1, 4, 0, 0, 2], "NaN"),
        (3, [1, 4, 0, 2, 0], "+Inf"),
        (8, [0, 0, np.nan], "NaN"),
        (7, [1, np.inf], "+Inf"),
    ],
)
def test_every_mode_with_values(tmp_path, mode, values, value):
    assert dump_of(tmp_path, ("Log", "l", values), mode=mode).bad[0].value == value


@pytest.mark.parametrize(("mode", "values"), [(2, [1, 0]), (3, [1, 4, 0, 0, 0]), (7, [1, 2]), (8, [0, 0, 0])])
def test_every_mode_where_all_is_finite(tmp_path, mode, values):
    assert dump_of(tmp_path, ("Log", "l", values), mode=mode) == DebuggerDump(1, ())


def test_modes_without_values_say_nothing(tmp_path):
    assert dump_of(tmp_path, ("Log", "l", [1]), mode=5) == DebuggerDump(0, ())


@pytest.mark.parametrize("missing", ["graphs", "stack_frames", "source_files", "graph_execution_traces"])
def test_a_file_that_is_gone(tmp_path, missing):
    files = dump_files(tmp_path, [("Log", "loss/Log", NAN)])
    (tmp_path / f"tfdbg_events.1.host.{missing}").unlink()
    dump = read_dump(files)
    assert [each.name for each in dump.bad] == ([] if missing == "graph_execution_traces" else ["loss/Log"])
    assert all(len(each.stack) == 0 for each in dump.bad)


@pytest.mark.parametrize("seed", range(12))
def test_no_flipped_byte_breaks_it(tmp_path, seed):
    generator = np.random.default_rng(seed)
    files = dump_files(tmp_path, [("Log", "loss/Log", GOOD)] * 20 + [("Log", "loss/Log", NAN)])
    for path in files[1:]:
        data = bytearray(path.read_bytes())
        for position in generator.integers(0, max(1, len(data)), 3).tolist():
            data[position : position + 1] = bytes([generator.integers(256)])
        path.write_bytes(data[: int(generator.integers(1, len(data) + 1))])
    read_dump(files)


def test_tensors_that_are_none_say_nothing(tmp_path):
    for values in ([], [1.0]):
        assert dump_of(tmp_path, ("Log", "l", values), mode=3).bad == ()


def test_records_of_any_length_in_one_pass(tmp_path):
    class Raw(bytes):
        def SerializeToString(self):
            return bytes(self)

    records = [Raw(b"x" * n) for n in (3, 3_000_000, 0, 5_000, 70_000)]
    path = write(tmp_path / "records", records)
    assert list(payloads(path)) == records
    assert list(payloads(path, 1 << 20)) == records[:1]
    path.write_bytes(path.read_bytes()[:-1])
    assert list(payloads(path)) == records[:-1]
    assert list(payloads(tmp_path / "gone")) == []


TRAINING = """
import numpy as np, tensorflow as tf, keras
tf.debugging.experimental.enable_dump_debug_info("dump", tensor_debug_mode="FULL_HEALTH", circular_buffer_size=-1)
def log_loss(y, p):
    return tf.reduce_mean(-y * tf.math.log(p))
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu", kernel_initializer="ones", name="hidden")])
model.compile(optimizer="sgd", loss=log_loss)
model.fit(-np.ones((32, 4), "float32"), np.ones((32, 3), "float32"), batch_size=16, verbose=0)
tf.debugging.experimental.disable_dump_debug_info()
"""


@pytest.mark.slow
def test_a_dump_of_tensorflow_itself(tmp_path):
    pytest.importorskip("tensorflow")
    (tmp_path / "train.py").write_text(TRAINING)
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    (found, *_) = read_dump(tuple((tmp_path / "dump").iterdir())).bad
    assert (found.value, found.type) == ("-Inf", "Log")
    own = [frame for frame in found.stack if frame.file.endswith("train.py")][-1]
    assert (own.line, own.function, own.code) == (5, "log_loss", "return tf.reduce_mean(-y * tf.math.log(p))")
