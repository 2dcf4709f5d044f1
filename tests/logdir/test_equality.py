"""What is read equals, bit by bit, what TensorBoard's own EventAccumulator reads, for every writer at hand."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import DEFAULT_SIZE_GUIDANCE, EventAccumulator, HistogramValue
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.data_compat import migrate_value
from tensorboard.util.tensor_util import make_ndarray

from tb_advisor import load
from tb_advisor.logdir.jobs import Run
from tests.benchmarks import logdirs

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "events"
DOUBLE, STRING, BFLOAT16 = 2, 7, 14
Points = list[tuple[int, float, float]]
Histograms = list[tuple[int, float, np.ndarray]]

# Writes with TensorFlow in a process of its own: it takes seconds to import and sets up the process as it likes.
TENSORFLOW = """
import sys
import numpy as np
import tensorflow as tf

def write_all(step):
    tf.summary.scalar("loss", 1 / (1 + step), step=step)
    tf.summary.scalar("not a number", [np.nan, np.inf, -np.inf, -0.0, 1e-45][step % 5], step=step)
    tf.summary.histogram("weights", tf.random.normal([100]), step=step)
    tf.summary.text("note", "text", step=step)
    tf.summary.image("image", tf.zeros([1, 8, 8, 3]), step=step)
    metadata = tf.compat.v1.SummaryMetadata()
    metadata.plugin_data.plugin_name = "scalars"
    for name in ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint32", "uint64", "bool"):
        tf.summary.write("as " + name, tf.cast(100 / (1 + step), name), step=step, metadata=metadata)

with tf.summary.create_file_writer(sys.argv[1] + "/custom").as_default():
    for step in [*range(150), 20_000, 2**40, -3, 0, 1]:
        write_all(step)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
callback = tf.keras.callbacks.TensorBoard(sys.argv[1] + "/keras", histogram_freq=1, update_freq=1)
x = np.random.default_rng(0).normal(size=(64, 3))
model.fit(x, x[:, :1], validation_split=0.2, epochs=4, verbose=0, callbacks=[callback])
"""


def by_accumulator(run: Run, directory: Path) -> tuple[dict[str, Points], dict[str, Histograms]]:
    """tag → (step, wall time, value) of the run's scalars, and tag → (step, wall time, buckets) of its histograms, file
    after file in the order that the run names them.
    """
    points: dict[str, Points] = {}
    histograms: dict[str, Histograms] = {}
    for accumulator in (accumulated(directory / name) for name in run.file_names):
        for tag in accumulator.Tags()["scalars"]:
            points.setdefault(tag, []).extend((e.step, e.wall_time, e.value) for e in accumulator.Scalars(tag))
        for tag in accumulator.Tags()["histograms"]:
            found = accumulator.Histograms(tag)
            histograms.setdefault(tag, []).extend((e.step, e.wall_time, migrated(e.histogram_value)) for e in found)
        for tag in accumulator.Tags()["tensors"]:
            for e in accumulator.Tensors(tag):
                number = value_of(e.tensor_proto)
                shape = [dim.size for dim in e.tensor_proto.tensor_shape.dim]
                if number is not None:
                    points.setdefault(tag, []).append((e.step, e.wall_time, number))
                elif e.tensor_proto.dtype == DOUBLE and len(shape) == 2 and shape[1] == 3:
                    histograms.setdefault(tag, []).append((e.step, e.wall_time, make_ndarray(e.tensor_proto)))
    return points, histograms


def accumulated(path: Path) -> EventAccumulator:
    everything = dict.fromkeys(DEFAULT_SIZE_GUIDANCE, 0)
    return EventAccumulator(str(path), size_guidance=everything, purge_orphaned_data=False).Reload()


def migrated(histogram: HistogramValue) -> np.ndarray:
    """The buckets that TensorBoard's dashboard shows of a histogram in the old format, in its precision."""
    proto = HistogramProto(min=histogram.min, max=histogram.max, bucket_limit=histogram.bucket_limit, bucket=histogram.bucket)
    return make_ndarray(migrate_value(Summary.Value(tag="x", histo=proto)).tensor)


def value_of(tensor: TensorProto) -> float | None:
    """The number in a tensor with one element, None for strings and larger tensors."""
    if tensor.dtype == STRING or np.prod([dim.size for dim in tensor.tensor_shape.dim]) != 1:
        return None
    if tensor.dtype == BFLOAT16:  # make_ndarray raises on its tensor_content
        raw = tensor.tensor_content or struct.pack("<H", tensor.half_val[0])
        return float(np.frombuffer(b"\0\0" + raw, "<f4")[0])
    return float(make_ndarray(tensor).item())


