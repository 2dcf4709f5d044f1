"""What a run writes: each role under the tag that the run's author chose, through the real writers."""

import fnmatch
import logging
from pathlib import Path

import numpy as np
from tensorboardX import SummaryWriter

logging.getLogger("tensorboardX.x2num").setLevel(logging.ERROR)  # it warns of every NaN


class Log:
    """The event files of one run, written by tensorboardX.

    `tags` maps a role (``loss``, ``val_loss``, ``lr``, …) to ``sub-run:tag`` or ``tag``. A role that has no tag is not
    written, so that one training loop serves authors of different habits. In a tag `{}` stands for the layer.
    """

    def __init__(self, directory: Path, tags: dict[str, str]) -> None:
        self.directory = directory
        self.tags = tags
        self._writers: dict[str, SummaryWriter] = {}

    def __call__(self, step: int, **values: float) -> None:
        """Write the roles among `values` that have a tag."""
        for role, value in values.items():
            if role in self.tags:
                run, tag = split(self.tags[role])
                self._scalar(run, tag, float(value), step)

    def of_layer(self, step: int, role: str, layer: object, value: np.ndarray | float) -> None:
        """The same for one layer: an array as a histogram."""
        if role in self.tags:
            run, tag = split(self.tags[role])
            write = self._scalar if isinstance(value, float) else self._histogram
            write(run, tag.format(layer), value, step)

    def reopen(self) -> None:
        """Go on in new event files, as a process does that was started again."""
        self.close()
        self._writers = {}

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def writer(self, run: str) -> SummaryWriter:
        if run not in self._writers:
            # A second file of one second would have the first one's name.
            suffix = f".{len(list((self.directory / run).glob('events*')))}"
            self._writers[run] = SummaryWriter(str(self.directory / run), filename_suffix=suffix)
        return self._writers[run]

    def _scalar(self, run: str, tag: str, value: float, step: int) -> None:
        self.writer(run).add_scalar(tag, value, step)

    def _histogram(self, run: str, tag: str, values: np.ndarray, step: int) -> None:
        self.writer(run).add_histogram(tag, values, step)


class TensorFlowLog(Log):
    """The same through tf.summary."""

    def writer(self, run: str):
        import tensorflow as tf

        if run not in self._writers:
            self._writers[run] = tf.summary.create_file_writer(str(self.directory / run))
        return self._writers[run]

    def _scalar(self, run: str, tag: str, value: float, step: int) -> None:
        import tensorflow as tf

        with self.writer(run).as_default():
            tf.summary.scalar(tag, value, step=step)

    def _histogram(self, run: str, tag: str, values: np.ndarray, step: int) -> None:
        import tensorflow as tf

        with self.writer(run).as_default():
            tf.summary.histogram(tag, values, step=step)


def split(name: str) -> tuple[str, str]:
    """``train:loss`` → the sub-run train and the tag loss; ``loss`` → the run itself."""
    run, colon, tag = name.partition(":")
    return (run, tag) if colon else ("", name)


def matches(name: str, run: str, tag: str) -> bool:
    """Whether `name` of `Log.tags` stands for that tag of that sub-run."""
    wanted_run, wanted = split(name)
    return run == wanted_run and fnmatch.fnmatchcase(tag, wanted.replace("{}", "*"))
