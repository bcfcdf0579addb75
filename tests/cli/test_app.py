"""How a command ends: an exit code, and one line where something is wrong."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import vitnas
from tests.cli.conftest import complaint, vitnas_says
from vitnas.cli import main
from vitnas.errors import ConfigError, RunError

one_of = sys.modules["vitnas.cli.app"].one_of


def test_help_when_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = vitnas_says(capsys)
    assert "Usage" in out + err
    assert not (out + err).startswith("vitnas: ")


ENDS: dict[str, tuple[BaseException, tuple[str, ...], int, str]] = {
    "a mistake": (ConfigError("no", address="x"), ("zoo",), 2, "x: no"),
    "an error of a run": (RunError("r: no"), ("zoo",), 2, "r: no"),
    "an interrupt": (KeyboardInterrupt(), ("zoo",), 130, "interrupted"),
    "an interrupt of what resumes": (
        KeyboardInterrupt(),
        ("search", "digits"),
        130,
        "interrupted; the same command resumes where it stopped",
    ),
    "memory": (MemoryError(), ("zoo",), 2, "not enough memory for this process"),
    "a library": (
        ImportError("libx.so: no such file", path="/lib/x.so"),
        ("zoo",),
        2,
        "/lib/x.so: cannot be loaded: libx.so: no such file",
    ),
    "the system": (PermissionError(13, "no", "file"), ("zoo",), 2, "file: no"),
}


@pytest.mark.parametrize("kind", ENDS)
def test_whatever_ends_a_command_is_a_code_and_one_line(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error, arguments, code, line = ENDS[kind]

    def command(**_: Any) -> None:
        raise error

    monkeypatch.setattr(sys.modules["vitnas.cli.app"], "app", command)
    out, err = vitnas_says(capsys, *arguments, code=code)
    assert (out, err) == ("", f"vitnas: {line}\n")


@pytest.mark.parametrize("error", [ValueError("ours"), ImportError("ours", path="x.py")])
def test_a_bug_of_ours_keeps_its_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(**_: Any) -> None:
        raise error

    monkeypatch.setattr(sys.modules["vitnas.cli.app"], "app", command)
    with pytest.raises(type(error), match="ours"):
        main(["zoo"])


@pytest.mark.parametrize(
    ("arguments", "before"),
    [
        (("search", "digits", "--out", ""), "--out"),
        (("data", "prune", "--keep="), "--keep"),
        (("report", ""), "report"),
        (("predict", "--top", "3", "", "a.png"), "3"),
        (("",), "vitnas"),
    ],
)
def test_an_empty_argument_is_refused(
    arguments: tuple[str, ...], before: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be the working directory, or an option that is not given."""
    line = complaint(capsys, *arguments)
    assert line == f"what follows {before} is empty, as a variable of the shell that is not set"


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert vitnas_says(capsys, "--version", code=0) == (f"vitnas {vitnas.__version__}\n", "")


def test_one_of_names_the_nearest() -> None:
    one_of("--x", "digits", ["digits", "cifar10"])
    with pytest.raises(ConfigError) as refused:
        one_of("--x", "digit", ["digits", "cifar10"])
    assert str(refused.value) == "--x = 'digit': must be digits or cifar10 (nearest: digits)"
