"""First weights by their text: a folder, timm's, or a file of timm's."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitnas.errors import DataError
from vitnas.training.start import FromTimm, digest, start_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.safetensors").write_bytes(b"some")
    return tmp_path


def test_a_folder_and_a_file_are_told_apart_by_their_content(folder: Path) -> None:
    file = folder / "model.safetensors"
    assert start_of(str(folder)) == folder
    start = start_of(f"timm:vit_tiny_patch16_224.augreg:{file}")
    assert start == FromTimm("vit_tiny_patch16_224.augreg", str(file))
    before = digest(folder), digest(start)
    file.write_bytes(b"other")
    assert before[0] != digest(folder)
    assert before[1] != digest(start)


def test_timms_own_are_told_apart_by_their_tag() -> None:
    start = start_of("timm:deit_tiny_patch16_224.fb_in1k")
    assert start == FromTimm("deit_tiny_patch16_224.fb_in1k")
    assert isinstance(start, FromTimm)
    assert start.text == "timm:deit_tiny_patch16_224.fb_in1k"
    assert digest(start) == "deit_tiny_patch16_224.fb_in1k"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gone", r"gone: is no exported folder: it has no model\.safetensors"),
        ("timm:vit:gone.pth", r"gone\.pth: no such file"),
        ("timm:vit:/", "/: no such file"),
        ("", "--init-from: is empty"),
    ],
)
def test_what_is_not_there(
    text: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(DataError, match=said):
        start_of(text)