def columns(points: Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    steps, walls, values = zip(*points, strict=True)
    return np.array(steps, np.int64), np.array(walls, np.float64), np.array(values, np.float64)


def assert_equal_bits(run: Run, expected: dict[str, Points]) -> None:
    assert sorted(run.scalars) == sorted(expected)
    for tag, series in run.scalars.items():
        steps, walls, values = columns(expected[tag])
        assert np.array_equal(series.steps, steps), (run.name, tag)
        assert np.array_equal(series.wall_times.view(np.int64), walls.view(np.int64)), (run.name, tag)
        same = (series.values.view(np.int64) == values.view(np.int64)) | (np.isnan(series.values) & np.isnan(values))
        assert same.all(), (run.name, tag, np.flatnonzero(~same))


def assert_equal_histograms(run: Run, expected: dict[str, Histograms]) -> None:
    assert sorted(run.histograms) == sorted(expected)
    for tag, histograms in run.histograms.items():
        assert histograms.steps.tolist() == [step for step, _, _ in expected[tag]], (run.name, tag)
        assert histograms.wall_times.tolist() == [wall for _, wall, _ in expected[tag]], (run.name, tag)
        for index, (_, _, buckets) in enumerate(expected[tag]):
            assert np.array_equal(histograms[index].astype(buckets.dtype), buckets, equal_nan=True), (run.name, tag, index)


def assert_all_runs_equal(logdir: Path) -> dict[str, Run]:
    runs = dict(load(logdir).runs)
    for run in runs.values():
        points, histograms = by_accumulator(run, logdir / run.name)
        assert_equal_bits(run, points)
        assert_equal_histograms(run, histograms)
    return runs


def test_generated_logdirs(tmp_path):
    for size, scale in {"s": 0.01, "m": 0.01, "l": 0.002, "h": 0.01, "i": 0.01, "n": 0.005, "f": 0.0003}.items():
        root, written = logdirs.make(size, tmp_path, scale)
        runs = assert_all_runs_equal(root)
        assert sum(len(series) for run in runs.values() for series in run.scalars.values()) == written.points
        assert sum(run.events for run in runs.values()) == written.events
        assert sum(len(histograms) for run in runs.values() for histograms in run.histograms.values()) == written.histograms
        assert len(runs) == written.runs


def test_tensorboardx(tmp_path):
    tensorboardX = pytest.importorskip("tensorboardX")
    write_with_summary_writer(tensorboardX.SummaryWriter, tmp_path)
    runs = assert_all_runs_equal(tmp_path)
    assert len(runs["."].scalars["loss"]) == 302


def test_torch(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="torch is not installed")
    write_with_summary_writer(tensorboard.SummaryWriter, tmp_path)
    runs = assert_all_runs_equal(tmp_path)
    assert len(runs["."].scalars["loss"]) == 302


def write_with_summary_writer(summary_writer: type, directory: Path) -> None:
    with summary_writer(str(directory)) as writer:
        for step in [*range(300), 2**40, 3]:
            writer.add_scalar("loss", 1 / (1 + step), step)
            writer.add_scalar("odd", [np.nan, np.inf, -np.inf, -0.0, 1e-45][step % 5], step, walltime=1e9 - step)
            if step % 50 == 0:
                writer.add_histogram("weights", np.arange(10.0), step)
                writer.add_text("note", "text", step)
                writer.add_image("image", np.zeros((3, 8, 8), np.uint8), step)
            if step % 7 == 0:
                writer.add_scalars("both", {"train": step, "val": -step}, step)
        writer.add_hparams({"lr": 0.1}, {"hparam/accuracy": 0.5})


@pytest.fixture(scope="module")
def tensorflow_logs(tmp_path_factory) -> Path:
    logs = tmp_path_factory.mktemp("tensorflow")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", TENSORFLOW, str(logs)], env=environment, capture_output=True, text=True, check=False)
    if "No module named 'tensorflow'" in done.stderr:
        pytest.skip("tensorflow is not installed")
    assert done.returncode == 0, done.stderr[-2000:]
    return logs


def test_tf_summary_with_every_dtype(tensorflow_logs):
    run = assert_all_runs_equal(tensorflow_logs)["custom"]
    assert {tag: len(series) for tag, series in run.scalars.items() if not tag.startswith("as ")} == {"loss": 155, "not a number": 155}
    assert sum(tag.startswith("as ") for tag in run.scalars) == 12
    assert {"weights": "histograms", "note": "text", "image": "images"}.items() <= run.tags.items()


def test_the_keras_callback(tensorflow_logs):
    runs = assert_all_runs_equal(tensorflow_logs)
    assert len(runs["keras/train"].scalars["epoch_loss"]) == 4
    assert len(runs["keras/validation"].scalars["epoch_loss"]) == 4


def test_the_demo(demo_logs):
    assert assert_all_runs_equal(demo_logs)


def test_the_benchmark_writes_the_bytes_of_tf_summary(tensorflow_logs):
    (path,) = (tensorflow_logs / "custom").glob("*tfevents*")
    events = [payload for payload in payloads(path) if b"loss" in payload]
    assert len(events) == 155
    for payload in events:
        event = Event.FromString(payload)
        value = np.float32(struct.unpack("<f", event.summary.value[0].tensor.tensor_content)[0])
        template = logdirs.event(event.wall_time, event.step, logdirs.v2_scalar("loss"))
        assert payload == template.replace(logdirs.HIDDEN, value.tobytes())


def payloads(path: Path) -> Iterator[bytes]:
    content, offset = path.read_bytes(), 0
    while offset < len(content):
        (length,) = struct.unpack_from("<Q", content, offset)
        payload = content[offset + 12 : offset + 12 + length]
        assert content[offset : offset + 16 + length] == logdirs.record(payload)
        yield payload
        offset += 16 + length


def corpus_runs() -> list[str]:
    return sorted({path.parent.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*tfevents*")}) or ["no corpus"]


@pytest.fixture(scope="module")
def corpus() -> dict[str, Run]:
    if not CORPUS.is_dir():
        pytest.skip("../shared/corpus/events is not there")
    return dict(load(CORPUS).runs)


@pytest.mark.parametrize("name", corpus_runs())
def test_files_of_public_projects(corpus, name):
    run = corpus[name]
    points, histograms = by_accumulator(run, CORPUS / name)
    assert_equal_bits(run, points)
    assert_equal_histograms(run, histograms)
