"""Every export has the same files, and they run elsewhere."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from tests.exported.test_network import LOOPED, network, one_trial
from tests.nn.networks import ready, vit
from vitnas.errors import ConfigError, RunError
from vitnas.exported.folder import beside
from vitnas.exported.network import export_network
from vitnas.exported.source import write as source
from vitnas.exported.write import Content, Written, parse_formats, write_network
from vitnas.nn.weights import weights_bytes


def test_formats() -> None:
    assert parse_formats("onnx, py") == ("py", "onnx")
    assert parse_formats("none") == ()
    with pytest.raises(ConfigError, match=r"--formats = 'onx': .* \(nearest: onnx\)"):
        parse_formats("py,onx")


def run_here(
    file: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[object, str, str]:
    """`python file ...` in this process, as another one would import torch for two seconds.
    It must leave no file open.

    Returns:
        Exit code, standard output and standard error.
    """
    code: object = 0
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", ResourceWarning)
        patch.setattr(sys, "argv", [str(file), *arguments])
        try:
            runpy.run_path(str(file), run_name="__main__")
        except SystemExit as error:
            code = error.code
    assert not [str(one.message) for one in heard if one.category is ResourceWarning]
    return code, *capsys.readouterr()


def write(place: Path, content: Content) -> Written:
    with beside(place) as draft:
        return write_network(draft, place, content)


@pytest.mark.slow
def test_a_search_s_network_runs_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `python model.py image.png`, in a folder that was moved, without vitnas."""
    lines: list[str] = []
    model = weights_bytes(network(LOOPED))
    folder = export_network(
        *one_trial(LOOPED), model, tmp_path / "net", formats=("py",), notice=lines.append
    )
    assert "model.py: the same scores without vitnas on 16 random images" in lines[0]
    moved = folder.rename(tmp_path / "moved")
    (moved / "labels.txt").write_text("".join(f"class {number}\n" for number in range(10)))
    Image.new("RGB", (40, 50), "red").save(tmp_path / "a.png")
    command = [sys.executable, "-I", str(moved / "model.py"), str(tmp_path / "a.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    title, *best = done.stdout.splitlines()
    assert title == str(tmp_path / "a.png")
    assert len(best) == 5
    assert all("%  class " in line for line in best)
    image = command[-1]
    (moved / "none.png").write_bytes(Path(image).read_bytes()[:80])
    weights = (moved / "model.safetensors").read_bytes()
    monkeypatch.chdir(moved)
    run = partial(run_here, moved / "model.py", capsys)
    strange = b"a\nb\xff.png"
    shutil.copy(image, os.fsdecode(strange))
    code, said, _ = run(os.fsdecode(strange))
    assert (code, said.splitlines()) == (0, ["a\\nb\\udcff.png", *best]), "a name is one line"
    for argument, cut, why in (
        ("gone.png", None, "No such file or directory: 'gone.png'"),
        ("model.py", None, "cannot identify image file"),
        ("none.png", None, "none.png: image file is truncated"),
        (image, 100, "model.safetensors: "),
        (image, len(weights) - 4, "model.safetensors: "),
    ):
        (moved / "model.safetensors").write_bytes(weights[:cut])
        code, _, said = run(argument)
        assert (code, said.count("\n")) == (2, 1), said
        assert said.startswith("model.py: ")
        assert why in said
    for at in (len(weights) // 2, len(weights) - 5):  # of a number, which stays sound
        flipped = bytearray(weights)
        flipped[at] ^= 1
        (moved / "model.safetensors").write_bytes(flipped)
        why = "is not the file whose SHA-256 is in config.json"
        assert run(image) == (2, "", f"model.py: {moved / 'model.safetensors'}: {why}\n")
    for text in ("{}", None):  # another program's, or none
        (moved / "config.json").write_text(text) if text else (moved / "config.json").unlink()
        assert run(image)[0] == 0
    (moved / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"[]")
    code, _, said = run(image)
    assert (code, said.count("\n")) == (2, 1), said
    (moved / "model.safetensors").write_bytes(weights)
    (moved / "labels.txt").write_text("one\n")
    assert run(image)[2] == f"model.py: {moved / 'labels.txt'}: 1 names for 10 classes\n"
    done = subprocess.run(command[:-1], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "usage: python model.py IMAGE ...\n")
    assert "trial-5: 61.25 % top-1" in (moved / "model.py").read_text()
    assert "`model.py` is this network" in (moved / "README.md").read_text()


def test_what_cannot_be_expressed_is_said_and_the_rest_is_written(tmp_path: Path) -> None:
    config = vit(in_chans=5)
    content = Content(config, weights_bytes(ready(config)), "a network", formats=("py",))
    written = write(tmp_path / "net", content)
    assert written.lines() == ["model.py: left out, because it has no text for in_chans = 5 yet"]
    names = {path.name for path in (tmp_path / "net").iterdir()}
    assert "model.safetensors" in names
    assert "model.py" not in names


@pytest.mark.slow
def test_a_wrong_file_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = source.model_source
    monkeypatch.setattr(
        source, "model_source", lambda *how: right(*how).replace("nn.GELU(", "nn.ReLU(")
    )
    content = Content(vit(), weights_bytes(ready(vit())), "a network", formats=("py",))
    with pytest.raises(RunError, match=r"model\.py was not written"):
        write(tmp_path / "net", content)
    assert not list(tmp_path.iterdir())
