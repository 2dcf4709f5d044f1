import json
import warnings

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.util import tensor_util
from tensorboardX import SummaryWriter

from tb_advisor.evidence import Evidence
from tb_advisor.evidence.hparams import HPARAMS, NAME, TEXT, Hyperparameter
from tb_advisor.logdir.jobs import load
from tests.builders import event_file, tensor_event, write_events

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tensorboard.plugins.hparams import api as hp


def hyperparameters(logdir):
    (job,) = load(logdir).jobs
    return {h.name: (h.value, h.source) for h in Evidence(job)["hyperparameters"]}


def text(tag, content):
    return tensor_event(tag, 0, tensor_util.make_tensor_proto([content.encode()]), "text")


def test_keras_and_tensorflow_write_the_hparams_plugin(tmp_path):
    """`hp.KerasCallback` writes what `hp.hparams_pb` makes."""
    event_file(tmp_path / "train", {"epoch_loss": [1.0, 0.5]})
    session = hp.hparams_pb({"lr": 0.1, "units": 64, "optimizer": "adam", "nesterov": True})
    write_events(tmp_path, [Event(summary=session)])
    assert hyperparameters(tmp_path) == {
        "lr": (0.1, HPARAMS),
        "units": (64, HPARAMS),
        "optimizer": ("adam", HPARAMS),
        "nesterov": (True, HPARAMS),
    }


def test_add_hparams_writes_a_run_of_its_own(tmp_path):
    with SummaryWriter(str(tmp_path / "exp")) as writer:
        for step in range(3):
            writer.add_scalar("loss", 1 / (1 + step), step)
        writer.add_hparams({"lr": 0.01, "bs": 32, "model": "mlp"}, {"hparam/loss": 0.3})
    assert hyperparameters(tmp_path) == {"lr": (0.01, HPARAMS), "bs": (32, HPARAMS), "model": ("mlp", HPARAMS)}


def test_hugging_face_writes_texts(tmp_path):
    args = {"learning_rate": 5e-05, "num_train_epochs": 3.0, "fp16": False, "output_dir": "out/3", "lr_scheduler_kwargs": None, "seed": 42}
    write_events(
        tmp_path, [text("args/text_summary", json.dumps(args)), text("model_config/text_summary", '{"hidden_size": 32, "id2label": {}}')]
    )
    assert hyperparameters(tmp_path) == {
        "learning_rate": (5e-05, TEXT),
        "num_train_epochs": (3, TEXT),
        "fp16": (False, TEXT),
        "seed": (42, TEXT),
        "hidden_size": (32, TEXT),
    }


def test_the_name_says_what_no_writer_said(tmp_path):
    run = tmp_path / "lr0.5_seed3"
    event_file(run, {"loss": [1.0]})
    write_events(run, [Event(summary=hp.hparams_pb({"learning_rate": 0.1}))], name="1700000001.host.2.0")
    assert hyperparameters(tmp_path) == {"learning_rate": (0.1, HPARAMS), "seed": (3, NAME)}


@pytest.mark.parametrize("content", ["", "no json", "[1]", '{"a": NaN, "b": [1], "c": 1e999}', "\x00"])
def test_texts_that_are_no_settings_say_nothing(tmp_path, content):
    write_events(tmp_path, [text("args/text_summary", content)])
    assert hyperparameters(tmp_path) == {}


def test_damaged_and_vanished_settings_say_nothing(tmp_path):
    event = Event(summary=hp.hparams_pb({"lr": 0.1}))
    for value in event.summary.value:
        value.metadata.plugin_data.content = b"\xff\xff\xff"
    path = write_events(tmp_path, [event])
    assert hyperparameters(tmp_path) == {}
    (job,) = load(tmp_path).jobs
    path.unlink()
    assert Evidence(job)["hyperparameters"] == ()


def test_the_address_of_an_object_is_no_value(tmp_path):
    write_events(tmp_path, [Event(summary=hp.hparams_pb({"loss_fn": "<function mse at 0x7fdfa60d5620>", "n": "12"}))])
    assert hyperparameters(tmp_path) == {"loss_fn": ("<function mse>", HPARAMS), "n": (12, HPARAMS)}


def test_numbers_and_seeds():
    assert Hyperparameter("lr", 0.1, NAME).number == 0.1
    assert [Hyperparameter("x", value, NAME).number for value in (True, "adam", float("inf"))] == [None, None, None]
    assert [name for name in ("seed", "random_seed", "data_seed", "lr") if Hyperparameter(name, 1, NAME).is_seed] == [
        "seed",
        "random_seed",
        "data_seed",
    ]
