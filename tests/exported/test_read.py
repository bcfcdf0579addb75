"""Folders of earlier code give the logits that they gave then; a damaged one is one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import vitnas
from tests.report.runs import run_of, trial
from vitnas.errors import ConfigError, DataError, VitnasError
from vitnas.exported.folder import CONFIG_FILE, WEIGHTS_FILE
from vitnas.exported.grafts import graft_named
from vitnas.exported.network import export_network
from vitnas.exported.read import load
from vitnas.nn.model import build_model
from vitnas.nn.weights import weights_bytes

SMALL = {"img_size": 32, "patch_size": 16, "depth": 1, "num_classes": 3}
GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["network", "graft"])
def test_an_older_export_gives_the_same_logits(name: str) -> None:
    stored = load_file(GOLDEN / f"{name}.safetensors")
    with torch.no_grad():
        logits = vitnas.load(GOLDEN / name)(stored["images"])
    torch.testing.assert_close(logits, stored["logits"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "file"), [("network", "config.yaml"), ("graft", "graft.yaml")])
def test_an_export_of_a_later_format_is_one_line(name: str, file: str, tmp_path: Path) -> None:
    folder = shutil.copytree(GOLDEN / name, tmp_path / name)
    text = (folder / file).read_text()
    (folder / file).write_text(f"format: 1\n{text}")
    vitnas.load(folder)
    (folder / file).write_text(f"format: 2\nunheard_of: 3\n{text}")
    with pytest.raises(ConfigError, match=rf"{file}: format = 2: this vitnas reads 1"):
        vitnas.load(folder)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    chosen = trial(5)
    weights = weights_bytes(build_model(chosen.network))
    return export_network(run_of(tmp_path, chosen), chosen, weights, tmp_path / "net")


def flip(file: Path) -> None:
    """Change the lowest bit of the last number: it stays finite."""
    content = bytearray(file.read_bytes())
    content[-4] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["network", "graft"])
def test_weights_with_one_other_bit_are_refused(name: str, exported: Path, tmp_path: Path) -> None:
    if name == "graft":
        graft_named("deit_tiny_patch16_224", {"mixer": "ska"}, SMALL, to=tmp_path / "graft")
        exported = tmp_path / "graft"
    load(exported)
    flip(exported / WEIGHTS_FILE)
    line = r"model\.safetensors: is not the file that was written here: its SHA-256 begins with"
    with pytest.raises(DataError, match=line):
        load(exported)
    (exported / "config.json").unlink()  # as in a folder of earlier code
    load(exported)


def damage(folder: Path, kind: str) -> None:
    weights, config = folder / WEIGHTS_FILE, folder / CONFIG_FILE
    content = weights.read_bytes()
    if kind == "no weights":
        weights.unlink()
    elif kind == "no config":
        config.unlink()
    elif kind == "cut weights":
        weights.write_bytes(content[: len(content) // 2])
    elif kind == "no safetensors":
        weights.write_bytes(b"\x80\x04 a pickle")
    elif kind == "no configuration":
        config.write_text("name: [")
    elif kind == "wider":
        config.write_text(config.read_text().replace("embed_dim: 64", "embed_dim: 128"))
    else:
        config.write_text(config.read_text().replace("mhsa", "cska"))


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("no weights", f"{WEIGHTS_FILE}: no such file"),
        ("no config", f"has no {CONFIG_FILE}; give a folder"),
        ("cut weights", WEIGHTS_FILE),
        ("no safetensors", "not a safetensors file"),
        ("no configuration", CONFIG_FILE),
        ("wider", "weights of another network: "),
        ("another mixer", "weights of another network"),
    ],
)
def test_damage_is_one_clear_line(kind: str, part: str, exported: Path) -> None:
    damage(exported, kind)
    with pytest.raises(VitnasError) as caught:
        load(exported)
    line = str(caught.value)
    assert part in line
    assert str(exported) in line
    assert "\n" not in line
    assert len(line) < 300


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match="no such file"):
        load(tmp_path / "nowhere")
