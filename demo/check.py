"""Compare what tb-advisor finds in the demo's logs with expected.json: python demo/check.py"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND = Path(sys.executable).with_name("tb-advisor")


def main() -> None:
    expected = json.loads((HERE / "expected.json").read_text("utf-8"))
    report = json.loads(report_on(HERE / "logs"))
    failures = [f"{o['job']}: rule {o['rule']} failed: {o['reason']}" for o in report["outcomes"] if o["status"] == "error"]
    problems = differences(expected, shown(report)) + failures
    if problems:
        sys.exit("The report on demo/logs is not the expected one.\n" + "\n".join(problems))
    print(f"The report on demo/logs is the expected one: {len(expected)} jobs, {sum(map(len, expected.values()))} diagnoses.")


def report_on(logs: Path) -> str:
    """The report of the command in JSON. Its status is 1 where it found an error, which the demo has."""
    finished = subprocess.run([COMMAND, "check", logs, "--format", "json"], stdout=subprocess.PIPE, text=True, check=False)
    if finished.returncode not in (0, 1):
        sys.exit(f"tb-advisor check {logs} ended with status {finished.returncode}")
    return finished.stdout


def shown(report: Mapping[str, list]) -> dict[str, list[str]]:
    """Each job with the rules that have a diagnosis which the report shows by default."""
    rules: dict[str, set[str]] = {job["name"]: set() for job in report["jobs"]}
    for outcome in report["outcomes"]:
        if any(is_shown(diagnosis) for diagnosis in outcome["diagnoses"]):
            rules.setdefault(outcome["job"], set()).add(outcome["rule"])
    return {job: sorted(found) for job, found in rules.items()}


def is_shown(diagnosis: Mapping[str, str | None]) -> bool:
    certain = diagnosis["severity"] in ("warning", "error") and diagnosis["confidence"] in ("medium", "high")
    return certain and diagnosis["folded_under"] is None and diagnosis["suppressed"] is None


def differences(expected: Mapping[str, list[str]], found: Mapping[str, list[str]]) -> list[str]:
    """A line for each job whose diagnoses differ."""
    names = sorted(expected.keys() | found.keys())
    return [
        f"  {n}: expected {expected.get(n, 'no such job')}, found {found.get(n, 'no such job')}"
        for n in names
        if expected.get(n) != found.get(n)
    ]


if __name__ == "__main__":
    main()
