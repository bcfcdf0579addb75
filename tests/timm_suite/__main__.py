"""Run timm's model tests on our models and count."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

from tests.timm_suite.fetch import fetch_tests

HERE = Path(__file__).resolve().parent


def run_suite(root: Path, models: str = "*", options: list[str] | None = None) -> dict[str, Any]:
    """Run `tests/test_models.py` below `root` on our models.

    Args:
        root: what `fetch_tests` gives.
        models: names in timm, or patterns, with commas between.
        options: more for pytest, e.g. `["-k", "forward"]`.

    Returns:
        `tests`: for each test function how many passed, failed, were skipped; `skipped`: reasons
        with their counts; `failed`: ids of what failed.
    """
    folder = tempfile.mkdtemp(dir=root)
    report = Path(folder) / "report.xml"
    command = [sys.executable, "-m", "pytest", str(root / "tests" / "test_models.py")]
    command += ["-p", "timm_plugin", "-c", str(root / "pyproject.toml"), "-q"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", *(options or [])]
    # by its own name, from its own folder: timm's tests are a package `tests` too
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "VITNAS_TIMM_MODELS": models, "PYTHONPATH": path}
    subprocess.run(command, check=False, cwd=root / "tests", env=environment)
    return _counts(report)


def _counts(report: Path) -> dict[str, Any]:
    tests: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    failed = []
    for case in ET.parse(report).iter("testcase"):  # written by pytest, here and now
        name = case.get("name", "")
        function = re.sub(r"\[.*", "", name)
        kinds = {child.tag for child in case}
        result = "failed" if kinds & {"failure", "error"} else "passed"
        if "skipped" in kinds:
            result = "skipped"
            reasons[str(case.find("skipped").get("message"))] += 1  # type: ignore[union-attr]
        if result == "failed":
            failed.append(name)
        tests.setdefault(function, Counter())[result] += 1
    total = sum(tests.values(), Counter())
    return {"total": total, "tests": tests, "skipped": reasons, "failed": failed}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.timm_suite", description=__doc__)
    parser.add_argument("--models", default="*", help="names or patterns, with commas between")
    parser.add_argument("--root", type=Path, help="an unpacked source distribution of timm")
    parsed, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        root = parsed.root or fetch_tests(Path(folder))
        counts = run_suite(root.resolve(), parsed.models, options)
    print(json.dumps(counts))
    return 1 if counts["failed"] or not counts["total"]["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
