"""Literals for rules over several jobs: a job in a line, and a group of them that may be compared."""

from __future__ import annotations

import os
from pathlib import Path

from tb_advisor.evidence import Evidence
from tb_advisor.evidence.hparams import HPARAMS, Hyperparameter
from tb_advisor.evidence.sweeps import Sweep
from tb_advisor.evidence.trials import Best, Trial

AN_HOUR = 3600.0
LOSS = ("validation loss", "val_loss")
ACCURACY = ("validation metric", "val_accuracy")


def trial(
    job: str,
    value: float | None,
    *,
    task: str = "supervised",
    rest: str = "",
    source: str = HPARAMS,
    measure: tuple[str, str] = LOSS,
    step: int = 100,
    seconds: float = 50.0,
    jitter: float = 0.0,
    finished: bool = True,
    start: float | None = 2.0,
    end: float | None = None,
    step_seconds: float = 0.1,
    run_seconds: float = 600.0,
    **settings: float | str,
) -> Trial:
    """A job whose best value is `value`; None for one that ended as NaN."""
    best = None if value is None else Best(measure, job, measure == ACCURACY, value, step, 20, jitter, seconds)
    ended = end if end is not None else None if value is None else 0.5
    return Trial(
        job=job,
        task=task,
        hyperparameters=tuple(Hyperparameter(name, setting, source) for name, setting in sorted(settings.items())),
        rest=rest,
        bests=() if best is None else (best,),
        finished=finished,
        is_lost=value is None,
        start=start,
        lowest=ended,
        end=ended,
        points=20,
        last_step=200,
        seconds=run_seconds,
        step_seconds=step_seconds,
    )


def sweeps(*trials: Trial) -> tuple[Sweep, ...]:
    """The groups of these jobs that may be compared."""
    found: tuple[Sweep, ...] = Evidence(trials=trials)["sweeps"]
    return found


def grid(values: dict[float, list[float | None]], name: str = "lr", **others: object) -> tuple[Sweep, ...]:
    """A sweep of one hyperparameter: {number: best value of each seed}."""
    return sweeps(
        *(
            trial(f"{name}{number}-seed{seed}", value, **{name: number, "seed": seed}, **others)
            for number, of_seeds in values.items()
            for seed, value in enumerate(of_seeds)
        )
    )


def finish(logdir: Path) -> None:
    """Make all jobs finished: their files were last written an hour ago."""
    for path in logdir.rglob("*tfevents*"):
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - AN_HOUR))
