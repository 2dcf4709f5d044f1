"""How fast a large capture is read: ours beside protobuf's own parse, and xprof's overview page.

python tests/benchmarks/trace.py [--megabytes 100] [--rounds 3] [--against protobuf xprof]

The XSpace (6 million events in 100 MB) is made once, below --cache. Then the readers take turns, each in a fresh process, with the file in
the page cache. Figures are medians of CPU seconds and the highest memory; `base` is what the process had before it read, its imports.

ours      as the Advisor reads it, in a process of its own (whose start, imports and memory count too), and steps, input waits and memory
reader    read_xplane alone, in this process
protobuf  XSpace.FromString of the same message classes, without looking at an event
xprof     overview_page through its byte API; skipped where xprof is not installed
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

READERS = ("ours", "reader", "protobuf", "xprof")
# At most: CPU seconds of our reader in those of protobuf's parse, memory of all of ours in sizes of the file.
DEMANDED_CPU, DEMANDED_MEMORY = 2.0, 6.0
BYTES_AN_EVENT = 16.7
STEPS = 200
STEP_PS = 150_000_000_000


# The file.


def make(path: Path, events: int) -> None:
    """An XSpace of about `events` events: three threads of the host, the threads of tf.data, and three streams of a GPU."""
    from tb_advisor.logdir.xplane import _classes, xspace_class

    line_class = _classes()["XLine"]
    space = xspace_class()()
    with path.open("wb") as stream:
        for plane_name, lines, share in (
            ("/host:CPU", ("python", "tf_Compute/1", "tf_Compute/2", "tf_data_iterator_get_next/3"), 0.6),
            ("/device:GPU:0", ("Stream #1(Compute)", "Stream #2(Compute)", "Stream #3(MemcpyH2D)"), 0.4),
        ):
            plane = space.planes.add(name=plane_name.encode())
            for key in range(1, 501):
                plane.event_metadata.add(key=key).value.name = f"model/layer_{key % 50}/op_{key}".encode()
            for key, name in (
                (501, "train"),
                (502, "IteratorGetNextOp::DoCompute"),
                (503, "Iterator::Root::Prefetch::Map"),
                (504, "MemoryAllocation"),
            ):
                plane.event_metadata.add(key=key).value.name = name.encode()
            for key, name in enumerate(("step_num", "name", "parallelism", "bytes_allocated", "bytes_available", "allocator_name"), 1):
                plane.stat_metadata.add(key=key).value.name = name.encode()
            body = plane.SerializeToString()
            del space.planes[:]
            for name in lines:
                line = line_class(name=name.encode(), timestamp_ns=1_796_000_000_000_000_000)
                _fill(line, name, int(events * share / len(lines)))
                body += _field(3, line.SerializeToString())
            stream.write(_field(1, body))


def _fill(line: object, name: str, count: int) -> None:
    a_step = count // STEPS
    each = STEP_PS // (a_step + 1)
    for step in range(STEPS):
        start = step * STEP_PS
        if name == "python":
            line.events.add(metadata_id=501, offset_ps=start, duration_ps=STEP_PS - 1).stats.add(metadata_id=1, int64_value=step)
        elif name.startswith("tf_data"):
            line.events.add(metadata_id=502, offset_ps=start, duration_ps=STEP_PS // 4)
            stage = line.events.add(metadata_id=503, offset_ps=start + 1, duration_ps=STEP_PS // 8)
            stage.stats.add(metadata_id=2, str_value=b"MapDataset:3")
            stage.stats.add(metadata_id=3, int64_value=4)
        elif name == "tf_Compute/1":
            for k in range(5):
                event = line.events.add(metadata_id=504, offset_ps=start + k, duration_ps=0)
                event.stats.add(metadata_id=4, int64_value=(1 + k) << 28)
                event.stats.add(metadata_id=5, int64_value=(9 - k) << 28)
                event.stats.add(metadata_id=6, str_value=b"GPU_0_bfc")
        for k in range(1, a_step):
            line.events.add(metadata_id=1 + (7 * k) % 500, offset_ps=start + k * each, duration_ps=each // 2 + k)


def _field(number: int, content: bytes) -> bytes:
    length, head = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes(head) + bytes([length]) + content


# In the child: one reader, once.

# What two processes had together, at most: the one that reads is gone when the trace is looked at.
memory_while_reading = 0


def ours(path: Path) -> object:
    from tb_advisor.evidence.memory import allocator_memory
    from tb_advisor.evidence.trace_steps import marked_steps, read_capture, step_times
    from tb_advisor.logdir.captures import Capture

    traces = (read_capture(Capture("benchmark", "benchmark", (path,))),)
    global memory_while_reading
    memory_while_reading = _memory() + _memory(resource.RUSAGE_CHILDREN)
    steps = marked_steps(traces)
    return step_times(traces, steps), allocator_memory(steps)


def reader(path: Path) -> object:
    from tb_advisor.logdir.xplane import read_xplane

    return read_xplane(path)


def protobuf(path: Path) -> object:
    from tb_advisor.logdir.xplane import xspace_class

    return xspace_class().FromString(path.read_bytes())


def xprof(path: Path) -> object:
    from xprof.convert import raw_to_tool_data

    name = "/nonexistent/plugins/profile/run/host.xplane.pb"
    return raw_to_tool_data.xspace_to_tools_data_from_byte_string([path.read_bytes()], [name], "overview_page", {"use_saved_result": False})


FUNCTIONS: dict[str, Callable[[Path], object]] = {"ours": ours, "reader": reader, "protobuf": protobuf, "xprof": xprof}


def measure(name: str, path: Path) -> None:
    """Read once, and print CPU seconds, wall seconds and memory (bytes) before and at most."""
    warm_up = {"ours": "tb_advisor.evidence.memory", "xprof": "xprof.convert.raw_to_tool_data"}.get(name, "tb_advisor.logdir.xplane")
    importlib.import_module(warm_up)
    if name != "xprof":
        from tb_advisor.logdir.xplane import xspace_class

        xspace_class()
    base, cpu, wall = _memory(), _cpu(), time.perf_counter()
    kept = FUNCTIONS[name](path)
    cpu, wall = _cpu() - cpu, time.perf_counter() - wall
    print(json.dumps({"cpu": cpu, "wall": wall, "base": base, "memory": max(_memory(), memory_while_reading), "read": kept is not None}))


def _cpu() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    return sum(times.ru_utime + times.ru_stime for times in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def _memory(whose: int = resource.RUSAGE_SELF) -> int:
    """The most memory that this process, or one that it started, has had so far."""
    used = resource.getrusage(whose).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


# In the parent.


def run(name: str, path: Path) -> dict[str, float]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, __file__, "--child", name, "--file", str(path)], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", nargs="*", choices=READERS[2:], default=list(READERS[2:]))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tb_advisor_benchmarks")
    parser.add_argument("--child", choices=READERS)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    if options.child:
        measure(options.child, options.file)
        return
    options.cache.mkdir(parents=True, exist_ok=True)
    path = options.cache / f"trace-{options.megabytes}.xplane.pb"
    events = int(options.megabytes * 1e6 / BYTES_AN_EVENT)
    if not path.exists():
        print(f"making {path} …", flush=True)
        make(path.with_suffix(".part"), events)
        path.with_suffix(".part").rename(path)
    size = path.stat().st_size
    readers = [name for name in READERS if name not in READERS[2:] or name in options.against]
    if "xprof" in readers and importlib.util.find_spec("xprof") is None:
        print("xprof is not installed: skipped")
        readers.remove("xprof")
    print(f"{size / 1e6:.0f} MB, about {events / 1e6:.1f} million events; {options.rounds} rounds")
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in readers}
    for _ in range(options.rounds):
        for name in readers:
            taken[name].append(run(name, path))
    figures = {
        name: {key: median(each[key] for each in rounds) for key in ("cpu", "wall", "base", "memory")} for name, rounds in taken.items()
    }
    print(f"{'':10}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'base MB':>9}{'peak/file':>11}")
    for name, its in figures.items():
        print(f"{name:10}{its['cpu']:8.2f}{its['wall']:8.2f}{its['memory'] / 1e6:9.0f}{its['base'] / 1e6:9.0f}{its['memory'] / size:11.1f}")
    failed = figures["ours"]["memory"] > DEMANDED_MEMORY * size
    if "protobuf" in figures:
        ratio = figures["reader"]["cpu"] / figures["protobuf"]["cpu"]
        print(f"our reader takes {ratio:.2f}× the CPU of protobuf's parse (at most {DEMANDED_CPU:g}×)")
        failed |= ratio > DEMANDED_CPU
    sys.exit(failed)


if __name__ == "__main__":
    main()
