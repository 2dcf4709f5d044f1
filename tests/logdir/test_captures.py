from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tb_advisor.logdir.captures import Capture, host_of
from tb_advisor.logdir.jobs import find_jobs
from tests.trace_builders import put

S = "plugins/profile/2026_12_01_12_00_00"
KINETO = '{"schemaVersion": 1, "traceEvents": []}'


def captures(logdir: Path) -> list[Capture]:
    return [capture for job in find_jobs(logdir) for capture in job.captures]


def names(logdir: Path) -> list[str]:
    return [capture.name for capture in captures(logdir)]


def files(capture: Capture) -> list[str]:
    return [path.name for path in capture.files]


def test_a_session_with_several_hosts_is_one_capture(tmp_path):
    put(tmp_path / "exp" / S / "a.xplane.pb")
    put(tmp_path / "exp" / S / "b.xplane.pb")
    (capture,) = captures(tmp_path)
    assert (capture.name, capture.run, files(capture)) == ("exp/2026_12_01_12_00_00", "exp", ["a.xplane.pb", "b.xplane.pb"])
    assert capture.in_profile_tab


def test_a_session_of_a_training_run_belongs_to_its_job(tmp_path):
    put(tmp_path / "exp" / "train" / S / "a.xplane.pb")
    (job,) = find_jobs(tmp_path)
    assert (job.name, job.captures[0].run) == ("exp", "exp/train")


def test_a_session_of_the_logdir_itself(tmp_path):
    put(tmp_path / S / "a.xplane.pb")
    (capture,) = captures(tmp_path)
    assert (capture.name, capture.run, capture.in_profile_tab) == ("2026_12_01_12_00_00", ".", True)


def test_a_logdir_that_is_a_session(tmp_path):
    put(tmp_path / S / "a.xplane.pb")
    assert names(tmp_path / S) == ["2026_12_01_12_00_00"]


def test_a_logdir_that_is_the_directory_of_sessions(tmp_path):
    put(tmp_path / S / "a.xplane.pb")
    (capture,) = captures(tmp_path / "plugins" / "profile")
    assert (capture.name, capture.in_profile_tab) == ("2026_12_01_12_00_00", False)


def test_a_directory_that_holds_planes_directly(tmp_path):
    put(tmp_path / "copied" / "a.xplane.pb")
    (capture,) = captures(tmp_path)
    assert (capture.name, capture.in_profile_tab) == ("copied", False)


def test_a_trace_beside_the_planes_of_its_host_is_the_same_profile(tmp_path):
    put(tmp_path / S / "host.xplane.pb")
    put(tmp_path / S / "host.trace.json.gz", gzip.compress(KINETO.encode()))
    put(tmp_path / S / "perfetto_trace.json.gz", gzip.compress(KINETO.encode()))
    assert [files(capture) for capture in captures(tmp_path)] == [["host.xplane.pb"]]


def test_what_the_profile_tab_writes_is_no_capture(tmp_path):
    for name in ("ALL_HOSTS.op_stats_v2.pb", "m.hlo_proto.pb", "h.SSTABLE", ".cached_tools.json", "cache_version.txt"):
        put(tmp_path / S / name)
    assert names(tmp_path) == []


def test_traces_of_pytorch_are_a_capture_each(tmp_path):
    put(tmp_path / "exp" / "w0.123.pt.trace.json", KINETO)
    put(tmp_path / "exp" / "w1.123.pt.trace.json.gz", gzip.compress(KINETO.encode()))
    assert names(tmp_path) == ["exp/w0.123", "exp/w1.123"]


@pytest.mark.parametrize(
    ("name", "text", "is_capture"),
    [
        ("trace_rank0.json", KINETO, True),
        ("trace.json", ' [{"ph": "X", "name": "a"}', True),
        ("rank0.json.gz", '{"distributedInfo": {"rank": 0}, "traceEvents": []}', True),
        ("metrics.json", KINETO, False),  # its name says nothing of a trace: it is not opened
        ("traceback.json", '{"error": "no"}', False),
        ("et.json.gz", '{"schema": "1.0.1", "nodes": []}', False),
        ("trace_list.json", '["a", "b"]', False),
        ("empty_trace.json", "", False),
        ("broken.json.gz", "no gzip", False),
    ],
)
def test_other_traces_are_known_by_their_first_bytes(tmp_path, name, text, is_capture):
    content = text.encode()
    put(tmp_path / name, gzip.compress(content) if name.endswith(".gz") and name != "broken.json.gz" else content)
    assert len(captures(tmp_path)) == is_capture


def test_sessions_of_2020_are_captures(tmp_path):
    put(tmp_path / "a" / S / "h.input_pipeline.pb")
    put(tmp_path / "a" / S / "h.overview_page.pb")
    put(tmp_path / "a" / S / "h.trace.json.gz", gzip.compress(KINETO.encode()))
    put(tmp_path / "b" / S / "local.trace")
    assert [files(capture) for capture in captures(tmp_path)] == [
        ["h.input_pipeline.pb", "h.overview_page.pb", "h.trace.json.gz"],
        ["local.trace"],
    ]


def test_a_file_that_may_not_be_read_is_passed_over(tmp_path):
    os.symlink(tmp_path / "gone", tmp_path / "trace.json")
    assert names(tmp_path) == []


def test_the_host_in_a_name():
    assert host_of("worker0.example.org.xplane.pb") == "worker0.example.org"
    assert host_of("h.trace.json.gz") == "h"
    assert host_of("rank-1.pt.trace.json.gz") == "rank-1"
