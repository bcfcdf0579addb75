"""Which networks are checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy.made import CONFIG, small_file
from tests.nn.networks import ready
from vitnas.deploy.subjects import is_run, of_folder, of_run
from vitnas.errors import VitnasError
from vitnas.exported.folder import beside
from vitnas.exported.grafts import graft_named
from vitnas.exported.write import Content, write_network
from vitnas.nn.weights import weights_bytes
from vitnas.run import Run


@pytest.fixture
def net(tmp_path: Path) -> Path:
    folder = tmp_path / "net"
    with beside(folder) as draft:
        write_network(draft, folder, Content(CONFIG, weights_bytes(ready(CONFIG)), "net"))
    return folder


def test_a_folder(net: Path) -> None:
    (member,) = of_folder(net)
    assert member.trial is None
    assert member.line.startswith("1x dwconv 8 ")
    assert member.flops > 0
    assert member.num_params == sum(p.numel() for p in member.network.parameters())


def test_a_graft(tmp_path: Path) -> None:
    options = {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3, "depth": 2}
    graft_named("vit_tiny_patch16_224", {"mixer": "ska", "blocks": "1"}, options, to=tmp_path / "g")
    (member,) = of_folder(tmp_path / "g")
    assert member.line == "vit_tiny_patch16_224 + ska in 1"
    assert member.num_params == sum(p.numel() for p in member.network.parameters())
    assert member.places == {"blocks.0.attn": "Attention", "blocks.1.attn": "ska"}


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def half_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def another_file(folder: Path) -> None:
    small_file(folder / "model.onnx")


def broken_file(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"\x08\x0a broken")


def a_graft(folder: Path) -> None:
    (folder / "graft.yaml").write_text("model: resnet18\n")


@pytest.mark.parametrize(
    ("harm", "rule"),
    [
        (no_weights, r"model\.safetensors: "),
        (half_weights, r"model\.safetensors: "),
        (another_file, r"model\.onnx: gives other scores than .*net with its weights"),
        (broken_file, r"model\.onnx: onnxruntime cannot read it"),
        (a_graft, r"graft\.yaml: grafts: is required"),
    ],
)
def test_what_is_wrong_with_a_folder(net: Path, harm: Callable[[Path], None], rule: str) -> None:
    pytest.importorskip("onnxruntime")
    harm(net)
    with pytest.raises(VitnasError, match=rule):
        of_folder(net)


def test_a_run_s_front(searched: Run) -> None:
    assert is_run(searched.path)
    members, data = of_run(searched.path)
    assert [member.trial for member in members] == [trial.number for trial in searched.front]
    assert data.name == "digits"
    assert members[0].classifier.preprocessing is not None
    with pytest.raises(VitnasError, match="there is no trial 99"):
        of_run(searched.path, [99])
    assert not is_run(searched.path / "weights")
