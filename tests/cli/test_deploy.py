"""`vitnas deploy-check` as somebody types it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import complaint, vitnas_says
from tests.deploy.made import CONFIG, a_check
from tests.nn.networks import ready
from vitnas import api
from vitnas.deploy.result import DeployCheck
from vitnas.exported.folder import beside
from vitnas.exported.write import Content, write_network
from vitnas.nn.weights import weights_bytes


@pytest.fixture
def net() -> str:
    with beside(Path("net")) as draft:
        write_network(draft, Path("net"), Content(CONFIG, weights_bytes(ready(CONFIG)), "net"))
    return "net"


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("net",), "--data: is required of a folder"),
        (("net", "--data", "digitz"), "--data = 'digitz'.*nearest: digits"),
        (("net", "--data", "digits"), "net: has 3 classes, and digits has 10"),
        (("net", "--data", "cifar10"), "net: takes images of 1, and those of cifar10 have 3"),
        (("net", "--data", "digits", "--trial", "3"), "--trial chooses networks of a run"),
        (("net", "--data", "digits", "--score-on", "train"), "--score-on = 'train': must be"),
        (("nett", "--data", "digits"), "nett: is not a folder; give an exported folder or a run"),
        (("empty", "--data", "digits"), r"empty: has no config\.yaml"),
        (("net", "--to", "notes.md"), "notes.md: is a file that vitnas did not write"),
        (("net", "--to", "no/such/../x/"), ".*"),
        (("net", "--to", f"{'n' * 300}.md"), "n.md: cannot be written to .file name too long"),
        (("net", "--to", "/proc/where.md"), "/proc/where.md: cannot be written to "),
    ],
)
def test_mistakes_are_one_line(
    net: str, arguments: tuple[str, ...], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    Path("empty").mkdir()
    Path("notes.md").write_text("# My notes\n")
    line = complaint(capsys, "deploy-check", *arguments)
    assert re.search(rule, line), line


def test_what_is_printed_and_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def found(*given: Any, **options: Any) -> DeployCheck:
        asked.append((given, options))
        return a_check()

    monkeypatch.setattr(api, "deploy_check", found)
    command = ("deploy-check", "results/digits", "--trial", "7", "--to", "where.md")
    out, err = vitnas_says(capsys, *command, code=0)
    assert out.startswith("results/digits: 1 network on 360 test images of digits")
    assert out.endswith("where.md: the same as a page\n")
    assert err == ""
    assert asked[0][0] == ("results/digits", None)
    assert asked[0][1]["trials"] == [7]
    assert Path("where.md").read_text().startswith("# Where results/digits will run\n")
    out, _ = vitnas_says(capsys, *command, "--json", code=0)
    assert json.loads(out)["networks"][0]["trial"] == 7


def test_what_cannot_be_written_in_the_end_is_printed_all_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*_: Any, **__: Any) -> DeployCheck:
        Path("where.md").mkdir()  # while it was measured
        return a_check()

    monkeypatch.setattr(api, "deploy_check", found)
    out, err = vitnas_says(capsys, "deploy-check", "results/digits", "--to", "where.md", code=2)
    assert out.startswith("results/digits: 1 network on 360 test images of digits")
    assert err == "vitnas: where.md: cannot be written: is a directory\n"
