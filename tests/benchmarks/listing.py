"""How much the Advisor adds to TensorBoard's page load: /data/plugins_listing with and without it, 1,000 runs.

python tests/benchmarks/listing.py [--runs 1000] [--requests 200]

Two TensorBoards run side by side and are asked in turn; the figures are medians in milliseconds. The difference
is measured twice: before the tab was opened, and while its background thread reads.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.builders import event_file, falling  # noqa: E402

SERVER = """
import sys
from tensorboard import default, program
plugins = default.get_plugins()
if sys.argv[1] == "without":
    plugins = [p for p in plugins if not getattr(p, "__module__", "").startswith("tb_advisor")]
server = program.TensorBoard(plugins=plugins)
server.configure(argv=["tensorboard", "--logdir", sys.argv[2], "--port", "0", "--host", "127.0.0.1"])
print(server.launch(), flush=True)
import time
time.sleep(3600)
"""


def start(kind: str, logdir: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, kind, logdir], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip().rstrip("/")


def milliseconds(url: str) -> float:
    begin = time.perf_counter()
    urllib.request.urlopen(f"{url}/data/plugins_listing", timeout=60).read()
    return 1000 * (time.perf_counter() - begin)


def compare(with_plugin: str, without: str, requests: int) -> str:
    times = [(milliseconds(with_plugin), milliseconds(without)) for _ in range(requests)]
    a, b = (statistics.median(column) for column in zip(*times, strict=True))
    return f"with {a:.2f} ms, without {b:.2f} ms, difference {a - b:+.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as logdir:
        for number in range(arguments.runs):
            event_file(Path(logdir) / f"run{number:04}", {"train/loss": falling(50), "val/loss": falling(50)})
        servers = [start(kind, logdir) for kind in ("with", "without")]
        try:
            urls = [url for _, url in servers]
            time.sleep(5)
            for url in urls:
                milliseconds(url)
            print("before the tab is opened:", compare(*urls, arguments.requests))
            urllib.request.urlopen(f"{urls[0]}/data/plugin/advisor/report", timeout=60).read()
            print("while it reads:          ", compare(*urls, arguments.requests))
        finally:
            for process, _ in servers:
                process.terminate()


if __name__ == "__main__":
    main()
