"""Whatever bytes an event file holds, exactly its intact records are read: properties over generated files.

The reference is tests/logdir/reference.py: one record at a time, checksum by checksum, through the protobuf class.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tb_advisor import load
from tb_advisor.logdir.event_file import EventFile, Reader
from tb_advisor.logdir.jobs import Run, RunCache, find_jobs, read_jobs
from tests.benchmarks import logdirs
from tests.benchmarks.logdirs import event, field, record, summary, tensor, varint
from tests.logdir.reference import BFLOAT16, HALF, TYPES, assert_is, bits, events_of, intact, points_of

settings.register_profile("reading", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.load_profile("reading")


# What is checked.


def check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "events.out.tfevents.1")
        path.write_bytes(data)
        assert_is(load(directory).runs["."], data)
        file = EventFile(str(path))
        Reader().read([file])
        assert_conserved(file, data)


def assert_conserved(file: EventFile, data: bytes) -> None:
    """Every byte is read, damaged or still waiting for the rest of its record, and every intact record was decoded or
    refused.
    """
    whole = [len(payload) + 16 for payload in intact(data)]
    assert file.size == len(data)
    assert sum(whole) + sum(gap.length for gap in file.damage) == file.position <= file.size
    assert file.events + file.undecodable == len(whole)


def check_growing(parts: list[bytes]) -> None:
    """The same through a `RunCache`, read after each part is added."""
    cache, data = RunCache(), b""
    with tempfile.TemporaryDirectory() as directory:
        for part in parts:
            data += part
            Path(directory, "events.out.tfevents.1").write_bytes(data[: -len(part)] if part else data)
            with Path(directory, "events.out.tfevents.1").open("ab") as stream:
                stream.write(part)
            assert_is(only_run(Path(directory), cache), data)


def only_run(logdir: Path, cache: RunCache) -> Run:
    (job,) = read_jobs(find_jobs(logdir), cache)
    return job.runs["."]


# Arbitrary streams.

NUMBERS = [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 1e-45, 65504.0, 3.0e38, 1e300]
STEPS = st.one_of(st.integers(0, 20_000), st.sampled_from([127, 128, 16383, 16384, 1 << 21, 1 << 62, -1, -(1 << 63), (1 << 63) - 1]))
WALLS = st.one_of(st.floats(1.6e9, 1.8e9), st.floats())
TAGS = st.sampled_from(["loss", "lr", "a", "b", "", "accuracy/α", "x" * 130, "train/loss", "valid/loss"])
VALUE_KINDS = ["simple", "simple", "tensor", "tensor", "typed", "histogram", "v1 histogram", "image", "text", "odd", "none"]
TYPED_FIELDS = {1: 5, 2: 6, 3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, 14: 13, 17: 7, 19: 13, 22: 16, 23: 17}


def content_of(dtype: int, number: float) -> bytes:
    with np.errstate(all="ignore"):
        if dtype == BFLOAT16:
            return np.float32(number).tobytes()[2:]
        finite = number if TYPES[dtype][0] == "f" or np.isfinite(number) else 3
        return np.float64(finite).astype(TYPES[dtype]).tobytes()


def typed(dtype: int, content: bytes) -> bytes:
    """The field of a `TensorProto` that holds one number of `dtype`, packed."""
    if dtype in (1, 2):
        packed = content
    else:
        kind = "u2" if dtype in (HALF, BFLOAT16) else TYPES[dtype]
        packed = varint(int(np.frombuffer(content, kind)[0]))
    return field(TYPED_FIELDS[dtype], packed)


@st.composite
def values(draw: st.DrawFn) -> bytes:
    """The value of a `Summary.Value`, in its wire format."""
    kind = draw(st.sampled_from(VALUE_KINDS))
    number = draw(st.sampled_from(NUMBERS))
    if kind == "simple":
        return b"\x15" + content_of(1, number)
    if kind in ("tensor", "typed"):
        dtype = draw(st.sampled_from([*TYPES, BFLOAT16]))
        shape = draw(st.sampled_from([(), (), (1,), (1, 1), (2,), (0,)]))
        content = content_of(dtype, number)
        return tensor(dtype, shape, typed(dtype, content) if kind == "typed" else field(4, content))
    if kind == "histogram":
        return tensor(2, (3, 3), field(4, draw(st.binary(min_size=72, max_size=72))))
    if kind == "v1 histogram":
        return field(5, b"\x09" + bytes(8) + field(7, bytes(24)))
    if kind == "image":
        return field(4, b"\x08\x01\x10\x01" + field(4, draw(blobs())))
    if kind == "text":
        return tensor(7, draw(st.sampled_from([(), (1,)])), field(8, draw(blobs())))
    if kind == "odd":  # content that does not fit the type, types that do not exist
        return tensor(draw(st.sampled_from([0, 1, 2, 8, 14, 19, 21, 99])), (), field(4, draw(st.binary(max_size=9))))
    return b""


@st.composite
def blobs(draw: st.DrawFn) -> bytes:
    """Bytes that may hold whole records, as an image of a log directory would."""
    inner = draw(st.lists(st.binary(max_size=20).map(record), max_size=3))
    return draw(st.binary(max_size=30)) + b"".join(inner) + draw(st.binary(max_size=30))


@st.composite
def what(draw: st.DrawFn) -> bytes:
    """The fields of an `Event` beside time and step."""
    kind = draw(st.sampled_from(["summary"] * 8 + ["version", "graph", "session", "run metadata", "nothing"]))
    if kind == "summary":
        plugin = draw(st.sampled_from(["", "", "scalars", "histograms", "text"]))
        inner = (
            field(1, draw(TAGS).encode()) + draw(values()) + (field(9, field(1, field(1, plugin.encode()))) if plugin else b"")
            for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3])))
        )
        return field(5, b"".join(field(1, value) for value in inner))
    if kind == "version":
        return field(3, b"brain.Event:2")
    if kind == "session":
        return field(7, b"\x08" + draw(st.sampled_from([b"\x01", b"\x02"])))
    if kind == "run metadata":
        return field(8, field(1, b"step") + field(2, draw(blobs())))
    return field(4, draw(blobs())) if kind == "graph" else b""


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Mostly events as writers write them; sometimes in another order, with unknown or repeated fields, or garbage."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=40))
    step = draw(STEPS)
    fields = [b"\x09" + np.float64(draw(WALLS)).tobytes(), b"\x10" + varint(step) if step else b"", draw(what())]
    if draw(st.integers(0, 9)) == 0:
        odd = st.sampled_from([b"\x78\x05", b"\x10\x85\x80\x00", b"\x7a\x03abc", field(5, field(1, b"\x0a\x01\xff")), b"\x09" + bytes(8)])
        fields = draw(st.permutations([*fields, draw(odd)]))
    return b"".join(fields)


@dataclass(frozen=True)
class Damage:
    """What happens to a file: it is cut at a share of its length, and bits are flipped at other shares."""

    cut: float = 1.0
    flips: tuple[tuple[float, int], ...] = ()

    def of(self, data: bytes) -> bytes:
        broken = bytearray(data[: round(self.cut * len(data))])
        for share, bit in self.flips:
            if broken:
                broken[min(int(share * len(broken)), len(broken) - 1)] ^= 1 << bit
        return bytes(broken)


SHARES = st.floats(0, 1)
DAMAGE = st.builds(
    Damage,
    cut=st.one_of(st.just(1.0), SHARES),
    flips=st.lists(st.tuples(SHARES, st.integers(0, 7)), max_size=4).map(tuple),
)


@given(st.lists(payloads(), max_size=30), DAMAGE)
@settings(max_examples=300)
def test_arbitrary_events(contents, damage):
    check(damage.of(b"".join(map(record, contents))))


@given(st.lists(payloads(), max_size=30), st.lists(SHARES, max_size=3), SHARES)
@settings(max_examples=100)
def test_arbitrary_events_in_a_growing_file(contents, cuts, end):
    data = Damage(cut=end).of(b"".join(map(record, contents)))
    check_growing(split(data, cuts))


def split(data: bytes, cuts: list[float]) -> list[bytes]:
    edges = [0, *sorted(round(cut * len(data)) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_arbitrary_bytes(data):
    check(data)


# Long regular streams, which a fast path may take at once.

KINDS = {
    "simple": lambda number: b"\x15" + np.float32(number).tobytes(),
    "float": lambda number: tensor(1, (), field(4, np.float32(number).tobytes())),
    "double": lambda number: tensor(2, (), field(4, np.float64(number).tobytes())),
    "int64": lambda number: tensor(9, (), field(4, np.int64(number * 1e6).tobytes())),
    "half": lambda number: tensor(19, (), field(4, np.float16(number).tobytes())),
    "bfloat16": lambda number: tensor(14, (), field(4, np.float32(number).tobytes()[2:])),
    "typed float": lambda number: tensor(1, (), field(5, np.float32(number).tobytes())),
    "histogram": lambda number: tensor(2, (30, 3), field(4, np.full(90, number).tobytes())),
    "v1 histogram": lambda number: field(5, b"\x11" + np.float64(number).tobytes() + field(7, bytes(16))),
}
EQUAL = tuple(f"layer_{number}" for number in range(8))


@dataclass(frozen=True)
class Stream:
    """A training loop's file: every cycle logs `tags` one after the other, until there are `records` records.

    `edit` happens in the cycle at share `where` of the file. `metadata` is "always", "first" or "never"; `together` puts
    a cycle into one event.
    """

    tags: tuple[tuple[str, str], ...]  # (name, kind)
    records: int = 600
    first: int = 0
    stride: int = 1
    metadata: str = "always"
    together: bool = False
    edit: str = "none"
    where: float = 0.5
    seed: int = 0

    def payloads(self) -> list[bytes]:
        """The payloads of all records; each edit changes what a fast path may have taken for constant."""
        generator = np.random.default_rng(self.seed)
        cycles = max(2, self.records // len(self.tags))
        at = int(self.where * cycles)
        result = [event(logdirs.FIRST_SECOND, 0, field(3, b"brain.Event:2"))]
        for cycle in range(cycles):
            step, wall = self.first + cycle * self.stride, logdirs.FIRST_SECOND + 0.1 * cycle
            tags = self.edited(cycle, at)
            parts = [self.value(name, kind, cycle, float(generator.normal())) for name, kind in tags]
            if self.together:
                result.append(event(wall, step, field(5, b"".join(field(1, part) for part in parts))))
            else:
                result += [event(wall + 0.001 * i, step, field(5, field(1, part))) for i, part in enumerate(parts)]
            if cycle == at:
                result += self.inserted(result[-1])
        return result

    def value(self, name: str, kind: str, cycle: int, number: float) -> bytes:
        plugin = "histograms" if kind == "histogram" else "scalars"
        stated = self.metadata == "always" or (self.metadata == "first" and cycle == 0) or (kind == "histogram" and cycle == 0)
        metadata = field(9, field(1, field(1, plugin.encode()))) if stated and "v1" not in kind and kind != "simple" else b""
        return field(1, name.encode()) + KINDS[kind](number) + metadata

    def edited(self, cycle: int, at: int) -> list[tuple[str, str]]:
        tags = list(self.tags)
        if self.edit == "rename" and cycle >= at:
            name, kind = tags[-1]
            tags[-1] = (name[:-1] + "~", kind)
        elif self.edit == "another kind" and cycle >= at:
            tags[0] = (tags[0][0], "typed float")
        elif self.edit == "drop" and cycle == at:
            tags.pop()
        elif self.edit == "swap" and cycle >= at:
            tags.reverse()
        elif self.edit == "rare tag" and cycle % 50 == 7:
            tags.insert(1, ("rare", "simple"))
        return tags

    def inserted(self, last: bytes) -> list[bytes]:
        """Records after the edited cycle, some of which hold copies of the record `last`."""
        inserts = {
            "image": summary("image", tensor(7, (3,), field(8, record(last) * 50)), "images"),
            "graph": field(4, bytes(10_000)),
            "unknown field": last[9:] + b"\x78\x05",
            "bad tag": field(5, field(1, field(1, b"\xff") + b"\x15" + bytes(4))),
        }
        return [event(1.0, 1, inserts[self.edit])] if self.edit in inserts else [b"\xff"] if self.edit == "garbage" else []


NAMES = st.one_of(
    st.integers(1, 25).map(lambda n: tuple(logdirs.tags(n))),
    st.just(EQUAL),
    st.lists(st.sampled_from(["loss", "lr", "epoch", "acc"]), min_size=1, max_size=6).map(tuple),
)
EDITS = ["none", "rename", "another kind", "drop", "swap", "rare tag", "image", "graph", "unknown field", "bad tag", "garbage"]


@st.composite
def streams(draw: st.DrawFn, longest: int = 3000) -> Stream:
    names = draw(NAMES)
    mixed = st.tuples(*[st.sampled_from(list(KINDS)) for _ in names])
    kinds = draw(st.one_of(st.sampled_from(["simple", "float"]).map(lambda kind: (kind,) * len(names)), mixed))
    return Stream(
        tags=tuple(zip(names, kinds, strict=True)),
        records=draw(st.sampled_from([n for n in (300, 600, 1500, 3000) if n <= longest])),
        first=draw(st.sampled_from([0, 1, 60, 127, 16300, (1 << 21) - 20, 1 << 62, -100])),
        stride=draw(st.sampled_from([1, 1, 1, 10, 0, -1])),
        metadata=draw(st.sampled_from(["always", "first", "never"])),
        together=draw(st.sampled_from([False, False, False, True])),
        edit=draw(st.sampled_from(EDITS)),
        where=draw(SHARES),
        seed=draw(st.integers(0, 9)),
    )


def named(*names: str, kind: str = "float") -> tuple[tuple[str, str], ...]:
    return tuple((name, kind) for name in names)


@given(streams(), DAMAGE)
@example(Stream(named("loss", "lr", "loss", "epoch", "loss")), Damage())  # a tag several times in one period
@example(Stream(named("loss", "lr"), first=60, edit="drop"), Damage())  # a refused fast path gives back its exact start
@example(Stream(named("loss", "lr", "acc"), records=3000, first=16000, edit="unknown field"), Damage())
@example(Stream(named(*EQUAL), records=3000), Damage())  # eight tags of equal length look like one
@example(Stream(named("loss", "lr", kind="simple"), edit="image"), Damage())  # records embedded in a blob
@example(Stream(named("loss", "lr", kind="simple"), edit="image"), Damage(flips=((0.5, 3),)))
@example(Stream(named("loss", "lr"), records=3000), Damage(flips=((0.5, 3), (0.9, 0))))
@settings(max_examples=120)
def test_regular_streams(stream, damage):
    check(damage.of(b"".join(map(record, stream.payloads()))))


@given(streams(longest=600), st.lists(SHARES, min_size=1, max_size=3), st.lists(st.tuples(SHARES, st.integers(0, 7)), max_size=2))
@example(Stream(named("loss", "lr"), first=60), [0.5], [])
@example(Stream(named(*EQUAL), metadata="first"), [0.3, 0.6], [])
@example(Stream(named("loss", kind="simple"), records=300, edit="image"), [0.6, 0.8], [(0.45, 3)])
@settings(max_examples=60)
def test_regular_streams_in_a_growing_file(stream, cuts, flips):
    data = Damage(flips=tuple(flips)).of(b"".join(map(record, stream.payloads())))
    check_growing(split(data, cuts))


@given(streams(longest=300), streams(longest=300))
@settings(max_examples=20)
def test_a_file_that_is_written_anew_is_read_anew(before, after):
    cache = RunCache()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "events.out.tfevents.1")
        for stream in (before, after):
            data = b"".join(map(record, stream.payloads()))
            path.with_name("new").write_bytes(data)
            path.with_name("new").replace(path)
            assert_is(only_run(Path(directory), cache), data)


def test_several_growing_files_of_one_run(tmp_path):
    """Two writers take turns in one directory; each file's points stay together, in the order of their first times."""
    streams = [Stream(named("loss", "lr"), metadata="first"), Stream(named("loss", "acc"), first=300, seed=1, metadata="first")]
    contents = [b"".join(map(record, stream.payloads())) for stream in streams]
    cache = RunCache()
    for share in (0.3, 0.31, 0.7, 1.0):
        parts = [Damage(cut=share).of(content) for content in contents]
        for number, part in enumerate(parts):
            (tmp_path / f"events.out.tfevents.{number}").write_bytes(part)
        run = only_run(tmp_path, cache)
        expected = [points_of(list(events_of(part))) for part in parts]
        for tag in ("loss", "lr", "acc"):
            assert bits(run.scalars[tag].values) == bits([value for points in expected for _, _, value in points.get(tag, [])])


# Long files.


@pytest.mark.parametrize(("size", "scale"), [("f", 0.02), ("i", 0.08), ("h", 0.7)])
def test_no_point_is_lost_where_a_file_is_longer_than_what_is_read_at_once(tmp_path, size, scale):
    root, written = logdirs.make(size, tmp_path, scale)
    (run,) = load(root).runs.values()
    assert run.events == written.events
    assert sum(int(series.steps.sum()) for series in run.scalars.values()) == written.step_sum
    bit_sums = [int(series.values.astype(np.float32).view(np.uint32).sum(dtype=np.uint64)) for series in run.scalars.values()]
    assert sum(bit_sums) == written.value_sum


@pytest.mark.parametrize("size", ["s", "m"])
def test_every_flipped_record_is_refused_and_every_other_kept(tmp_path, size):
    root, _ = logdirs.make(size, tmp_path, 0.05)
    generator = np.random.default_rng(0)
    for path in sorted(root.rglob("*tfevents*"))[:5]:
        data = bytearray(path.read_bytes())
        for offset in generator.choice(len(data), 300 if size == "s" else 40, replace=False).tolist():
            data[offset] ^= 1 << generator.integers(8)
        check(bytes(data))
