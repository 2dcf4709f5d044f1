"""What the rules cost beside the reading: python tests/benchmarks/rules.py [--size l r h] [--rounds 3] [--scale 1]

The log directories (logdirs.py says what they hold) are made once, below --cache. Each round is a fresh process on one core that
reads a log directory and runs every rule on it, without worker processes. The figures are medians of CPU seconds. Demanded are at
most twice the time of reading for the rules on 20 million points (size l), and one second for reading and rules together on 40
trainings (size r). What several rules share is charged to the first that asks.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.logdirs import MAKERS, Written, make, write_run  # noqa: E402

RULES_TO_READING = {"l": 2.0}
SECONDS_IN_ALL = {"r": 1.0}
MOST_EXPENSIVE = 5


def check(logdir: Path) -> dict[str, float]:
    """CPU seconds by part: reading, the summary, and each piece of evidence and rule."""
    import tb_advisor
    from tb_advisor.check import check, fold
    from tb_advisor.evidence import Evidence, providers
    from tb_advisor.logdir.jobs import RunCache, find_jobs, read_jobs
    from tb_advisor.report import summarize
    from tb_advisor.rules import all_rules

    with tempfile.TemporaryDirectory() as warm:  # so that what is imported on first use is imported
        write_run(Path(warm), Written(), [])
        tb_advisor.diagnose(warm, workers=1)
    seconds: dict[str, float] = defaultdict(float)

    def timed(name: str, function: Callable) -> Callable:
        """Charges the seconds of each call to `name`, but for those of timed calls within it."""

        @wraps(function)
        def call(*arguments):
            others, begin = sum(seconds.values()), time.process_time()
            try:
                return function(*arguments)
            finally:
                seconds[name] += time.process_time() - begin - (sum(seconds.values()) - others)

        return call

    known = providers()
    for name, provider in list(known.items()):
        known[name] = timed(f"evidence {name}", provider)
    rules = [rule for rule in all_rules() if not rule.of_family]
    for job in timed("reading", lambda: list(read_jobs(find_jobs(logdir), RunCache())))():
        evidence = Evidence(job)
        timed("summary", summarize)(job, evidence)
        timed("folding", fold)([timed(f"rule {rule.id}", check)(rule, job.name, evidence) for rule in rules])
    return dict(seconds)


def measure(logdir: Path, core: int | None) -> dict[str, float]:
    pin = None if core is None else (lambda: os.sched_setaffinity(0, {core}))
    command = [sys.executable, __file__, "--child", str(logdir)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pin, check=False)
    if done.returncode:
        raise SystemExit(f"checking {logdir} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def report(size: str, written: Written, rounds: list[dict[str, float]]) -> None:
    seconds = {part: median(row.get(part, 0.0) for row in rounds) for part in rounds[0]}
    reading = seconds.pop("reading")
    rules = median(sum(row.values()) - row["reading"] for row in rounds)
    what = f"{written.points:,} points" + (f", {written.histograms:,} histograms" if written.histograms else "")
    print(f"\n{size.upper()}: {what}. {' '.join(MAKERS[size].__doc__.split())}\n")
    print("| part | CPU s | ÷ reading |\n|---|---|---|")
    print(f"| reading | {reading:.3f} | 1 |")
    demanded = (
        f" (≤ {RULES_TO_READING[size]:g} {'yes' if rules <= RULES_TO_READING[size] * reading else 'NO'})"
        if size in RULES_TO_READING
        else ""
    )
    print(f"| all rules | {rules:.3f} | {rules / reading:.2f}{demanded} |")
    for part in sorted(seconds, key=lambda part: -seconds[part])[:MOST_EXPENSIVE]:
        print(f"| {part} | {seconds[part]:.3f} | {seconds[part] / reading:.2f} |")
    if size in SECONDS_IN_ALL:
        enough = "yes" if reading + rules <= SECONDS_IN_ALL[size] else "NO"
        print(f"\nIn all {reading + rules:.3f} s (≤ {SECONDS_IN_ALL[size]:g} s {enough}).")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", choices=MAKERS, default=["l", "r", "h"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="0.05 makes everything 20 times smaller")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tb_advisor-benchmark")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(check(Path(arguments.child))))
        return
    arguments.cache.mkdir(parents=True, exist_ok=True)
    core = arguments.core if hasattr(os, "sched_setaffinity") else None
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores; medians of {arguments.rounds}")
    for size in arguments.size:
        logdir, written = make(size, arguments.cache, arguments.scale)
        report(size, written, [measure(logdir, core) for _ in range(arguments.rounds)])


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
