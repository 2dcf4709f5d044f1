"""The checkpoints that lie in a job's directories, by what their names say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tb_advisor.logdir.attachments import CHECKPOINT
from tb_advisor.logdir.jobs import Job
from tb_advisor.message import Message
from tb_advisor.series import Series

_STEP = re.compile(r"step[=_-]?(\d+)", re.IGNORECASE)
# Digits that are no part of a decimal number, such as the loss in weights.10-0.53.keras.
_NUMBER = re.compile(r"(?<!\d)(?<!\d\.)(\d+)(?!\d*\.\d)")


@dataclass(frozen=True)
class Checkpoint:
    """A file or directory that holds a model. `number` is the step or epoch that its name says."""

    name: str
    number: int


@dataclass(frozen=True)
class Checkpoints:
    """All checkpoints of a job, by number; `from_one` where epochs in their names start at 1, as those of Keras do."""

    every: tuple[Checkpoint, ...] = ()
    from_one: bool = False

    def best_before(self, curve: Series, step: int) -> Message:
        """A sentence, after a blank, that names the newest checkpoint from `step` of `curve` or before it.

        Empty where none is that old, or where the numbers do not count the steps of the curve: they must end in its last
        half.
        """
        last = int(curve.steps[-1])
        steps = [checkpoint.number - self.from_one for checkpoint in self.every]
        old = [checkpoint for checkpoint, at in zip(self.every, steps, strict=True) if at <= step]
        if not old or not last / 2 <= steps[-1] <= last + 1:
            return Message("")
        return Message(" Keep {checkpoint}, the newest one from before that.", checkpoint=old[-1].name)


NO_CHECKPOINTS = Checkpoints()


def checkpoints(job: Job, writer: str) -> Checkpoints:
    """The checkpoints of the job. Never missing: most jobs have none beside their logs."""
    names = {path.name for attachment in job.attachments if attachment.kind == CHECKPOINT for path in attachment.files}
    found = []
    for name in names:
        number = _STEP.search(name) or _NUMBER.search(name)
        if number is not None and len(number[1]) < 16:
            found.append(Checkpoint(name.removesuffix(".index"), int(number[1])))
    return Checkpoints(tuple(sorted(found, key=lambda c: (c.number, c.name))), writer == "keras")
