"""What is printed goes to streams that may be closed, full, or of few characters."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import SERIAL, space_file
from vitnas.cli import streams
from vitnas.config.model import ModelConfig, save_config
from vitnas.errors import DataError, LostError, VitnasError

VITNAS = f"{sys.executable} -m vitnas"


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("vitnas", VITNAS, 1)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def unread(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command with a pipe as its output whose reader has gone, as `head` goes after a line."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, "-m", "vitnas", *command],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("command", ["schema fields", "zoo --table"])
def test_head_gets_its_line_and_nothing_is_said(command: str) -> None:
    done = shell(f"vitnas {command} | head -1")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["schema fields", "--version"])
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_a_reader_that_has_gone_is_no_mistake(command: str, unbuffered: str) -> None:
    """Whether a line fails when it is printed or only at the end, the exit code is 1."""
    done = unread(*command.split(), PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
@pytest.mark.parametrize("command", ["zoo", "--version", "--help", "schema model"])
def test_a_full_disk_is_one_line(command: str) -> None:
    done = shell(f"vitnas {command} > /dev/full")
    assert done.stderr == ("vitnas: what is printed cannot be written: no space left on device\n")
    assert done.returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_training_blames_no_folder_for_what_it_prints(tiny_config: ModelConfig) -> None:
    save_config(tiny_config, "net.yaml")
    done = shell("vitnas train net.yaml --epochs 1 --to out > /dev/full")
    assert done.stderr == "vitnas: what is printed cannot be written: no space left on device\n"
    assert (done.returncode, list(Path().iterdir())) == (2, [Path("net.yaml")])


@pytest.mark.skipif(sys.platform != "linux", reason="Linux limits the address space")
def test_a_library_that_does_not_fit_into_memory_is_one_line(tiny_config: ModelConfig) -> None:
    save_config(tiny_config, "net.yaml")
    done = shell("ulimit -v 1500000; vitnas train net.yaml --to out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vitnas: ")
    assert done.stderr.count("\n") == 1
    assert list(Path().iterdir()) == [Path("net.yaml")]


def test_the_exit_code_is_told_where_the_error_cannot_be() -> None:
    assert shell("vitnas describe nowhere 2>/dev/full").returncode == 2
    assert shell("vitnas describe nowhere 2>&-").returncode == 2


def test_a_complaint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    streams.complain("a\nb.png: cannot be read")
    assert capsys.readouterr().err == "vitnas: a\\nb.png: cannot be read\n"


def test_a_terminal_of_few_characters_gets_the_others_spelled_out() -> None:
    done = shell("vitnas zoo --table", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2013" in done.stdout


@pytest.mark.slow
def test_a_search_outlives_its_pipe() -> None:
    file = space_file({})
    done = shell(
        f"vitnas search {file} {' '.join(SERIAL[:-3])} 1 --gpus-per-trial 0 --out run | true"
    )
    assert done.stderr == ""
    assert Path("run/report.html").is_file()


def test_a_folder_with_any_name_is_told_as_python_and_a_shell_take_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vitnas.cli.app import print_folder
    from vitnas.environment import command_line

    print_folder(Path("it's\x1b[2J"))
    assert capsys.readouterr().out == ("it's\\x1b[2J: load it with vitnas.load(\"it's\\x1b[2J\")\n")
    monkeypatch.setattr(sys, "argv", ["/bin/vitnas", "search", "my space.yaml"])
    assert command_line() == "vitnas search 'my space.yaml'"


def test_of_several_processes_the_first_one_tells_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    for rank, said in ((0, "net.yaml: no such file"), (2, "process 2: net.yaml: no such file")):
        with pytest.raises(VitnasError) as caught, streams.in_turn(rank):
            raise DataError("net.yaml: no such file")
        assert str(caught.value) == said
    assert len(waited) == 1
    with pytest.raises(VitnasError, match="process 2: the first one has gone"), streams.in_turn(2):
        raise LostError("the first one has gone")
    assert len(waited) == 1  # for nobody else will tell
