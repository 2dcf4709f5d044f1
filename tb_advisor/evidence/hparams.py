"""The hyperparameters of a job: of the HParams plugin, of Hugging Face's texts, of the job's name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from tb_advisor.logdir.jobs import Job
from tb_advisor.logdir.names import canonical, parsed, read_name, whole

if TYPE_CHECKING:
    from tensorboard.compat.proto.summary_pb2 import Summary

# Where Keras (`hp.KerasCallback`), `SummaryWriter.add_hparams` of PyTorch and tensorboardX, and Lightning's logger write them
# (tensorboard/plugins/hparams/metadata.py).
_SESSION_TAG = "_hparams_/session_start_info"
# transformers/integrations/integration_utils.py `TensorBoardCallback.on_train_begin`
_TEXT_TAGS = ("args/text_summary", "model_config/text_summary")

Value = int | float | str | bool

# Words of settings that name a place or say what is logged, not how the model is trained.
_BOOKKEEPING = frozenset(
    "dir dirs directory path file logdir log logs logger logging hub report tqdm save push token timeout workers port rank device host user"
    " output checkpoint checkpoints ckpt resume run timestamp date version verbose wandb project entity".split()
)
_DATA = frozenset("data dataset train training val validation".split())


@dataclass(frozen=True)
class Hyperparameter:
    """One hyperparameter of a job: its name and value as they were written, and the `source` that says so."""

    name: str
    value: Value
    source: str

    @cached_property
    def meaning(self) -> str:
        """The name in the words that hyperparameters are compared by: learning rate, batch size, seed."""
        return canonical(self.name)

    @property
    def is_seed(self) -> bool:
        """Whether it only chooses the random numbers."""
        return "seed" in self.meaning.split()

    @property
    def is_budget(self) -> bool:
        """Whether it says how long the job trains: a cost, not a setting to search."""
        return self.meaning in ("epochs", "steps")

    @property
    def number(self) -> float | None:
        """Its value where that is a finite number."""
        value = self.value
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) else None


HPARAMS, TEXT, NAME = "HParams plugin", "text summary", "job name"


def hyperparameters(job: Job) -> tuple[Hyperparameter, ...]:
    """Every hyperparameter that is known of the job, by name; empty where none is. Each one once: the HParams plugin goes before
    Hugging Face's texts, these before the job's name. Settings that name a place or say what is logged are left out.
    """
    found: dict[str, Hyperparameter] = {}
    meanings: set[str] = set()
    for source in (_of_plugin(job), _of_texts(job), _of_name(job)):
        new = [h for h in source if h.meaning not in meanings and not _is_bookkeeping(h.name)]
        found.update((h.name, h) for h in new)
        meanings.update(h.meaning for h in new)
    return tuple(found[name] for name in sorted(found))


def _of_plugin(job: Job) -> Iterator[Hyperparameter]:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    for value in _stored(job, _SESSION_TAG):
        try:
            data = HParamsPluginData.FromString(value.metadata.plugin_data.content)
        except DecodeError:
            continue
        for name, setting in data.session_start_info.hparams.items():
            kind = setting.WhichOneof("kind")
            if kind == "number_value" and math.isfinite(setting.number_value):
                yield Hyperparameter(name, whole(setting.number_value), HPARAMS)
            elif kind == "bool_value":
                yield Hyperparameter(name, setting.bool_value, HPARAMS)
            elif kind == "string_value":
                yield Hyperparameter(name, _said(setting.string_value), HPARAMS)


def _of_texts(job: Job) -> Iterator[Hyperparameter]:
    for tag in _TEXT_TAGS:
        for value in _stored(job, tag):
            try:
                data = json.loads(b"".join(value.tensor.string_val))
            except ValueError:  # of JSON and of its encoding
                continue
            for name, setting in data.items() if isinstance(data, dict) else ():
                if isinstance(setting, float):
                    setting = whole(setting) if math.isfinite(setting) else None
                if isinstance(setting, (int, float, str)):
                    yield Hyperparameter(name, _said(setting) if isinstance(setting, str) else setting, TEXT)


def _of_name(job: Job) -> Iterator[Hyperparameter]:
    for name, value in read_name(job.name).settings.items():
        yield Hyperparameter(name, value, NAME)


def _stored(job: Job, tag: str) -> Iterator[Summary.Value]:
    """The first value of this tag in each run, as far as it can still be read."""
    for run in job.runs.values():
        for stored in run.stored.get(tag, ())[:1]:
            with suppress(OSError, DecodeError):
                yield from (value for value in stored.read().summary.value if value.tag == tag)


def _said(text: str) -> Value:
    """A text as a hyperparameter's value: without the address of an object, which differs in every process."""
    return parsed(re.sub(r" at 0x[0-9a-f]+", "", text))


def _is_bookkeeping(name: str) -> bool:
    words = set(re.split(r"[^0-9a-z]+", name.lower()))
    return bool(words & _BOOKKEEPING) and not words & _DATA
