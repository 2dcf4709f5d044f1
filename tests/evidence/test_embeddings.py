import os

import numpy as np
import pytest

from tb_advisor.evidence.embeddings import MOST_VECTORS, embeddings
from tb_advisor.logdir.jobs import load
from tb_advisor.message import Missing

VECTORS = np.random.default_rng(0).normal(size=(60, 8)).astype("<f4")
TSV = "\n".join("\t".join(f"{value:.8g}" for value in row) for row in VECTORS) + "\n"


def job(directory, config, **files):
    (directory / "projector_config.pbtxt").write_text(config)
    for name, content in files.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load(directory).jobs[0]


def named(path, shape=""):
    return f'embeddings {{ tensor_name: "words" tensor_path: "{path}" {shape} }}'


def test_text_and_raw_vectors(tmp_path):
    config = named("v.tsv") + named("v.bytes", "tensor_shape: 60 tensor_shape: 8")
    text, raw = embeddings(job(tmp_path, config, **{"v.tsv": TSV, "v.bytes": VECTORS.tobytes()}))
    assert (text.name, text.directory) == ("words", ".")
    assert text.vectors == pytest.approx(VECTORS)
    assert raw.vectors == pytest.approx(VECTORS)


def test_of_many_vectors_some_are_looked_at(tmp_path):
    (found,) = embeddings(job(tmp_path, named("v.tsv"), **{"v.tsv": TSV * 200}))
    assert 1000 < len(found.vectors) <= MOST_VECTORS


@pytest.mark.parametrize(
    ("config", "content"),
    [
        ("embeddings {", TSV),
        ("\x00\xff", TSV),
        ('embeddings { tensor_name: "words" }', TSV),
        (named("gone.tsv"), TSV),
        (named("../v.tsv"), TSV),
        (named("/etc/hostname"), TSV),
        (named("."), TSV),
        (named("v.tsv"), ""),
        (named("v.tsv"), "a\tb\n"),
        (named("v.tsv"), "1\t2\n3\n"),
        (named("v.tsv"), "nan\tinf\n"),
        (named("v.tsv"), b"\xff\x00" * 500),
        (named("v.tsv", "tensor_shape: 60 tensor_shape: -8"), b"\xff" * 100),
        (named("v.tsv", "tensor_shape: 4294967295 tensor_shape: 4294967295"), b"\xff" * 100),
        (named("v.tsv", "tensor_shape: 8"), b"\xff" * 100),
    ],
)
def test_no_config_and_no_file_breaks_it(tmp_path, config, content):
    with pytest.raises(Missing, match="names no file of vectors that can be read"):
        embeddings(job(tmp_path, config, **{"v.tsv": content}))


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "v.tsv")
    with pytest.raises(Missing):
        embeddings(job(tmp_path, named("v.tsv")))


def test_a_link_out_of_the_directory_is_not_followed(tmp_path):
    inside = tmp_path / "logs"
    inside.mkdir()
    (tmp_path / "secret.tsv").write_text(TSV)
    (inside / "v.tsv").symlink_to(tmp_path / "secret.tsv")
    with pytest.raises(Missing):
        embeddings(job(inside, named("v.tsv")))
