import os
import shutil

import pytest

from tb_advisor.logdir.jobs import LogdirError, RunCache, find_families, find_jobs, load
from tests.builders import event_file


def layout(tmp_path, runs):
    """Write a run with one tag for each (name, tag) pair and return {job: runs}."""
    for name, tag in runs:
        event_file(tmp_path / name, {tag: [1.0, 0.5]})
    return {job.name: [run.name for run in job.runs] for job in find_jobs(tmp_path)}


@pytest.mark.parametrize(
    ("runs", "jobs"),
    [
        ([("exp/train", "epoch_loss"), ("exp/validation", "epoch_loss")], {"exp": ["exp/train", "exp/validation"]}),
        ([("train", "epoch_loss"), ("validation", "epoch_loss")], {".": ["train", "validation"]}),
        ([(".", "loss"), ("eval", "loss")], {".": [".", "eval"]}),
        ([("exp", "loss"), ("exp/eval", "loss")], {"exp": ["exp", "exp/eval"]}),
        ([("exp/train", "epoch_loss")], {"exp": ["exp/train"]}),
        ([("exp/eval", "loss")], {"exp/eval": ["exp/eval"]}),
        ([("exp", "lr"), ("exp/loss_train", "loss"), ("exp/loss_val", "loss")], {"exp": ["exp", "exp/loss_train", "exp/loss_val"]}),
        ([("exp", "lr"), ("exp/loss/train", "loss"), ("exp/loss/val", "loss")], {"exp": ["exp", "exp/loss/train", "exp/loss/val"]}),
        ([(".", "lr"), ("a/b_train", "a/b"), ("a_b_train", "a/b")], {".": [".", "a_b_train"], "a/b_train": ["a/b_train"]}),
        (
            [("exp", "lr"), ("exp/Loss_run_train", "Loss/run"), ("exp/Loss_run_val", "Loss/run")],
            {"exp": ["exp", "exp/Loss_run_train", "exp/Loss_run_val"]},
        ),
        ([("exp", "loss"), ("exp/1624683188.28", "hp")], {"exp": ["exp", "exp/1624683188.28"]}),
        ([("sweep/lr_0.1", "loss"), ("sweep/lr_0.01", "loss")], {"sweep/lr_0.01": ["sweep/lr_0.01"], "sweep/lr_0.1": ["sweep/lr_0.1"]}),
        ([("test", "loss"), ("run5", "loss")], {"run5": ["run5"], "test": ["test"]}),
        ([("a b/ü 'quoted' <b>", "loss")], {"a b/ü 'quoted' <b>": ["a b/ü 'quoted' <b>"]}),
    ],
)
def test_runs_are_grouped_into_jobs(tmp_path, runs, jobs):
    assert layout(tmp_path, runs) == jobs


def test_two_add_scalars_tags_with_one_prefix_stay_apart(tmp_path):
    """A sweep whose directory happens to start with the tag's name is no add_scalars run: it has more tags than one."""
    event_file(tmp_path / "loss_small", {"loss": [1.0], "accuracy": [0.5]})
    event_file(tmp_path / "loss_large", {"loss": [1.0], "accuracy": [0.5]})
    assert [job.name for job in find_jobs(tmp_path)] == ["loss_large", "loss_small"]


def test_the_logdir_itself_is_a_run(tmp_path):
    event_file(tmp_path, {"loss": [1.0]})
    assert list(load(tmp_path).runs) == ["."]


def test_every_point_of_several_files_in_the_order_of_writing(tmp_path):
    event_file(tmp_path, {"loss": [3.0, 2.0]}, steps=[0, 2], name="1700000000.host.1.0")
    event_file(tmp_path, {"loss": [2.5, 1.5]}, steps=[1, 2], name="1700009999.host.2.0")
    series = load(tmp_path).runs["."].scalars["loss"]
    assert series.values.tolist() == [3.0, 2.0, 2.5, 1.5]
    assert len(series.segments) == 2
    assert (series.steps.dtype, series.wall_times.dtype, series.values.dtype) == ("int64", "float64", "float64")


