"""`vitnas diagnose`: what it prints and writes, and one line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.diagnose.networks import MHSA
from tests.diagnose.test_run import HIERARCHY, write_model
from vitnas.cli import main


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> tuple[str, str]:
    """What the command prints to stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(["diagnose", *arguments])
    out, err = capsys.readouterr()
    assert ended.value.code == code, err
    return out, err


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a mistake is answered with; nothing may have been written."""
    before = sorted(Path.cwd().rglob("*"))
    out, err = said(capsys, *arguments, code=2)
    assert not out
    assert err.startswith("vitnas: ")
    assert err.count("\n") == 1
    assert sorted(Path.cwd().rglob("*")) == before
    return err


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_model(tmp_path / "small.yaml", *HIERARCHY, stem={"stride": 1})
    out, _ = said(capsys, model, "--data", "digits", "--images", "8", code=0)
    assert out.splitlines()[0] == ("7 layers in 3 stages, 6 with an attention map (none in dwconv)")
    assert out.splitlines()[1] == "  images      8, of 287 held out of train"
    assert "results/diagnose/small: 8 figures and diagnosis.json" in out
    tree = json.loads((tmp_path / "results/diagnose/small/diagnosis.json").read_text())
    assert (tree["network"], tree["weights"]) == ("small", "random, seed 0")
    assert (tree["data"], tree["images"]) == ("digits", 8)


def test_a_skipped_image_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "leaves").mkdir()
    for index in range(101):
        Image.new("RGB", (8, 8), (2 * index, 0, 255)).save(tmp_path / f"leaves/{index}.png")
    (tmp_path / "leaves/7.png").write_bytes(b"no image")
    model = write_model(tmp_path / "small.yaml", MHSA, in_chans=3)
    _, err = said(capsys, model, "--data", "leaves", "--only", "heads", code=0)
    assert err == (
        "vitnas: 1 image is skipped: leaves/7.png: not a readable image (its format is not known)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--data", "digitz"), "--data = 'digitz': must be of digits"),
        ((), "--data: is required"),
        (("--data", "digits", "--only", "cka,hed"), "--only = 'hed': must be one of maps"),
        (("--data", "digits", "--weights", "none"), "none: no such file or directory"),
        (("--data", "digits", "--trial", "1"), "is a file; a run is a folder with a study.db"),
        (
            ("--data", "digits", "--image", "900"),
            "--image = 900: must be from 0 to 255 (nearest: 255)",
        ),
        (
            ("--data", "digits", "--image", "250", "--map-images", "7"),
            "--map-images = 7: must be from 1 to 6: --image 250 is followed by 5 (nearest: 6)",
        ),
        (
            ("--data", "digits", "--map-images", "9"),
            "--map-images = 9: must be from 1 to 8 (nearest: 8)",
        ),
        (
            ("--data", "digits", "--map-images", "0"),
            "--map-images = 0: must be from 1 to 8 (nearest: 1)",
        ),
        (("--data", "digits", "--points", "4"), "--points = 4: must be an odd number"),
        (("--data", "digits", "--device", "tpu"), "'tpu'"),
        (("--data", "cifar10"), "cifar10 has images with 3 channels"),
        (("--data", "digits", "--log", "none.jsonl", "--only", "lrc"), "none.jsonl: no such file"),
    ],
)
def test_every_mistake_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], rule: str
) -> None:
    model = write_model(tmp_path / "small.yaml", MHSA, residual="lrc")
    assert rule in complaint(capsys, model, *arguments)


def test_a_name_that_is_almost_right_and_a_folder_that_is_no_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nearest: sret_s" in complaint(capsys, "sret_sl", "--data", "digits")
    (tmp_path / "empty").mkdir()
    assert "has no config.yaml" in complaint(capsys, "empty", "--data", "digits")
