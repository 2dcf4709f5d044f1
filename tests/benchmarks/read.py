"""How fast every point is read: ours beside TensorBoard's Rust data server, its EventAccumulator, tbparse and the floor.

python tests/benchmarks/read.py [--size s m l h i n f] [--rounds 5] [--against rust accumulator tbparse floor]

The log directories (logdirs.py says what they hold) are made once, below --cache. Then the readers take turns, each
in a fresh process on one core, with the files in the page cache. The figures are medians; CPU seconds are the ones to
trust, as they change least with what else the machine does. Python readers are timed without their imports. What each
one read is compared with what was written.

ours         tb_advisor.load, every checksum verified
rust         tensorboard-data-server that keeps all scalars and histograms, without checksums, which is its default
accumulator  TensorBoard's EventAccumulator with size_guidance 0 and purge_orphaned_data=False
tbparse      SummaryReader(event_types={"scalars", "tensors"}); skipped where it is not installed
floor        reads the files once and takes the CRC-32C of all bytes, in blocks of 256 KB

Sizes l and n also measure a refresh: with nothing new, and with 1,000 new events in one run.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.logdirs import MAKERS, Written, make, v2_scalar, write_run  # noqa: E402

READERS = ("ours", "rust", "accumulator", "tbparse", "floor")
# How many times our CPU seconds (for the floor: its CPU seconds in ours, at most). Issue 3.
DEMANDED = {
    "rust": {"s": 3, "m": 3, "l": 7, "f": 11, "n": 1, "i": 1.5, "h": 1.5},
    "accumulator": {"s": 30, "m": 45},
    "floor": {"m": 1 / 10, "l": 1 / 10},
}
SLOW = {"accumulator": "lf", "tbparse": "lfnhi"}  # minutes and gigabytes: only when asked for by name


# In the child: one reader, once.


def event_files(logdir: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(logdir):
        yield from (Path(directory, name) for name in names if "tfevents" in name)


def clock() -> tuple[float, float]:
    """(CPU seconds of this process and the children that have ended, wall seconds)."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime, time.perf_counter()


def peak_memory(pid: int | str = "self") -> int:
    """Largest resident size so far in bytes, 0 where /proc does not say. Unlike ru_maxrss it starts anew at exec."""
    try:
        match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(match[1]) << 10 if match else 0


def timed(read: Callable[[], object]) -> tuple[dict[str, float], object]:
    cpu, wall = clock()
    result = read()
    cpu_end, wall_end = clock()
    return {"cpu": cpu_end - cpu, "wall": wall_end - wall, "peak": peak_memory()}, result


def sums(columns: Iterator[tuple[object, object]]) -> dict[str, int]:
    """Points, and the sums that `Written` has, of pairs of steps and values."""
    import numpy as np

    total = {"points": 0, "step_sum": 0, "value_sum": 0}
    for steps, values in columns:
        total["points"] += len(steps)
        total["step_sum"] += int(np.asarray(steps, np.int64).sum())
        total["value_sum"] += int(np.asarray(values, np.float32).view(np.uint32).sum(dtype=np.uint64))
    return total


def read_ours(logdir: Path) -> dict[str, float]:
    import tb_advisor

    with tempfile.TemporaryDirectory() as warm:  # so that what is imported on first use is imported
        write_run(Path(warm), Written(), [])
        tb_advisor.load(warm)
    result, read = timed(lambda: tb_advisor.load(logdir))
    histograms = sum(len(some) for run in read.runs.values() for some in run.histograms.values())
    return result | sums((s.steps, s.values) for run in read.runs.values() for s in run.scalars.values()) | {"histograms": histograms}


def read_accumulator(logdir: Path) -> dict[str, float]:
    from tensorboard.backend.event_processing.event_accumulator import DEFAULT_SIZE_GUIDANCE, EventAccumulator
    from tensorboard.compat import tf
    from tensorboard.util.tensor_util import make_ndarray

    tf.io.gfile.exists("/")  # imports TensorFlow where it is installed
    everything = dict.fromkeys(DEFAULT_SIZE_GUIDANCE, 0)

    def read() -> list[EventAccumulator]:
        directories = sorted({path.parent for path in event_files(logdir)})
        return [EventAccumulator(str(d), size_guidance=everything, purge_orphaned_data=False).Reload() for d in directories]

    def columns(accumulators: list[EventAccumulator]) -> Iterator[tuple[list[int], list[float]]]:
        for accumulator in accumulators:
            tags = accumulator.Tags()
            for tag in tags["scalars"]:
                yield zip(*((e.step, e.value) for e in accumulator.Scalars(tag)), strict=True)
            for tag in tags["tensors"]:
                if accumulator.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
                    yield zip(*((e.step, make_ndarray(e.tensor_proto).item()) for e in accumulator.Tensors(tag)), strict=True)

    result, accumulators = timed(read)
    return result | sums(columns(accumulators))


