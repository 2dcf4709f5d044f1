import argparse
import json
import math
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from tb_advisor.loader import AdvisorLoader
from tb_advisor.plugin import AdvisorPlugin
from tests.builders import event_file, falling, tensor_event, write_events


class Flags:
    """What programs that embed TensorBoard may leave out."""


def client(logdir, flags=None):
    plugin = AdvisorPlugin(base_plugin.TBContext(logdir=str(logdir), flags=flags or Flags(), plugin_name_to_instance={}))
    apps = plugin.get_plugin_apps()

    def application(environ, start_response):
        return apps[environ["PATH_INFO"]](environ, start_response)

    return Client(application)


def ready(client, query=""):
    """The answer of /report once reading is over."""
    for _ in range(400):
        answer = client.get(f"/report{query}").json
        if answer["state"] != "reading":
            return answer
        time.sleep(0.02)
    raise AssertionError("still reading")


def test_the_report_comes_from_a_background_thread(tmp_path):
    event_file(tmp_path / "run", {"loss": [*falling(40), math.nan]})
    app = client(tmp_path)
    answer = ready(app)
    assert (answer["state"], answer["error"], answer["profile_tab"]) == ("ready", None, False)
    assert answer["progress"]["jobs"] == answer["progress"]["jobs_total"] == 1
    assert [o["rule"] for o in answer["report"]["outcomes"] if o["status"] == "found" and o["rule"] == "non-finite-loss"]


def test_a_known_generation_is_not_sent_again(tmp_path):
    event_file(tmp_path / "run", {"loss": falling(40)})
    app = client(tmp_path)
    generation = ready(app)["generation"]
    assert app.get(f"/report?generation={generation}").json["report"] is None
    assert app.get(f"/report?generation={generation - 1}").json["report"] is not None


def test_new_data_is_found_on_refresh(tmp_path):
    event_file(tmp_path / "run", {"loss": falling(40)})
    app = client(tmp_path)
    before = ready(app)["generation"]
    event_file(tmp_path / "second", {"loss": falling(40)})
    for _ in range(400):
        answer = app.get("/report?refresh=1").json
        if answer["generation"] > before:
            break
        time.sleep(0.02)
    assert [job["name"] for job in answer["report"]["jobs"]] == ["run", "second"]


def test_every_marked_point_of_a_series(tmp_path):
    values = falling(5000)
    values[3001] = math.nan
    event_file(tmp_path / "run", {"a/loss": values})
    app = client(tmp_path)
    ready(app)
    chart = app.get("/series", query_string={"run": "run", "tag": "a/loss", "points": "100", "keep": "-5--1,17-19,3001-3001"}).json
    assert {17, 18, 19, 3001} <= set(chart["steps"])
    assert chart["non_finite"] == [{"step": 3001, "value": "NaN"}]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("run=run&tag=nothing", 404),
        ("run=../../etc&tag=passwd", 404),
        ("", 404),
        ("run=run&tag=loss&points=many", 400),
        ("run=run&tag=loss&keep=x", 400),
    ],
)
def test_bad_requests_are_answered_in_json(tmp_path, query, code):
    event_file(tmp_path / "run", {"loss": falling(40)})
    app = client(tmp_path)
    ready(app)
    answer = app.get(f"/series?{query}")
    assert (answer.status_code, answer.mimetype) == (code, "application/json")
    assert answer.json["error"]


def test_only_get_is_answered(tmp_path):
    assert client(tmp_path).post("/report").status_code == 405


def test_the_documentation_of_the_rules(tmp_path):
    entries = client(tmp_path).get("/rules").json["rules"]
    overfitting = next(entry for entry in entries if entry["id"] == "overfitting")
    assert set(overfitting["documentation"]) == {"Why it matters", "How it is found", "When it is wrong"}
    assert overfitting["thresholds"]["min_rise"] == 0.15


def test_the_configuration_holds_and_is_read_again_when_it_changes(tmp_path):
    event_file(tmp_path / "logs", {"loss": [*falling(40), math.nan]})
    config = tmp_path / "tb_advisor.toml"
    flags = Flags()
    flags.advisor_config = str(config)
    app = client(tmp_path / "logs", flags)

    def said_with(text):
        """What the tab is told of the NaN, and the threshold that it shows, once the configuration is taken up."""
        (tmp_path / "new.toml").write_text(text)
        (tmp_path / "new.toml").replace(config)  # never half written
        for _ in range(100):
            answer = app.get("/report?refresh=1").json
            rules = {rule["id"]: rule["thresholds"] for rule in app.get("/rules").json["rules"]}
            outcomes = answer["report"]["outcomes"] if answer["report"] else []
            reasons = [d["suppressed"] for o in outcomes for d in o["diagnoses"] if o["rule"] == "non-finite-loss"]
            yield answer["state"], answer["error"], reasons, rules["overfitting"]["min_rise"]
            time.sleep(0.02)

    assert ("ready", None, ["known"], 0.15) in said_with('[[ignore]]\nrule = "non-finite-loss"\nreason = "known"')
    assert ("ready", None, [None], 0.3) in said_with("rules.overfitting.min_rise = 0.3")
    assert any('unknown key "rule"; did you mean "rules"?' in (error or "") for _, error, _, _ in said_with("rule = 1"))
    assert ("ready", None, [None], 0.15) in said_with("")


def test_an_empty_logdir_is_ready_and_empty(tmp_path):
    assert ready(client(tmp_path))["report"]["jobs"] == []


