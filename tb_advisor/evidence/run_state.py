"""What kind of job it is, who wrote its log, and whether it is over."""

from __future__ import annotations

import numpy as np

from tb_advisor.evidence.roles import Roles
from tb_advisor.logdir.jobs import Job

QUIET_GAPS = 5
QUIET_SECONDS = 60.0
# Writers flush within two minutes: a file that changed so long after its newest event was copied, not written.
COPIED_SECONDS = 600.0


def finished(job: Job) -> bool:
    """Whether the job did not grow for several times its usual gap between events, and for at least a minute."""
    return job.read_at > quiet_until(job)


def quiet_until(job: Job) -> float:
    """When the job counts as finished if no file grows before, in seconds since the epoch.

    The usual gap is the 95th percentile of the gaps in wall time within each tag, of the tag where it is longest. A job
    grew last when its files changed last, or, where they were copied since, when its newest event was written.
    """
    gaps = [float(np.percentile(np.diff(s.wall_times), 95)) for s in job.scalars if len(s) > 1]
    newest = max((float(s.wall_times[-1]) for s in job.scalars if len(s)), default=job.last_written)
    grew = newest if job.last_written - newest > COPIED_SECONDS else job.last_written
    return grew + max(QUIET_SECONDS, QUIET_GAPS * max(gaps, default=0.0))


def task(roles: Roles) -> str:
    """``reinforcement-learning``, ``gan``, ``energy-based`` or ``supervised``, from the roles of the tags."""
    return roles.task


def writer(job: Job) -> str:
    """The framework that wrote the log, from its tags and its first event: a name of `fixes.WRITERS` and a few more, or
    empty.

    Sources: the tag names that each framework writes by itself, and `source_metadata.writer`, which event files carry
    since TensorFlow 2.9.
    """
    tags = {tag for run in job.runs.values() for tag in (*run.scalars, *run.tags)}
    plugins = {plugin for run in job.runs.values() for plugin in run.tags.values()}
    writers = {run.writer for run in job.runs.values()}
    names = [name for run in job.runs.values() for name in run.file_names]
    if any(tag.startswith(("epoch_loss", "batch_loss", "evaluation_loss_vs")) for tag in tags) or "keras" in tags:
        return "keras"
    if tags & {"rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps"}:
        return "stable-baselines3"
    if tags & {"args/text_summary", "model_config/text_summary"} or {"train/epoch", "train/loss"} <= tags:
        return "huggingface"
    if "hp_metric" in tags or ("epoch" in tags and any(t.endswith(("_step", "_epoch")) or t.startswith("lr-") for t in tags)):
        return "lightning"
    if "global_step/sec" in tags or "global_step/sec_1" in tags:
        return "estimator"
    if any(name.endswith(".v2") for name in names) or "tensorflow.core.util.events_writer" in writers:
        return "tensorflow"
    if "tensorboard.summary.writer.event_file_writer" in writers:
        return "pytorch"
    if not tags and not plugins and job.captures:
        pytorch = any(".pt.trace.json" in path.name for capture in job.captures for path in capture.files)
        return "pytorch" if pytorch else ""
    return "pytorch" if tags and not plugins else ""