def test_a_run_that_vanishes_while_it_is_read_gives_a_note(tmp_path):
    event_file(tmp_path / "gone", {"loss": [1.0]})
    found = find_jobs(tmp_path)[0].runs[0]
    shutil.rmtree(tmp_path / "gone")
    (run,) = RunCache().read([found])
    assert run.scalars == {}
    assert "could not be read: No such file or directory" in str(run.notes[0])


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_logdir_that_is_none_is_said(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(LogdirError, match=name):
        load(tmp_path / name)


def test_a_circle_of_links_ends(tmp_path):
    event_file(tmp_path / "run", {"loss": [1.0]})
    os.symlink(tmp_path, tmp_path / "run" / "again", target_is_directory=True)
    assert list(load(tmp_path).runs) == ["run"]


def test_unchanged_runs_are_not_read_again_and_grown_ones_only_from_where_they_ended(tmp_path):
    event_file(tmp_path / "old", {"loss": [1.0]})
    grown = event_file(tmp_path / "new", {"loss": [1.0]})
    cache = RunCache()

    def read():
        return {job.name: cache.read(job.runs)[0] for job in find_jobs(tmp_path)}

    before = read()
    more = event_file(tmp_path / "elsewhere", {"loss": [0.5, 0.25]}, steps=[1, 2])
    with grown.open("ab") as stream:
        stream.write(more.read_bytes())
    after = read()
    assert after["old"] is before["old"]
    assert after["new"].scalars["loss"].values.tolist() == [1.0, 0.5, 0.25]


def test_a_torn_tail_is_read_once_it_is_whole(tmp_path):
    path = event_file(tmp_path, {"loss": [3.0, 2.0, 1.0]})
    whole = path.read_bytes()
    cache = RunCache()
    lengths = []
    for end in range(len(whole) - 80, len(whole) + 1):
        path.write_bytes(whole[:end])
        (run,) = cache.read([find_jobs(tmp_path)[0].runs[0]])
        lengths.append(len(run.scalars["loss"]) if run.scalars else 0)
    assert lengths == sorted(lengths)
    assert lengths[-1] == 3
    assert run.notes == ()


def test_a_file_that_was_cut_or_replaced_is_read_from_its_start(tmp_path):
    path = event_file(tmp_path, {"loss": [3.0, 2.0, 1.0]})
    cache = RunCache()
    cache.read([find_jobs(tmp_path)[0].runs[0]])
    path.unlink()
    event_file(tmp_path, {"loss": [9.0]})
    (run,) = cache.read([find_jobs(tmp_path)[0].runs[0]])
    assert run.scalars["loss"].values.tolist() == [9.0]


def test_a_file_that_was_written_anew_and_is_longer_is_read_from_its_start(tmp_path):
    path = event_file(tmp_path, {"loss": [3.0, 2.0, 1.0]})
    cache = RunCache()
    cache.read([find_jobs(tmp_path)[0].runs[0]])
    other = event_file(tmp_path / "elsewhere", {"acc": [0.5] * 9}).read_bytes()
    path.write_bytes(event_file(tmp_path / "first", {"first": [0.0]}).read_bytes()[:16] + other)  # another start, the same inode
    (run,) = cache.read([find_jobs(tmp_path)[0].runs[0]])
    assert list(run.scalars) == ["acc"]


def test_several_growing_files_of_one_run(tmp_path):
    first = event_file(tmp_path, {"loss": [3.0]}, name="1700000000.host.1.0")
    second = event_file(tmp_path, {"acc": [0.1]}, name="1700000001.host.2.0")
    cache = RunCache()
    cache.read([find_jobs(tmp_path)[0].runs[0]])
    for path, tag in ((first, "loss"), (second, "acc")):
        more = event_file(tmp_path / "elsewhere", {tag: [1.0]}, steps=[1])
        with path.open("ab") as stream:
            stream.write(more.read_bytes())
    (run,) = cache.read([find_jobs(tmp_path)[0].runs[0]])
    assert {tag: len(series) for tag, series in run.scalars.items()} == {"acc": 2, "loss": 2}


def test_a_family_shares_a_parent_and_tags(tmp_path):
    for name in ("sweep/a", "sweep/b", "other/c"):
        event_file(tmp_path / name, {"loss": [1.0]})
    event_file(tmp_path / "sweep/d", {"reward": [1.0]})
    families = find_families(load(tmp_path).jobs)
    assert [(family.name, [job.name for job in family.jobs]) for family in families] == [("sweep", ["sweep/a", "sweep/b"])]


@pytest.mark.parametrize(
    ("runs", "directory", "job"),
    [
        (["exp/train", "exp/validation"], "exp/train", "exp"),
        (["train", "validation"], ".", "."),
        (["train", "validation"], "debug", "."),
        (["exp/train"], ".", "exp"),
        (["exp/train"], "debug", "exp"),
        (["exp/train", "exp/validation"], "exp/debug", "exp"),
        (["fit/20261130/train"], ".", "fit/20261130"),
        (["a", "b"], ".", "."),
        (["a", "b"], "debug", "debug"),
        (["a", "b"], "b/debug", "b"),
        ([], ".", "."),
    ],
)
def test_a_dump_or_projector_belongs_to_the_job_it_lies_with(tmp_path, runs, directory, job):
    for name in runs:
        event_file(tmp_path / name, {"epoch_loss": [1.0, 0.5]})
    (tmp_path / directory).mkdir(parents=True, exist_ok=True)
    for name in ("tfdbg_events.17.host.metadata", "tfdbg_events.17.host.execution", "projector_config.pbtxt", "other.metadata"):
        (tmp_path / directory / name).write_text("")
    found = {files.name: [(a.kind, [path.name[-9:] for path in a.files]) for a in files.attachments] for files in find_jobs(tmp_path)}
    assert found[job] == [("dump", [".metadata", "execution"]), ("projector", ["fig.pbtxt"])]
    assert not any(attached for name, attached in found.items() if name != job)
    assert job in {read.name for read in load(tmp_path).jobs if read.attachments}


def test_a_dump_that_has_grown_is_read_again(tmp_path):
    (tmp_path / "tfdbg_events.17.host.metadata").write_text("")
    execution = tmp_path / "tfdbg_events.17.host.execution"
    execution.write_text("")
    before = find_jobs(tmp_path)[0].fingerprints
    execution.write_text("more")
    assert find_jobs(tmp_path)[0].fingerprints != before
