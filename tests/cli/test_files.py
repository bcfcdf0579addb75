"""What `vitnas space` prints of space files, and `vitnas describe` of models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import complaint, space_file, vitnas_says
from tests.config.trees import CONV, MHSA
from vitnas.nn.zoo import zoo_text


@pytest.mark.parametrize("change", [lambda text: text.replace("\n", "\r\n"), "\ufeff{}".format])
def test_windows_files_are_read(change: Any, capsys: pytest.CaptureFixture[str]) -> None:
    space_file({})
    Path("w.yaml").write_bytes(change(Path("s.yaml").read_text()).encode())
    out, _ = vitnas_says(capsys, "space", "w.yaml", code=0)
    assert "networks    1" in out


@pytest.mark.slow
def test_a_folder_named_like_a_shipped_space_does_not_hide_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("digits").mkdir()
    out, _ = vitnas_says(capsys, "space", "digits", "--samples", "0", code=0)
    assert out.startswith("digits: ")


VARIED: dict[str, dict[str, Any]] = {
    "whole stages": {"stages": {"choice": [[CONV], [CONV, CONV]]}, "groups": "[1]"},
    "stages and schedules": {
        "stages": {"choice": [[CONV], [CONV, CONV]]},
        "groups": {"choice": ["[1]", "[1][1]"]},
    },
    "one stage": {"stages": [{"choice": [CONV, MHSA]}]},
    "broad as a whole": {
        "stages": [MHSA],
        "broad": {"choice": [{"gamma": 0.0}, {"gamma": {"choice": [0.2, 0.4]}}]},
    },
    "class token": {"stages": [MHSA], "class_token": {"choice": [True, False]}},
    "tied stages": {
        "groups": "[1][1]",
        "stages": [
            {"choice": [CONV, MHSA | {"depth": {"int": [1, 2]}}], "name": "s"},
            {"choice": [CONV, MHSA | {"depth": {"int": [1, 2]}}], "name": "s"},
        ],
    },
    "steps that miss the end": {"drop_path_rate": {"float": [0.0, 0.5], "step": 0.3}},
}


@pytest.mark.parametrize("kind", sorted(VARIED))
def test_what_may_be_searched(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = vitnas_says(capsys, "space", space_file(VARIED[kind]), "--json", code=0)
    expected = {"whole stages": 1, "broad as a whole": 3, "tied stages": 5}.get(kind, 2)
    assert json.loads(out)["num_networks"] == expected


def test_a_very_long_range_is_surveyed(capsys: pytest.CaptureFixture[str]) -> None:
    file = space_file({"stages": [CONV | {"embed_dim": {"int": [1, 1_000_000]}}]})
    out, _ = vitnas_says(capsys, "space", file, "--json", code=0)
    assert json.loads(out)["num_networks"] == 1_000_000


@pytest.mark.slow
def test_a_float_axis_cannot_be_counted(capsys: pytest.CaptureFixture[str]) -> None:
    file = space_file({"drop_path_rate": {"float": [0.0, 0.5]}})
    out, _ = vitnas_says(capsys, "space", file, code=0)
    assert "uncountable (a float axis without step)" in out
    out, _ = vitnas_says(capsys, "space", file, "--json", code=0)
    assert json.loads(out, parse_constant=pytest.fail)["num_networks"] is None


PICTURES = {
    "another ending": (
        ["a/b.pdf"],
        r"--plot = 'a/b\.pdf': must end in \.png or \.svg .*: a/b\.png\)",
    ),
    "no name": (["."], r"--plot = '\.': must end in \.png or \.svg \(nearest: zoo\.png\)"),
    "another's file": (["thesis.png"], r"thesis\.png: is a file that vitnas did not write"),
    "no folder": (["thesis.png/a.svg"], r"thesis\.png/a\.svg: cannot be written to"),
    "with a name": (["a.png", "sret_t"], r"--plot: draws all models .*; drop NAME$"),
    "with the table": (["a.png", "--table"], r"--plot: draws all models .*; drop --table$"),
}


@pytest.mark.parametrize("what", PICTURES)
def test_a_picture_that_cannot_be_is_not_begun(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("thesis.png").write_text("mine")
    arguments, rule = PICTURES[what]
    assert re.match(rule, complaint(capsys, "zoo", "--plot", *arguments))
    assert Path("thesis.png").read_text() == "mine"


@pytest.mark.slow
def test_a_space_is_shown_with_other_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ash", "elm", "oak"):
        (tmp_path / "leaves/train" / name).mkdir(parents=True)
    asked = ("space", "images_64", "--data", str(tmp_path / "leaves"), "--json", "--samples", "1")
    out, _ = vitnas_says(capsys, *asked, code=0)
    told = json.loads(out)
    assert (told["name"], told["images"]) == ("images_64-leaves", None)
    assert told["problems"][-1].startswith(f"{tmp_path}/leaves/train/ash: no image in it; ")


@pytest.mark.parametrize("data", ["", "gone", "s.yaml", "digits:/x"])
def test_images_that_are_none_are_one_line(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = vitnas_says(capsys, "space", "digits", "--data", data, code=2)
    assert len(err.splitlines()) == 1


def test_what_a_search_reads_of_a_folder_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "pets"
    for name in ("cat", "dog"):
        (root / "train" / name).mkdir(parents=True)
        for index in range(6):  # which are not opened
            (root / "train" / name / f"{index}.png").write_bytes(b"no image")
    file = space_file({"img_size": 32})  # whose train_fraction leaves half
    out, _ = vitnas_says(capsys, "space", file, "--data", str(root), code=0)
    assert "\n  images      12 of 2 classes\n" in out
    assert f"  to read     {root}: 6 images are decoded once to 32 x 32 pixels and kept: " in out
    out, _ = vitnas_says(capsys, "space", file, "--data", str(root), "--json", code=0)
    assert json.loads(out)["images"]["bytes"] == [6 * 3 * 32 * 32]
    out, _ = vitnas_says(capsys, "space", file, "--json", code=0)
    assert json.loads(out)["images"] is None


def test_a_model_is_described_by_its_file_its_folder_or_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said, _ = vitnas_says(capsys, "describe", "sret_t", code=0)
    assert "4.7" in said, "M parameters, as SReT prints them"
    Path("net").mkdir()
    Path("net/config.yaml").write_text(zoo_text("sret_t"))
    for name in ("net", "net/config.yaml"):
        assert vitnas_says(capsys, "describe", name, code=0)[0] == said
    Path("sret_t").mkdir()  # what is there comes before the name
    for name in ("sret_t", "."):
        assert f"{name}: has no config.yaml; give a folder" in complaint(capsys, "describe", name)
    Path("sret_t/study.db").touch()
    assert "export sret_t --knee --to DIR" in complaint(capsys, "describe", "sret_t")


def test_what_cannot_be_described_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nearest: sret_t" in complaint(capsys, "describe", "sret_tt")
    Path("graft").mkdir()
    Path("graft/graft.yaml").write_text("model: vit_tiny_patch16_224\ngrafts: [{mixer: ska}]\n")
    assert "graft.yaml: is no network of vitnas" in complaint(capsys, "describe", "graft")