def test_a_logdir_that_is_not_there_yet_is_said(tmp_path):
    answer = ready(client(tmp_path / "later"))
    assert "does not exist" in answer["report"]["notes"][0]["text"]


@pytest.mark.parametrize(("logdir", "why"), [("", "--logdir_spec"), ("gs://bucket/logs", "gs://bucket/logs is not a local directory")])
def test_files_out_of_reach_are_said(logdir, why):
    answer = client(logdir).get("/report").json
    assert answer["state"] == "error"
    assert why in answer["error"]


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Blocker())
from tb_advisor.loader import AdvisorLoader
from tensorboard.plugins import base_plugin
print("plugin", AdvisorLoader().load(base_plugin.TBContext(logdir="/nowhere")) is not None)
"""


@pytest.mark.parametrize("module", ["numpy", "google_crc32c", "werkzeug", "click", "rich", "tensorflow", "xprof", "pandas"])
def test_a_dependency_that_is_absent_never_stops_tensorboard(module):
    """The entry module imports and `load` answers, whatever is missing."""
    done = subprocess.run([sys.executable, "-c", BLOCKED.format(module=module)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    needed = module in {"numpy", "google_crc32c", "werkzeug"}
    assert done.stdout.strip() == f"plugin {not needed}"
    assert ("The Advisor tab is off: ImportError: blocked" in done.stderr) == needed


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    AdvisorLoader().define_flags(parser)
    flags = parser.parse_args(arguments)
    AdvisorLoader().fix_flags(flags)
    return flags


def test_the_flag_for_memory():
    assert parsed().advisor_memory_mb is None
    assert parsed("--advisor_memory_mb", "512").advisor_memory_mb == 512
    with pytest.raises(base_plugin.FlagsError, match="at least 1, not -3"):
        parsed("--advisor_memory_mb=-3")
    AdvisorLoader().fix_flags(Flags())


def test_the_flag_for_the_configuration_names_a_file(tmp_path):
    assert parsed().advisor_config is None
    with pytest.raises(base_plugin.FlagsError, match="there is no file"):
        parsed("--advisor_config", str(tmp_path / "nowhere.toml"))


def test_the_entry_module_imports_only_the_standard_library_and_the_plugin_api():
    code = "import sys, tensorboard.plugins.base_plugin; a = {*sys.modules}; import tb_advisor.loader; print(*({*sys.modules} - a))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    added = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    light = ("diagnosis", "loader", "message", "rule", "version")
    assert added == {"tb_advisor", *(f"tb_advisor.{name}" for name in light)}


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory):
    """A real TensorBoard over one long run: 100,000 steps, one 1-step spike and one NaN."""
    logdir = tmp_path_factory.mktemp("logs")
    values = falling(100_000, noise=0.01)
    values[50_001] = 9.0
    values[70_003] = math.nan
    event_file(logdir / "long", {"loss": values})
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(logdir),
        "--port",
        "0",
        "--host",
        "127.0.0.1",
        "--advisor_memory_mb=1",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "http://" in line:
            break
    else:
        raise AssertionError("".join(lines))
    yield "http://" + line.split("http://")[1].split()[0].rstrip("/")
    process.terminate()
    process.communicate(timeout=30)


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def poll(url, until):
    for _ in range(600):
        try:
            answer = fetch(url)
            if until(answer):
                return answer
        except urllib.error.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{url} never answered as expected")


def test_tensorboard_lists_the_tab(tensorboard):
    entry = fetch(f"{tensorboard}/data/plugins_listing")["advisor"]
    assert (entry["enabled"], entry["tab_name"], entry["loading_mechanism"]["module_path"]) == (
        True,
        "Advisor",
        "/data/plugin/advisor/index.js",
    )


def test_the_advisor_finds_what_tensorboard_samples_away(tensorboard):
    """Why the Advisor reads the files itself: of 100,000 points TensorBoard's data provider serves 1,000, without the spike and the NaN."""
    served = poll(f"{tensorboard}/data/plugin/scalars/scalars?tag=loss&run=long", lambda points: len(points) >= 1000)
    assert len(served) == 1000
    assert not [point for point in served if point[1] in (50_001, 70_003)]
    report = poll(f"{tensorboard}/data/plugin/advisor/report", lambda answer: answer["state"] == "ready")["report"]
    found = {o["rule"]: o["diagnoses"][0] for o in report["outcomes"] if o["status"] == "found"}
    assert found["non-finite-loss"]["onset_step"] == 70_003
    assert found["loss-spikes"]["onset_step"] == 50_001
    assert found["loss-spikes"]["folded_under"] is None


def test_histograms_come_as_a_heat_map(tmp_path):
    buckets = TensorProto(dtype=2, tensor_content=np.array([[0, 1, 5.0], [1, 2, 15.0]]).tobytes())
    buckets.tensor_shape.dim.add(size=2)
    buckets.tensor_shape.dim.add(size=3)
    write_events(tmp_path / "run", [tensor_event("dense/kernel", step, buckets, "histograms") for step in range(5)])
    app = client(tmp_path)
    ready(app)
    heat = app.get("/histogram?run=run&tag=dense/kernel").json
    assert heat["steps"] == [0, 1, 2, 3, 4]
    assert sum(heat["shares"][0][:24]) == pytest.approx(0.25, abs=0.02)
    assert app.get("/histogram?run=run&tag=nothing").status_code == 404
