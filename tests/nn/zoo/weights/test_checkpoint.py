"""Reading a checkpoint: the state dict inside what stands around it, and never code."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from vitnas.errors import DataError
from vitnas.nn.zoo.weights.checkpoint import read_checkpoint

State = dict[str, Tensor]


class Code:
    """Unpickled the usual way, it would write a file."""

    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


WRAPPINGS: dict[str, Callable[[State], Any]] = {
    "bare": lambda state: state,
    "model": lambda state: {"model": state, "optimizer": {"lr": 0.1}, "epoch": 7},
    "state_dict": lambda state: {"state_dict": {f"module.{n}": v for n, v in state.items()}},
    "model_ema": lambda state: {"epoch": 7, "model_ema": state},
    "lightning": lambda state: {"state_dict": {f"model.module.{n}": v for n, v in state.items()}},
    "compiled": lambda state: {f"_orig_mod.{n}": v for n, v in state.items()},
    "arguments": lambda state: {"model": state, "args": Namespace(model="x", lr=1e-3)},
    "nested": lambda state: {"ema": {"module": state}},
}


def _save(value: Any, **options: Any) -> Callable[[Path], None]:
    return lambda file: torch.save(value, file, **options)


def _write(content: bytes) -> Callable[[Path], Any]:
    return lambda file: file.write_bytes(content)


def _cut(file: Path) -> None:
    torch.save({"weight": torch.zeros(100)}, file)
    file.write_bytes(file.read_bytes()[:-200])


def _cut_safetensors(file: Path) -> None:
    save_file({"weight": torch.zeros(100)}, file)
    file.write_bytes(file.read_bytes()[:-8])


def _circle() -> dict[str, Any]:
    tree: dict[str, Any] = {}
    tree["model"] = tree
    return tree


NO_CHECKPOINTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda file: None, "no such file or directory"),
    "folder": (lambda file: file.mkdir(), "is a folder; give the checkpoint file in it"),
    "empty": (_write(b""), "is empty"),
    "noise": (_write(b"\x93\x01 no pickle at all" * 9), "and is not opened"),
    "text": (_write(b"hello world\n"), "is damaged or not a checkpoint"),
    "cut": (_cut, "is damaged or not a checkpoint"),
    "cut safetensors": (_cut_safetensors, "is a damaged safetensors file"),
    "web page": (_write(b"\n<!DOCTYPE html><html>"), "is a web page, not a checkpoint"),
    "lfs": (_write(b"version https://git-lfs.github.com/spec/v1\n"), "is a pointer of Git LFS"),
    "code": (
        _save({"model": {"a": torch.zeros(1)}, "x": Code()}),
        "asks for the code posix.system and is not opened: save the state dict alone",
    ),
    "code in an old file": (
        _save({"x": Code()}, _use_new_zipfile_serialization=False),
        "asks for the code posix.system and is not opened",
    ),
    "a whole module": (
        _save(torch.nn.Linear(2, 2)),
        "asks for the code torch.nn.modules.linear.Linear and is not opened",
    ),
    "a list": (_save([1, 2]), "holds a list and no state dict"),
    "a tensor": (_save(torch.zeros(2)), "holds a tensor and no state dict"),
    "no tensors": (_save({"epoch": 1, "best": "x"}), "its first keys are epoch, best"),
    "a circle": (_save(_circle()), "has no state dict; its first keys are model"),
    "sparse": (_save({"w": torch.eye(2).to_sparse()}), "'w' is sparse, or does not hold"),
    "expanded": (_save({"w": torch.zeros(1).expand(2000)}), "'w' is sparse, or does not hold"),
    "meta": (_save({"w": torch.zeros(2, device="meta")}), "'w' is sparse, or does not hold"),
    "not finite": (_save({"w": torch.tensor([1.0, float("nan")])}), "'w' has numbers that are not"),
}


@pytest.fixture
def state() -> State:
    """Two layers, and a counter of whole numbers."""
    layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    return dict(layers.state_dict())


@pytest.mark.parametrize("kind", sorted(WRAPPINGS))
def test_what_stands_around_a_state_dict(kind: str, state: State) -> None:
    torch.save(WRAPPINGS[kind](state), "a.pth")
    read = read_checkpoint("a.pth")
    assert list(read.state) == list(state)
    assert all(torch.equal(value, state[name]) for name, value in read.state.items())


@pytest.mark.parametrize(
    ("tree", "entry", "others", "model"),
    [
        ({}, "", (), None),
        ({"model": 1, "model_ema": 1, "epoch": 7}, "model", ("model_ema",), None),
        ({"ema": 1, "args": {"model": "SReT_T"}}, "ema", (), "SReT_T"),
        ({"net": 1, "args": Namespace(model="DeiT")}, "net", (), "DeiT"),
        ({"state_dict": 1, "arch": "vit"}, "state_dict", (), "vit"),
        ({"state_dict": 1, "arch": 3}, "state_dict", (), None),
    ],
)
def test_where_it_was_and_what_it_is_called(
    state: State, tree: dict[str, Any], entry: str, others: tuple[str, ...], model: str | None
) -> None:
    """1 stands for the state dict; without any it is the file itself."""
    content = {key: state if value == 1 else value for key, value in tree.items()} or state
    torch.save(content, "a.pth")
    read = read_checkpoint("a.pth")
    assert (read.file, read.entry, read.others, read.model) == (Path("a.pth"), entry, others, model)


def test_old_files_of_torch_and_safetensors(state: State) -> None:
    torch.save(state, "a.pth", _use_new_zipfile_serialization=False)
    save_file(state, "b.any")
    for file in ("a.pth", "b.any"):
        read = read_checkpoint(file).state
        assert read.keys() == state.keys()
        assert all(torch.equal(value, state[name]) for name, value in read.items())


@pytest.mark.parametrize("kind", sorted(NO_CHECKPOINTS))
def test_no_checkpoint(kind: str) -> None:
    make, expected = NO_CHECKPOINTS[kind]
    make(Path("a.pth"))
    with pytest.raises(DataError) as refused:
        read_checkpoint("a.pth")
    line = str(refused.value)
    assert line.startswith("a.pth: ")
    assert expected in line
    assert line.isprintable()
    assert len(line) < 200
    assert not Path("ran").exists()


@pytest.mark.slow
def test_a_file_that_is_no_checkpoint_is_refused_without_building_networks() -> None:
    code = "import sys, vitnas.nn.zoo.weights.checkpoint; assert 'timm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
