import pytest

from tb_advisor.advise import diagnose
from tb_advisor.evidence.checkpoints import checkpoints
from tb_advisor.logdir.attachments import find_attachments
from tb_advisor.logdir.jobs import Job, find_jobs
from tests.builders import event_file, falling, series

CURVE = series(falling(100), step=10)  # steps 0 to 990


def kept(names, writer="", curve=CURVE, step=400):
    attached = tuple(find_attachments("exp/checkpoints", "exp/checkpoints", names))
    return str(checkpoints(Job("exp", {}, attachments=attached), writer).best_before(curve, step))


@pytest.mark.parametrize(
    ("names", "writer", "kept_name"),
    [
        (["ckpt-300.index", "ckpt-300.data-00000-of-00001", "ckpt-400.index", "ckpt-900.index"], "tensorflow", "ckpt-400"),
        (["epoch=1-step=350.ckpt", "epoch=3-step=950.ckpt"], "lightning", "epoch=1-step=350.ckpt"),
        (["model_350.pt", "model_700.pt"], "pytorch", "model_350.pt"),
    ],
)
def test_the_newest_checkpoint_from_before_the_best(names, writer, kept_name):
    assert kept(names, writer) == f" Keep {kept_name}, the newest one from before that."


def test_epochs_in_names_of_keras_start_at_one():
    curve = series(falling(20))
    names = [f"weights.{epoch:02}-{1 / epoch:.2f}.keras" for epoch in range(1, 21)]
    assert kept(names, "keras", curve, step=9) == " Keep weights.10-0.10.keras, the newest one from before that."


@pytest.mark.parametrize(
    ("reason", "names"),
    [
        ("none", []),
        ("all are newer", ["ckpt-500.index", "ckpt-900.index"]),
        ("they count epochs, the curve steps", ["model_1.pt", "model_20.pt"]),
        ("no number", ["best.ckpt", "model.safetensors"]),
        ("no checkpoint", ["config_900.yaml", "samples_900.png"]),
    ],
)
def test_nothing_is_named(reason, names):
    assert kept(names) == ""


def test_only_what_exists_is_advised(tmp_path):
    val = [1.5 - 0.09 * step for step in range(11)] + [0.6 + 0.04 * step for step in range(1, 20)]
    event_file(tmp_path / "exp/train", {"epoch_loss": [2.0 * 0.85**i + 0.01 for i in range(30)]})
    event_file(tmp_path / "exp/validation", {"epoch_loss": val})
    for step in (5, 10, 25):
        (tmp_path / f"exp/checkpoint-{step}").mkdir()
        (tmp_path / f"exp/checkpoint-{step}/model.safetensors").write_bytes(b"")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/ckpt-10.index").write_bytes(b"")
    assert [files.name for files in find_jobs(tmp_path)] == ["exp"]
    (diagnosis,) = [d for o, d in diagnose(tmp_path).diagnoses if o.rule == "overfitting"]
    assert str(diagnosis.impact.text).endswith(" Keep checkpoint-10, the newest one from before that.")
