"""Train some 75 small models, healthy and with real faults, in well under two minutes: python tests/accuracy/make.py OUT [NAME …]

Every run lies in a directory of OUT. What is wrong with each stands in OUT/labels.jsonl, a line a run:

run, sub_runs       the directory, and those below it that hold event files
framework, task     what wrote it, what was learned
labels              what is wrong, as `definitions.py` measures it on the curves
acceptable          arguable: to report it is neither right nor wrong
onset_step          {label: step or [lowest, highest]}
last_step, cause, healthy, notes

A fault that does not show on the curves, or a symptom that nobody put there, is an error: the labels are what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="-1")
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # the matrices are small, and the runs share the cores
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import tb_advisor  # noqa: E402
from tests.accuracy import definitions  # noqa: E402
from tests.accuracy.catalog import TRAININGS, Training  # noqa: E402
from tests.accuracy.definitions import Curves, Onset, Points  # noqa: E402
from tests.accuracy.log import Log, TensorFlowLog  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="only these runs")
    arguments = parser.parse_args()
    load_trainings()
    names = arguments.names or list(TRAININGS)
    arguments.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with ProcessPoolExecutor(2, initializer=load_trainings) as pool:
        seconds = dict(zip(names, pool.map(run, names, [arguments.out] * len(names)), strict=True))
    measured = {name: Measured(TRAININGS[name], arguments.out / name) for name in names}
    rows, problems = [], []
    for name in names:
        row, wrong = label(TRAININGS[name], measured)
        rows.append(row)
        problems += wrong
    (arguments.out / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    slowest = ", ".join(f"{name} {seconds[name]:.1f} s" for name in sorted(names, key=seconds.get, reverse=True)[:5])
    print(f"{len(rows)} runs, {sum(row['healthy'] for row in rows)} healthy, in {time.monotonic() - begin:.0f} s; slowest: {slowest}")
    if problems:
        sys.exit("\n".join(problems))


def load_trainings() -> None:
    from tests.accuracy import runs_games, runs_keras, runs_numpy  # noqa: F401


def run(name: str, out: Path) -> float:
    """Train one, and say how many seconds it took."""
    training = TRAININGS[name]
    shutil.rmtree(out / name, ignore_errors=True)
    begin = time.monotonic()
    np.random.seed(0)
    log = (TensorFlowLog if training.framework == "tensorflow" else Log)(out / name, dict(training.tags))
    with np.errstate(all="ignore"):  # the faults overflow
        training.train(log)
    log.close()
    for path in (out / name).rglob("events*"):
        os.utime(path, (time.time() - 3600,) * 2)  # a file that has just been written is of a job that runs
    return time.monotonic() - begin


class Measured:
    """What the definitions say of a run."""

    def __init__(self, training: Training, directory: Path) -> None:
        self.directory = directory
        self.curves = Curves(read(directory), training.tags, training.chance)
        found = {name: definition(self.curves) for name, definition in definitions.MEASURED.items()}
        self.onsets: dict[str, Onset] = {name: onset for name, onset in found.items() if onset is not None}
        self.debatable = {name for name, definition in definitions.DEBATABLE.items() if definition(self.curves) is not None}
        self.last_step = max((int(p.steps.max()) for p in self.curves.everything if len(p)), default=0)


def read(directory: Path) -> list[tuple[str, Points]]:
    """Every scalar and histogram of every sub-run, in the order of writing."""
    written = []
    for name, of_run in tb_advisor.load(directory).runs.items():
        sub_run = "" if name == "." else name
        for tag, series in of_run.scalars.items():
            written.append((sub_run, Points(tag, series.steps, series.wall_times, series.values)))
        for tag, some in of_run.histograms.items():
            buckets = [some[i] for i in range(len(some))]
            written.append((sub_run, Points(tag, some.steps, some.wall_times, np.zeros(len(some)), buckets)))
    return written


# Another load on the machine slows a run down, and a batch may be an outlier.
BY_CHANCE = ("throughput_degradation", "loss_spike")


def label(training: Training, measured: Mapping[str, Measured]) -> tuple[dict[str, object], list[str]]:
    """The run's line of labels.jsonl, and where what was measured is not what is wrong with it."""
    of_run = measured[training.name]
    onsets = dict(of_run.onsets)
    if "underfitting" in training.labels and fits_worse(of_run, measured.get(training.twin)):
        onsets["underfitting"] = 0
    follows = {other for name in training.labels for other in definitions.FOLLOWS.get(name, ())}
    consequences = follows | set(training.acceptable)
    acceptable = (consequences | of_run.debatable) - set(training.labels)
    expected = {*training.labels, *consequences, *BY_CHANCE}
    problems = [f"{training.name}: {name} does not show on the curves" for name in training.labels if name not in onsets]
    problems += [f"{training.name}: {name} shows on the curves" for name in onsets if name not in expected]
    onset = {name: onsets.get(name) for name in training.labels if name != "underfitting"} | training.onset
    sub_runs = sorted({path.parent.relative_to(of_run.directory.parent).as_posix() for path in of_run.directory.rglob("events*")})
    return {
        "run": training.name,
        "sub_runs": sub_runs,
        "scenario": training.name,
        "framework": training.framework,
        "task": training.task,
        "split": "own",
        "group": None,
        "labels": list(training.labels),
        "acceptable": sorted(acceptable),
        "onset_step": onset,
        "last_step": of_run.last_step,
        "step_axis": training.axis,
        "cause": training.cause,
        "healthy": not training.labels,
        "notes": training.notes,
    }, problems


def fits_worse(run: Measured, twin: Measured | None) -> bool:
    """Whether the training loss moved, and ended at 1.5 × what a better model reached on the same task."""
    if twin is None:
        return True
    loss, best = run.curves.one("loss"), twin.curves.one("loss")
    if loss is None or best is None:
        return False
    moved = definitions.smoothed(loss.values).min() < 0.95 * definitions.start(loss.values)
    return bool(moved and definitions.end(loss.values) >= 1.5 * definitions.end(best.values))


if __name__ == "__main__":
    main()
