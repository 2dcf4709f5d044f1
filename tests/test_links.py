import re
from urllib.parse import parse_qs, unquote

from tb_advisor.diagnosis import Confidence, Diagnosis, HistogramExhibit, SeriesExhibit, Severity, TableExhibit, TextExhibit, TraceExhibit
from tb_advisor.links import Host, links_of
from tb_advisor.message import Message

FEW = Host(n_runs=2)


def links(*exhibits, histogram_runs=(), host=FEW):
    diagnosis = Diagnosis(Message("x"), Severity.WARNING, Confidence.HIGH, exhibits=exhibits)
    return links_of(diagnosis, histogram_runs, host)


def query(href):
    return {key: values[0] for key, values in parse_qs(href.partition("?")[2].partition("#")[0]).items()}


def test_a_link_matches_exactly_its_tag_and_run():
    tag, run = "loss (aux) [x+y]", "logs/12M, Large.Batch_1"
    (link,) = links(SeriesExhibit(((run, tag),)))
    filters = query(link.href)
    assert link.href.endswith("#timeseries")
    assert re.search(filters["tagFilter"], tag) and not re.search(filters["tagFilter"], tag + "2")
    assert re.search(filters["runFilter"], run) and not re.search(filters["runFilter"], "logs/12M, LargexBatch_1")


def test_several_runs_of_one_tag_are_one_link():
    (link,) = links(SeriesExhibit((("a/train", "loss"), ("a/validation", "loss"))))
    assert query(link.href)["runFilter"] == "^(a/train|a/validation)$"


def test_several_tags_are_a_link_each():
    assert [link.label for link in links(SeriesExhibit((("a", "loss"), ("a", "val_loss"))))] == [
        "Time Series: loss",
        "Time Series: val_loss",
    ]


def test_every_value_of_a_hash_is_encoded_so_that_a_token_has_one_equals_sign():
    (link,) = links(HistogramExhibit("lr=0.1&b", "w=x"))
    tokens = link.href.lstrip("#").split("&")[1:]
    assert [token.count("=") for token in tokens] == [1, 1]
    assert unquote(tokens[1]) == "regexInput=^lr=0\\.1&b$"


def test_more_runs_than_time_series_selects_open_in_scalars():
    (link,) = links(SeriesExhibit((("a", "loss"),)), host=Host(n_runs=501))
    assert (link.tab, link.href) == ("scalars", "#scalars&tagFilter=%5Eloss%24&regexInput=%5Ea%24")


def test_a_job_with_histograms_is_linked_to_them():
    assert [link.label for link in links(SeriesExhibit((("a", "loss"),)), histogram_runs=("a",))] == ["Time Series", "Histograms"]


def test_a_capture_opens_its_tool_on_its_host():
    (link,) = links(TraceExhibit("exp/train/2026_11_30", "input_pipeline_analyzer", "host 1"))
    assert link.label == "Profile: input pipeline analyzer"
    assert query(link.href) == {"run": "exp/train/2026_11_30", "tool": "input_pipeline_analyzer", "host": "host 1"}
    assert "%2F" in link.href


def test_a_capture_that_no_tool_reads_has_no_link():
    assert links(TraceExhibit("exp/worker0", "", "")) == []


def test_a_table_of_layers_opens_the_graph_of_its_run():
    (link,) = links(TableExhibit(Message("Layers"), (), (), tab="graphs", run="exp=1/train"))
    assert (link.label, link.tab, link.href) == ("Graphs", "graphs", "#graphs&run=exp%3D1%2Ftrain")
    assert links(TableExhibit(Message("Layers"), (), ())) == []


def test_a_dump_opens_the_debugger():
    (link,) = links(TextExhibit(("first NaN: Log",), tab="debugger-v2"))
    assert (link.label, link.href) == ("Debugger V2", "#debugger-v2")
