"""The seed corpus of the fuzz target: small event files of every kind, whole and as payloads.

python tests/fuzz/seeds.py DIRECTORY
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.logdirs import FIRST_SECOND, HIDDEN, event, field, record, simple_value, summary, tensor, v2_scalar  # noqa: E402

RAW = 128  # set in an input's first byte where the rest is the file itself


def kinds() -> dict[str, bytes]:
    """Fields of events, by what they show."""
    number = np.float32(0.5).tobytes()
    scalar = {
        dtype: np.array(3, kind).tobytes() for dtype, kind in {2: "f8", 3: "i4", 4: "u1", 9: "i8", 10: "?", 19: "f2", 23: "u8"}.items()
    }
    tensors = {f"tensor-{dtype}": summary("loss", tensor(dtype, (), field(4, content))) for dtype, content in scalar.items()}
    return tensors | {
        "simple": simple_value("loss").replace(HIDDEN, number),
        "tf2": v2_scalar("loss").replace(HIDDEN, number),
        "typed": summary("loss", tensor(1, (), field(5, number)), "scalars"),
        "bfloat16": summary("loss", tensor(14, (1,), field(4, b"\0\x3f"))),
        "histogram": summary("weights", tensor(2, (2, 3), field(4, bytes(48))), "histograms"),
        "v1-histogram": summary("weights", field(5, b"\x09" + bytes(8))),
        "image": summary("image", tensor(7, (3,), field(8, b"8") + field(8, b"8") + field(8, record(b"embedded")))),
        "version": field(3, b"brain.Event:2"),
        "graph": field(4, bytes(20)),
        "session": field(7, b"\x08\x01"),
        "unknown": b"\x78\x05",
        "several": field(5, field(1, b"\x0a\x01a\x15" + number) + field(1, b"\x0a\x01b\x15" + number)),
    }


def loops() -> Iterator[tuple[str, list[bytes]]]:
    """(name, payloads of a training loop) of every kind alone, and of some together."""
    whats = kinds()
    for name, what in whats.items():
        yield name, [event(FIRST_SECOND + step, step, what) for step in (0, 1, 127, 128, 2**62, -1)]
    yield "mixed", [event(FIRST_SECOND + step, step, what) for step in range(3) for what in whats.values()]


def write_seeds(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, payloads in loops():
        body = b"".join(len(payload).to_bytes(2, "little") + payload for payload in payloads)
        (directory / f"{name}-payloads").write_bytes(bytes([3, 100]) + body)
        (directory / f"{name}-file").write_bytes(bytes([RAW, 200]) + b"".join(map(record, payloads)))


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
