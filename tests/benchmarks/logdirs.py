"""Log directories for the benchmark of reading, in the bytes that tf.summary (v2) and tensorboardX write.

tf.summary itself writes some 10,000 events a second; these writers lay out all records of many steps at once as one
NumPy array. tests/logdir/test_equality.py compares them byte by byte with the real writers.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from json import dumps, loads
from pathlib import Path

import google_crc32c
import numpy as np

FIRST_SECOND = 1_700_000_000.0
HIDDEN = bytes.fromhex("f0a1b2c3")  # stands for the four bytes of the value until the layout is known
TENSORFLOW = b"tensorflow.core.util.events_writer"


@dataclass
class Written:
    """What was written, to hold readers to. `step_sum` and `value_sum` (of the values' bit patterns) show that no point
    was lost or changed, in whatever order it is read.
    """

    runs: int = 0
    points: int = 0
    histograms: int = 0
    images: int = 0
    events: int = 0
    bytes: int = 0
    last_step: int = 0
    step_sum: int = 0
    value_sum: int = 0

    def add(self, steps: np.ndarray, values: np.ndarray) -> None:
        self.points += values.size
        self.events += values.size
        self.last_step = max(self.last_step, int(steps[-1]))
        self.step_sum += int(steps.sum()) * (values.size // len(steps))
        self.value_sum += int(values.view(np.uint32).sum(dtype=np.uint64))


def masked_crcs(payloads: Iterable[bytes]) -> np.ndarray:
    """The masked CRC-32C of each payload, as TFRecord stores it."""
    crcs = np.array([google_crc32c.value(payload) for payload in payloads], dtype=np.uint32)
    return ((crcs >> 15) | (crcs << 17)) + np.uint32(0xA282EAD8)


def record(payload: bytes) -> bytes:
    length = len(payload).to_bytes(8, "little")
    head, foot = masked_crcs([length, payload]).astype("<u4")
    return length + head.tobytes() + payload + foot.tobytes()


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    low = b""
    while number > 127:
        low += bytes([number & 127 | 128])
        number >>= 7
    return low + bytes([number])


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def event(wall_time: float, step: int, rest: bytes) -> bytes:
    """An `Event`: zero steps are left out, as proto3 does."""
    return b"\x09" + np.float64(wall_time).tobytes() + (b"\x10" + varint(step) if step else b"") + rest


def summary(tag: str, value: bytes, plugin: str = "") -> bytes:
    metadata = field(9, field(1, field(1, plugin.encode()))) if plugin else b""
    return field(5, field(1, field(1, tag.encode()) + value + metadata))


def tensor(dtype: int, shape: Iterable[int], rest: bytes) -> bytes:
    return field(8, b"\x08" + varint(dtype) + field(2, b"".join(field(2, b"\x08" + varint(size)) for size in shape)) + rest)


def v2_scalar(tag: str) -> bytes:
    """The summary of tf.summary.scalar, with its metadata in every event, around the hidden float."""
    return summary(tag, tensor(1, (), field(4, HIDDEN)), "scalars")


def simple_value(tag: str) -> bytes:
    """The summary of tensorboardX and torch around the hidden float."""
    return summary(tag, b"\x15" + HIDDEN)


def file_head(tensorflow: bool) -> bytes:
    return record(event(FIRST_SECOND, 0, field(3, b"brain.Event:2") + (field(10, field(1, TENSORFLOW)) if tensorflow else b"")))


def cycles(summaries: list[bytes], steps: np.ndarray, walls: np.ndarray, values: np.ndarray) -> Iterator[np.ndarray]:
    """Arrays whose rows are the bytes of one step: the records of all tags, one after the other.

    Each of `summaries` holds HIDDEN once; `walls` and `values` have shape ``(len(steps), len(summaries))``.
    """
    bits = np.array([len(varint(int(step))) if step else 0 for step in steps])
    cuts = np.flatnonzero(np.diff(bits)) + 1
    for part in np.split(np.arange(len(steps)), cuts):
        yield np.concatenate(
            [_records(s, steps[part], walls[part, i], values[part, i], int(bits[part[0]])) for i, s in enumerate(summaries)], axis=1
        )


def _records(hidden: bytes, steps: np.ndarray, walls: np.ndarray, values: np.ndarray, step_bytes: int) -> np.ndarray:
    """The records of one tag at `steps`, whose varints all take `step_bytes` bytes, one a row."""
    template = b"\x09" + bytes(8) + (b"\x10" + bytes(step_bytes) if step_bytes else b"") + hidden
    at = template.index(HIDDEN)
    rows = np.empty((len(steps), len(template) + 16), np.uint8)
    rows[:, :12] = np.frombuffer(record(template)[:12], np.uint8)
    rows[:, 12:-4] = np.frombuffer(template, np.uint8)
    rows[:, 13:21] = walls.astype("<f8").view(np.uint8).reshape(-1, 8)
    for i in range(step_bytes):
        rows[:, 22 + i] = (steps >> 7 * i) & 127 | (128 if i < step_bytes - 1 else 0)
    rows[:, 12 + at : 16 + at] = values.astype("<f4").view(np.uint8).reshape(-1, 4)
    payloads, n = np.ascontiguousarray(rows[:, 12:-4]).tobytes(), len(template)
    crcs = masked_crcs(payloads[i : i + n] for i in range(0, len(payloads), n))
    rows[:, -4:] = crcs.astype("<u4").view(np.uint8).reshape(-1, 4)
    return rows


def scalars(written: Written, summaries: list[bytes], steps: int, seed: int) -> Iterator[np.ndarray]:
    """`cycles` of decreasing curves, counted in `written`, at most 16,384 steps at a time."""
    generator = np.random.default_rng(seed)
    for first in range(0, steps, 16384):
        part = np.arange(first, min(first + 16384, steps), dtype=np.int64)
        shape = (len(part), len(summaries))
        walls = FIRST_SECOND + 0.05 * part[:, None] + np.sort(generator.uniform(0, 0.05, shape), axis=1)
        values = (1 / (1 + part[:, None] / 1000) + generator.normal(0, 0.01, shape)).astype(np.float32)
        written.add(part, values)
        yield from cycles(summaries, part, walls, values)


def write_run(directory: Path, written: Written, blocks: Iterable[bytes | np.ndarray], *, name: str = "1700000000.host.1.0.v2") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"events.out.tfevents.{name}"
    with path.open("wb") as stream:
        stream.write(file_head(name.endswith(".v2")))
        for block in blocks:
            stream.write(block)
    written.events += 1
    written.bytes += path.stat().st_size


def tags(count: int) -> list[str]:
    return [f"block_{number:02}/attention/loss"[: 12 + number % 12] for number in range(count)]


def scaled(count: int, scale: float, least: int = 2) -> int:
    return max(least, round(count * scale))


def make_s(root: Path, written: Written, scale: float) -> None:
    """One run of 3 tags by tf.summary, 100,002 points."""
    write_run(root / "run", written, scalars(written, [v2_scalar(t) for t in ("loss", "accuracy", "lr")], scaled(33_334, scale), 0))


def make_m(root: Path, written: Written, scale: float) -> None:
    """20 runs with train and validation, half by tf.summary, half by tensorboardX; 19 of the 40 directories have a second
    file of a training that began again in the same directory. 1,180,000 points.
    """
    names = [f"run_{number:02}/{split}" for number in range(20) for split in ("train", "validation")]
    for index, name in enumerate(names):
        tensorflow = index % 4 < 2
        summaries = [(v2_scalar if tensorflow else simple_value)(tag) for tag in tags(10)]
        for restart in range(2 if index % 2 and index < 38 else 1):
            blocks = scalars(written, summaries, scaled(2_000, scale), 2 * index + restart)
            write_run(root / name, written, blocks, name=f"170000{restart}000.host.{restart}.0" + (".v2" if tensorflow else ""))


def make_l(root: Path, written: Written, scale: float) -> None:
    """200 runs of 20 tags and 5,000 steps, 20,000,000 points."""
    for number in range(200):
        write_run(root / f"run_{number:03}", written, scalars(written, [v2_scalar(t) for t in tags(20)], scaled(5_000, scale), number))


def make_f(root: Path, written: Written, scale: float) -> None:
    """One file of 20 tags and 850,000 steps, 17,000,000 points."""
    write_run(root / "run", written, scalars(written, [v2_scalar(t) for t in tags(20)], scaled(850_000, scale), 0))


def make_n(root: Path, written: Written, scale: float) -> None:
    """2,000 runs of 100 events in 4,000 directories, with 6,000 other files."""
    for number in range(scaled(2_000, scale)):
        run = root / f"sweep_{number % 20:02}" / f"trial_{number:04}"
        write_run(run, written, scalars(written, [v2_scalar(t) for t in tags(10)], 10, number))
        (run / "checkpoints").mkdir()
        for name in ("config.yaml", "checkpoints/weights.index", "checkpoints/weights.data"):
            (run / name).write_bytes(b"not an event file")


def make_h(root: Path, written: Written, scale: float) -> None:
    """60 histograms of 500 steps, as tf.summary.histogram writes them: 30 buckets of (left, right, count)."""

    def blocks() -> Iterator[bytes]:
        generator = np.random.default_rng(0)
        for step in range(scaled(500, scale)):
            for number in range(60):
                edges = np.linspace(-1, 1, 31) * generator.uniform(0.5, 2)
                buckets = np.stack([edges[:-1], edges[1:], generator.poisson(100, 30)], axis=1)
                value = summary(f"layer_{number:02}/kernel", tensor(2, (30, 3), field(4, buckets.tobytes())), "histograms")
                yield record(event(FIRST_SECOND + step + number / 100, step, value))
                written.histograms += 1
                written.events += 1

    write_run(root / "run", written, blocks())


def make_i(root: Path, written: Written, scale: float) -> None:
    """20 scalars of 5,000 steps with 3,000 images of 100 KB between them, and a graph."""

    def blocks() -> Iterator[bytes | np.ndarray]:
        generator = np.random.default_rng(1)
        yield record(event(FIRST_SECOND, 0, field(4, generator.bytes(200_000))))
        written.events += 1
        rows = (row for array in scalars(written, [v2_scalar(t) for t in tags(20)], scaled(5_000, scale), 0) for row in array)
        for step, row in enumerate(rows):
            yield row.data
            if step * 3 % 5 < 3:
                image = b"\x89PNG\r\n\x1a\n" + generator.bytes(100_000)
                value = tensor(7, (3,), field(8, b"64") + field(8, b"64") + field(8, image))
                yield record(event(FIRST_SECOND + step, step, summary("samples", value, "images")))
                written.images += 1
                written.events += 1

    write_run(root / "run", written, blocks())


def make_t(root: Path, written: Written, scale: float) -> None:
    """500 jobs of 10 tags and 1,000 steps, for the tab: every third overfits, every fifth is NaN from the middle on."""
    generator = np.random.default_rng(2)
    steps = np.arange(1000)
    fall = np.exp(-steps / 200)
    for number in range(scaled(500, scale)):
        train = 0.1 + fall[:, None] * generator.uniform(0.5, 2, 10) + generator.normal(0, 0.01, (1000, 10))
        train[:, 1] = 0.3 + fall + (0.001 * np.maximum(0, steps - 300) if number % 3 == 0 else 0) + generator.normal(0, 0.01, 1000)
        if number % 5 == 0:
            train[500:, 0] = np.nan
        names = ["train/loss", "val/loss", *(f"layer_{k}/norm" for k in range(8))]
        walls = FIRST_SECOND + steps[:, None] + np.linspace(0, 0.5, 10)
        written.add(steps, train)
        summaries = [simple_value(name) for name in names]
        write_run(root / f"sweep_{number % 10}" / f"run_{number:03}", written, cycles(summaries, steps, walls, train.astype(np.float32)))


def make_r(root: Path, written: Written, scale: float) -> None:
    """40 trainings of 2,000 steps whose 10 tags have roles, in train and validation, 800,000 points."""
    of_split = {
        "train": ("loss", "accuracy", "learning_rate", "grad_norm", "memory_mb", "samples_per_second"),
        "validation": ("loss", "accuracy", "f1", "auc"),
    }
    for number in range(40):
        for split, names in of_split.items():
            blocks = scalars(written, [simple_value(tag) for tag in names], scaled(2_000, scale), number)
            write_run(root / f"run_{number:02}" / split, written, blocks, name="1700000000.host.1.0")


MAKERS = {"s": make_s, "m": make_m, "l": make_l, "h": make_h, "i": make_i, "n": make_n, "f": make_f, "t": make_t, "r": make_r}


def make(size: str, cache: Path, scale: float = 1.0) -> tuple[Path, Written]:
    """The log directory of that size below `cache`, made where it is not there yet, and what was written to it."""
    root = cache / f"{size}-{scale:g}"
    sums = cache / f"{root.name}.json"
    if not sums.is_file():
        shutil.rmtree(root, ignore_errors=True)
        written = Written()
        MAKERS[size](root, written, scale)
        written.runs = sum(any("tfevents" in name for name in names) for _, _, names in os.walk(root))
        sums.write_text(dumps(asdict(written)))
    return root, Written(**loads(sums.read_text()))