def read_tbparse(logdir: Path) -> dict[str, float]:
    from tbparse import SummaryReader
    from tensorboard.compat import tf

    tf.io.gfile.exists("/")

    def read() -> int:
        reader = SummaryReader(str(logdir), event_types={"scalars", "tensors"})
        return len(reader.scalars) + len(reader.tensors)

    result, points = timed(read)
    return result | {"points": points}


def read_floor(logdir: Path) -> dict[str, float]:
    import google_crc32c

    def read() -> None:
        for path in event_files(logdir):
            crc = 0
            with path.open("rb", buffering=0) as stream:
                while block := stream.read(256 << 10):
                    crc = google_crc32c.extend(crc, block)

    return timed(read)[0]


def read_rust(logdir: Path) -> dict[str, float]:
    import tensorboard_data_server

    command = [tensorboard_data_server.server_binary(), "--logdir", str(logdir), "--port", "0", "--reload", "once", "-v"]
    begin = time.perf_counter()
    server = subprocess.Popen([*command, "--samples-per-plugin", "scalars=all,histograms=all"], stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if listening := re.search(r"listening on \D*[\w.]*:(\d+)", line):
                port = int(listening[1])
            if "Finished load cycle" in line:
                break
        wall = time.perf_counter() - begin
        cpu = time.clock_gettime(~server.pid << 3 | 2)  # that process's CPU clock: MAKE_PROCESS_CPUCLOCK of Linux
        result = {"cpu": cpu, "wall": wall, "peak": peak_memory(server.pid)}
        return result | {"points": points_served(port)}
    finally:
        server.kill()


def points_served(port: int) -> int:
    import grpc
    from tensorboard.data.proto import data_provider_pb2 as pb
    from tensorboard.data.proto.data_provider_pb2_grpc import TensorBoardDataProviderStub

    options = [("grpc.max_receive_message_length", -1)]
    channel = grpc.insecure_channel(f"localhost:{port}", options=options)
    request = pb.ReadScalarsRequest(plugin_filter=pb.PluginFilter(plugin_name="scalars"), downsample=pb.Downsample(num_points=1 << 40))
    answer = TensorBoardDataProviderStub(channel).ReadScalars(request)
    return sum(len(tag.data.step) for run in answer.runs for tag in run.tags)


def read_again(logdir: Path) -> dict[str, float]:
    """Reads through a `RunCache`, again with nothing new, and again after 1,000 new events in one run.

    Works in a copy of the log directory whose files are hard links but for the one that grows.
    """
    from tb_advisor.logdir.jobs import RunCache, find_jobs, read_jobs

    cache = RunCache()

    def read(directory: Path) -> int:
        return sum(len(series) for job in read_jobs(find_jobs(directory), cache) for series in job.scalars)

    with tempfile.TemporaryDirectory(dir=logdir.parent) as scratch:
        grown = Path(scratch, logdir.name)
        shutil.copytree(logdir, grown, copy_function=os.link)
        path = min(event_files(grown))
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        cold, points = timed(lambda: read(grown))
        same, points_same = timed(lambda: read(grown))
        new = Written()
        write_run(Path(scratch, "new"), new, scalars_of(1000, new))
        with path.open("ab") as stream:
            stream.write(min(event_files(Path(scratch, "new"))).read_bytes())
        more, points_more = timed(lambda: read(grown))
    if (points_same, points_more) != (points, points + 1000):
        raise SystemExit(f"a refresh read {points_same:,} and {points_more:,} points after {points:,}")
    return cold | {"points": points, "nothing_new": same["wall"], "new_events": more["wall"]}


def scalars_of(count: int, written: Written) -> Iterator[object]:
    from tests.benchmarks.logdirs import scalars

    return scalars(written, [v2_scalar("loss")], count, 0)


CHILDREN = {
    "ours": read_ours,
    "rust": read_rust,
    "accumulator": read_accumulator,
    "tbparse": read_tbparse,
    "floor": read_floor,
    "again": read_again,
}


# In the parent: rounds and tables.


def measure(reader: str, logdir: Path, core: int | None) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", reader, str(logdir)]
    pin = None if core is None else (lambda: os.sched_setaffinity(0, {core}))
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=pin, check=False)
    if done.returncode:
        raise SystemExit(f"{reader} failed on {logdir}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def check(reader: str, row: dict[str, float], written: Written) -> None:
    """Exits where a lossless reader did not read exactly what was written."""
    expected = {"points": written.points, "step_sum": written.step_sum, "value_sum": written.value_sum, "histograms": written.histograms}
    found = {key: row[key] for key in expected if key in row}
    if reader in ("ours", "accumulator", "again") and any(found[key] != expected[key] for key in found):
        raise SystemExit(f"{reader} read {found}, but {expected} was written")


def report(size: str, written: Written, rows: dict[str, list[dict[str, float]]]) -> None:
    kinds = f"{written.points:,} points" + (f", {written.histograms:,} histograms" if written.histograms else "")
    print(f"\n{size.upper()}: {written.bytes / 1e6:,.1f} MB, {kinds}. {' '.join(MAKERS[size].__doc__.split())}\n")
    print("| reader | CPU s | wall s | peak MB | events/s | points | CPU ÷ ours | demanded |")
    print("|---|---|---|---|---|---|---|---|")
    middle = {reader: {key: median(row[key] for row in some) for key in some[0]} for reader, some in rows.items()}
    for reader, row in middle.items():
        if reader == "again":
            continue
        points = f"{int(row['points']):,}" if "points" in row else ""
        ratio = row["cpu"] / middle["ours"]["cpu"]
        demanded = DEMANDED.get(reader, {}).get(size)
        goal = "" if demanded is None else f"≥ {demanded:g} {'yes' if ratio >= demanded else 'NO'}"
        rate = written.events / row["cpu"] if row["cpu"] else 0
        print(
            f"| {reader} | {row['cpu']:.3f} | {row['wall']:.3f} | {row['peak'] / 1e6:,.0f} | {rate:,.0f} | {points} "
            f"| {1 if reader == 'ours' else ratio:.3g} | {goal} |"
        )
    if written.points >= 1e6:
        spare = (middle["ours"]["peak"] - 80e6) / written.points
        print(f"\nOurs above 80 MB: {spare:.1f} bytes a point.")
    if "again" in middle:
        again = middle["again"]
        print(f"\nThrough RunCache: cold {again['wall']:.2f} s, nothing new {1000 * again['nothing_new']:.0f} ms, ", end="")
        print(f"1,000 new events in one of {written.runs:,} runs {1000 * again['new_events']:.0f} ms (wall).")


def compare(size: str, readers: list[str], rounds: int, cache: Path, scale: float, core: int | None) -> None:
    logdir, written = make(size, cache, scale)
    rows: dict[str, list[dict[str, float]]] = {}
    readers = [*readers, "again"] if size in "ln" else readers
    for path in event_files(logdir):
        path.read_bytes()
    for number in range(rounds):
        for reader in readers:
            print(f"\r{size}: round {number + 1} of {rounds}, {reader:12}", end="", file=sys.stderr, flush=True)
            row = measure(reader, logdir, core)
            check(reader, row, written)
            rows.setdefault(reader, []).append(row)
    print("\r", end="", file=sys.stderr)
    report(size, written, rows)


def chosen(size: str, against: list[str] | None) -> list[str]:
    if against is not None:
        return ["ours", *against]
    installed = [r for r in READERS if r != "tbparse" or importlib.util.find_spec("tbparse")]
    return [reader for reader in installed if size not in SLOW.get(reader, "")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", choices=MAKERS, default=["s", "m"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", nargs="*", choices=READERS[1:], help="default: all but those that take minutes")
    parser.add_argument("--scale", type=float, default=1.0, help="0.05 makes everything 20 times smaller")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tb_advisor-benchmark")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        reader, logdir = arguments.child
        print(json.dumps(CHILDREN[reader](Path(logdir))))
        return
    arguments.cache.mkdir(parents=True, exist_ok=True)
    core = arguments.core if hasattr(os, "sched_setaffinity") else None
    place = "no core of its own" if core is None else f"core {core}"
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, {place}; medians of {arguments.rounds}")
    if importlib.util.find_spec("tbparse") is None:
        print("tbparse is not installed: skipped")
    for size in arguments.size:
        compare(size, chosen(size, arguments.against), arguments.rounds, arguments.cache, arguments.scale, core)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
