import math
import sys

import pytest

from tb_advisor.logdir.jobs import load
from tests.builders import FIRST_SECOND, event_file

pandas = pytest.importorskip("pandas")


def test_a_row_for_every_point_in_writing_order(tmp_path):
    event_file(tmp_path / "b", {"loss": [3.0, 2.0, 2.5], "acc": [0.5]}, steps=[0, 10, 5])
    event_file(tmp_path / "a" / "train", {"loss": [math.nan]})
    frame = load(tmp_path).to_pandas()
    expected = [
        ("a/train", "loss", 0, FIRST_SECOND, math.nan),
        ("b", "acc", 0, FIRST_SECOND, 0.5),
        ("b", "loss", 0, FIRST_SECOND, 3.0),
        ("b", "loss", 10, FIRST_SECOND + 1, 2.0),
        ("b", "loss", 5, FIRST_SECOND + 2, 2.5),
    ]
    pandas.testing.assert_frame_equal(frame, pandas.DataFrame(expected, columns=["run", "tag", "step", "wall_time", "value"]))


def test_no_point_is_sampled_away(tmp_path):
    event_file(tmp_path, {"loss": [float(step) for step in range(20_000)]})
    frame = load(tmp_path).to_pandas()
    assert frame["value"].tolist() == frame["step"].tolist() == list(range(20_000))
    assert [str(kind) for kind in frame.dtypes[["step", "wall_time", "value"]]] == ["int64", "float64", "float64"]


def test_an_empty_log_directory_has_all_columns(tmp_path):
    frame = load(tmp_path).to_pandas()
    assert (list(frame.columns), len(frame)) == (["run", "tag", "step", "wall_time", "value"], 0)


def test_pandas_that_is_not_installed_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        load(tmp_path).to_pandas()
