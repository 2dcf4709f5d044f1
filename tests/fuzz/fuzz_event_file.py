"""Fuzz the reader of event files with atheris; what it reads is held to the reference.

python tests/fuzz/fuzz_event_file.py [-max_total_time=600] [options of libFuzzer] [corpus]

Without a corpus directory it starts from the seeds of seeds.py in a temporary one. A finding is written to a file
crash-…, which the same command with that file as its argument reads again.

An input is one byte that says how the rest becomes a file, one that says where the file is cut in two to be read in two
parts, and the rest: either the file itself, or payloads (two bytes of length, then that many bytes), which get correct
checksums, as flips of bits would hardly ever leave a checksum intact, and are repeated, as in a training loop.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["tb_advisor"]):
    from tb_advisor.logdir.jobs import RunCache, find_jobs, read_jobs

from tests.benchmarks.logdirs import record  # noqa: E402
from tests.fuzz.seeds import RAW, write_seeds  # noqa: E402
from tests.logdir.reference import assert_is  # noqa: E402


def file_of(given: bytes) -> tuple[bytes, int]:
    """The file that an input stands for, and where it is cut in two."""
    how, cut, body = given[0], given[1], given[2:]
    content = body if how & RAW else framed(body) * (1 + (how & 31))
    return content, len(content) * cut // 256


def framed(body: bytes) -> bytes:
    records = []
    while len(body) >= 2:
        length = int.from_bytes(body[:2], "little")
        records.append(record(body[2 : 2 + length]))
        body = body[2 + length :]
    return b"".join(records)


def fuzz(logdir: Path, given: bytes) -> None:
    if len(given) < 2:
        return
    content, cut = file_of(given)
    path = logdir / "events.out.tfevents.1"
    path.unlink(missing_ok=True)
    cache = RunCache()
    for part in (content[:cut], content):
        with path.open("ab") as stream:
            stream.write(part[stream.tell() :])
        (job,) = read_jobs(find_jobs(logdir), cache)
        assert_is(job.runs["."], part)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        logdir, seeds = Path(scratch, "logdir"), Path(scratch, "seeds")
        logdir.mkdir()
        # What atheris instruments keeps some 10 KB for each input tried, so that the usual limit of 2 GB ends a long run.
        arguments = [sys.argv[0], "-rss_limit_mb=0", *sys.argv[1:]]
        if all(argument.startswith("-") for argument in arguments[1:]):
            write_seeds(seeds)
            arguments.append(str(seeds))
        atheris.Setup(arguments, lambda given: fuzz(logdir, given))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
