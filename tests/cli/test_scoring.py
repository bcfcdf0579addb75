"""`vitnas evaluate` and `vitnas predict` as somebody types them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from tests.cli.conftest import complaint, vitnas_says
from tests.cli.test_streams import unread
from tests.nn.networks import ready, vit
from vitnas.config.model import ModelConfig
from vitnas.exported.folder import beside
from vitnas.exported.preprocessing import trained_on
from vitnas.exported.write import Content, write_network
from vitnas.nn.weights import weights_bytes


@pytest.fixture
def net() -> str:
    """A folder with a network of digits as they are published."""
    config: ModelConfig = vit(img_size=8, in_chans=1, num_classes=10, stem={"stride": 4})
    how = trained_on("digits", (0.3,), (0.4,))
    content = Content(config, weights_bytes(ready(config)), "net", (), how)
    with beside(Path("net")) as draft:
        write_network(draft, Path("net"), content)
    return "net"


def test_a_network_is_scored(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = vitnas_says(
        capsys, "evaluate", net, "--data", "digits", "--batch-sizes", "4", code=0
    )
    assert out.startswith("net (PyTorch) on 359 test images of digits\n")
    assert "(batch 4); " in out
    assert err == ""


def test_the_same_as_json_and_csv(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("evaluate", net, "--data", "digits", "--batch-sizes", "none")
    tree = json.loads(vitnas_says(capsys, *command, "--json", code=0)[0])
    rows = list(csv.DictReader(vitnas_says(capsys, *command, "--csv", code=0)[0].splitlines()))
    assert sum(int(row["correct"]) for row in rows) == round(3.59 * tree["top1"])
    assert tree["images_a_second"] == []


@pytest.mark.slow
def test_a_prediction_ends_quietly_when_its_reader_has_gone(net: str) -> None:
    for name in "abc":
        Image.new("L", (8, 8), 100).save(f"{name}.png")
    done = unread("predict", net, "a.png", "b.png", "c.png")
    assert (done.returncode, done.stderr) == (1, "")


def test_images_are_predicted_and_what_is_none_is_named(
    net: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("L", (8, 8), 100).save("a.png")
    Path("b.png").write_bytes(b"no image")
    out, err = vitnas_says(capsys, "predict", net, "a.png", "b.png", "c.png")
    assert out.startswith("a.png  ")
    assert out.count("\n") == 1
    assert err.splitlines() == [
        "vitnas: b.png: not a readable image (its format is not known)",
        "vitnas: c.png: there is no such file or folder",
    ]
    Path(net, "config.json").rename("kept.json")
    _, err = vitnas_says(capsys, "predict", net, "a.png", code=0)
    assert err.startswith("vitnas: net: does not say how images are prepared; they are scaled to ")
    assert err.endswith("with mean 0.5 and deviation 0.5\n")
    Path("kept.json").rename(Path(net, "config.json"))
    out, _ = vitnas_says(capsys, "predict", net, "a.png", "--top", "2", "--json", code=0)
    assert [len(one["classes"]) for one in json.loads(out)] == [2]
    out, _ = vitnas_says(capsys, "predict", net, "a.png", "--csv", code=0)
    assert [row["file"] for row in csv.DictReader(out.splitlines())] == ["a.png"]


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("evaluate", "net"), "Missing option '--data'"),
        (
            ("evaluate", "net", "--data", "digits", "--batch-sizes", "0"),
            "--batch-sizes = '0': must",
        ),
        (
            ("evaluate", "net", "--data", "digits", "--batch-sizes", "²"),
            "--batch-sizes = '²': must",
        ),
        (("evaluate", "net", "--data", "digits", "--json", "--csv"), "--json and --csv: take one"),
        (("evaluate", "nett", "--data", "digits"), "MODEL = 'nett': neither a folder"),
        (("evaluate", "net", "--data", "digits", "--score-on", "train"), "--score-on = 'train'"),
        (("predict", "net"), "(?i)missing argument 'images"),
        (("predict", "net", "a.png", "--top", "0"), "--top"),
        (("predict", "net", "empty"), "empty: has no image"),
        (("predict", "empty", "a.png"), r"empty: has no config\.yaml"),
    ],
)
def test_mistakes_are_one_line(
    net: str, arguments: tuple[str, ...], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    line = complaint(capsys, *arguments)
    assert re.search(rule, line), line
