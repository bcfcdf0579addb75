"""`vitnas convert` writes a whole folder or, with one line, nothing; no checkpoint runs code."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import Tensor

import vitnas
from tests.nn.zoo.codes.bvit import Bvit
from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.deepvit import Deepvit
from vitnas.cli import main
from vitnas.errors import VitnasError
from vitnas.exported.convert import convert

MODEL = {
    "name": "small",
    "class_token": True,
    "reattention_blocks": 1,
    "stages": [{"token_mixer": "mhsa", "depth": 2, "embed_dim": 24, "num_heads": 12}],
}
BROAD = {**MODEL, "reattention_blocks": 0, "broad": {"gamma": 1.0}}
FILES = ["README.md", "config.yaml", "model.safetensors"]

State = dict[str, Tensor]


class Code:
    """Unpickled the usual way, it would write a file."""

    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(yaml.safe_dump(MODEL))


@pytest.fixture(scope="module")
def state() -> State:
    code = Deepvit(24, 2, reattention=1, mlp_ratio=4, img_size=32, classes=10)
    return dict(filled(code).state_dict())


def says(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["convert", *arguments])
    said = capsys.readouterr()
    assert ended.value.code == code, said.err
    return said.err if code else said.out


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr; nothing may have been written, and nothing run."""
    before = sorted(Path.cwd().rglob("*"))
    line = says(capsys, *arguments)
    assert line.startswith("vitnas: ")
    assert line.count("\n") == 1
    assert line.strip().isprintable()
    assert sorted(Path.cwd().rglob("*")) == before
    return line.removeprefix("vitnas: ").rstrip("\n")


SMALL = ("--from", "deepvit", "--model", "small.yaml", "--to", "net")

WRAPPINGS: dict[str, Callable[[State], Any]] = {
    "bare": lambda state: state,
    "model": lambda state: {"model": state, "optimizer": {"lr": 0.1}, "epoch": 7},
    "state_dict": lambda state: {"state_dict": {f"module.{n}": v for n, v in state.items()}},
    "model_ema": lambda state: {"epoch": 7, "model_ema": state},
    "lightning": lambda state: {"state_dict": {f"model.module.{n}": v for n, v in state.items()}},
    "compiled": lambda state: {f"_orig_mod.{n}": v for n, v in state.items()},
    "arguments": lambda state: {"model": state, "args": Namespace(model="x", lr=1e-3)},
    "nested": lambda state: {"ema": {"module": state}},
    "half": lambda state: {n: v.half() if v.is_floating_point() else v for n, v in state.items()},
    "counted by thop": lambda state: {**state, "blocks.0.total_ops": torch.zeros(1)},
}


@pytest.mark.parametrize("kind", sorted(WRAPPINGS))
def test_what_stands_around_a_state_dict(
    kind: str, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(WRAPPINGS[kind](state), "a.pth")
    out = says(capsys, "a.pth", *SMALL, code=0)
    assert f"a.pth: {len(state)} tensors of small, none left over" in out
    assert ("total_ops" in out) == (kind == "counted by thop")
    ours = vitnas.load("net").state_dict()
    torch.testing.assert_close(ours["head.classifier.bias"], state["head.bias"], atol=1e-3, rtol=0)


def test_old_files_of_torch_and_safetensors(state: State) -> None:
    torch.save(state, "a.pth", _use_new_zipfile_serialization=False)
    save_file(state, "b.any")
    for file in ("a.pth", "b.any"):
        convert(file, "deepvit", f"of_{file}", model="small.yaml")
    first, second = (vitnas.load(f"of_{file}").state_dict() for file in ("a.pth", "b.any"))
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_the_folder_and_its_card(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model": state, "model_ema": state}, "a.pth")
    out = says(capsys, "a.pth", *SMALL, code=0)
    assert out.endswith("net: load it with vitnas.load('net')\n")
    assert sorted(path.name for path in Path("net").iterdir()) == FILES
    card = Path("net/README.md").read_text()
    for part in (
        "# net\n\n`2x mhsa 24 h12 | re 1`",
        "| input | 3 x 32 x 32, floats |",
        "| output | 10 class scores",
        "DeepViT's code (zhoudaquan/dvit_repo): `a.pth`, under 'model'",
        sha256(Path("a.pth").read_bytes()).hexdigest(),
        f"All of its {len(state)} tensors are in the network",
        "those under 'model'; the file has 'model_ema' too",
        "vitnas.load('net')",
    ):
        assert part in card, part
    assert "None" not in card
    config = vitnas.load_config("net/config.yaml")
    assert (config.num_classes, config.img_size) == (10, 32)


def test_the_card_says_what_was_set_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    code = filled(Bvit(24, 2, 12, 96, img_size=64, classes=2))
    torch.save({"state_dict": {f"model.{n}": v for n, v in code.state_dict().items()}}, "a.ckpt")
    stem = {"kind": "bvit", "stride": 32}
    Path("broad.yaml").write_text(yaml.safe_dump({**BROAD, "stem": stem, "img_size": 64}))
    out = says(capsys, "a.ckpt", "--from", "bvit", "--model", "broad.yaml", "--to", "net", code=0)
    card = Path("net/README.md").read_text()
    for option in ("stem.kind: bvit", "qkv_bias: false", "norm_eps: 1.0e-5", "broad.gamma: 0.4"):
        assert f"- `{option}`" in card
        assert option.replace(": ", " ") in out
    assert "rows 5 to 16 of pos_embedding are left out" in card
    assert "rows 5 to 16 of pos_embedding are left out" in out


def test_batch_norms_counter_may_be_missing(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "blocks.1.attn.var_norm.num_batches_tracked"
    torch.save({n: v for n, v in state.items() if n != name}, "a.pth")
    out = says(capsys, "a.pth", *SMALL, code=0)
    assert (
        "stages.0.blocks.1.mixer.reattention.norm.num_batches_tracked is zero: it is not in" in out
    )


# What does not fit


def changed(state: State, *names: str, **changes: Tensor) -> State:
    return {n: v for n, v in state.items() if n not in names} | changes


MISFITS: dict[str, tuple[Callable[[State], State], str]] = {
    "one missing": (
        lambda s: changed(s, "norm.weight"),
        "deepvit weights of small: 1 missing (norm.weight)",
    ),
    "one more": (
        lambda s: changed(s, dist_token=torch.zeros(1, 1, 24)),
        "of small: 1 unexpected (dist_token)",
    ),
    "transposed": (
        lambda s: s | {"blocks.0.mlp.fc1.weight": s["blocks.0.mlp.fc1.weight"].T.contiguous()},
        "1 of another shape or kind (blocks.0.mlp.fc1.weight is [24, 96] for [96, 24])",
    ),
    "shallower": (
        lambda s: {n: v for n, v in s.items() if "blocks.0" not in n},
        "12 missing (blocks.0.norm1.weight, blocks.0.norm1.bias, blocks.0.attn.proj.weight, "
        "blocks.0.attn.proj.bias, blocks.0.attn.qkv.weight, ...)",
    ),
    "no square of patches": (
        lambda s: s | {"pos_embed": torch.zeros(1, 7, 24)},
        "(pos_embed is [1, 7, 24] for [1, 197, 24])",
    ),
    "no classes": (
        lambda s: changed(s, "head.weight", "head.bias"),
        "2 missing (head.weight, head.bias)",
    ),
}


@pytest.mark.parametrize("kind", sorted(MISFITS))
def test_weights_of_another_network(
    kind: str, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    change, expected = MISFITS[kind]
    torch.save(change(state), "a.pth")
    line = complaint(capsys, "a.pth", *SMALL)
    assert line.startswith("a.pth: these are not deepvit weights of small: ")
    assert expected in line
    assert "no known network" not in line


def test_the_likely_layout_and_model_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(Deepvit(384, 16, reattention=16, img_size=224).state_dict(), "a.pth")
    line = complaint(capsys, "a.pth", "--from", "bvit", "--to", "net")
    assert line.endswith("; they fit --from deepvit --model deepvit_16b")
    assert "missing (pos_embedding, " in line.replace("cls_token, ", "")
    assert "unexpected (" in line
    line = complaint(capsys, "a.pth", "--from", "deepvit", "--model", "deepvit_24b", "--to", "net")
    assert "deepvit_24b: 144 missing (blocks.16.norm1.weight, " in line
    assert line.endswith("; they fit --from deepvit --model deepvit_16b")


def test_weights_like_nothing_here(capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(torch.nn.Linear(3, 3).state_dict(), "a.pth")
    line = complaint(capsys, "a.pth", "--from", "caformer", "--to", "net")
    assert line.endswith("2 unexpected (weight, bias); no known network has similar weights")


def test_a_size_of_images_that_is_not_the_checkpoints(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(state, "a.pth")
    line = complaint(capsys, "a.pth", *SMALL, "--img-size", "64")
    assert line == "--img-size = 64: these weights are for images of 32x32 (nearest: 32)"


# What is no checkpoint


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


@pytest.mark.parametrize("kind", sorted(NO_CHECKPOINTS))
def test_no_checkpoint(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, expected = NO_CHECKPOINTS[kind]
    make(Path("a.pth"))
    line = complaint(capsys, "a.pth", "--from", "sret", "--to", "net")
    assert line.startswith("a.pth: ")
    assert expected in line
    assert len(line) < 200


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from", "sert"], "--from = 'sert': must be one of sret, deepvit, .*nearest: sret"),
        (["--model", "deepvit_m"], "--model = 'deepvit_m': neither a model of the zoo nor a model"),
        (["--model", "sret_tt"], r"--model = 'sret_tt': .*\(nearest: sret_t\)"),
        (["--model", "no.yaml"], "no.yaml: no such file"),
        (["--to", "full"], "full: is not empty; give a new or an empty folder"),
        (["--to", "small.yaml"], "small.yaml: is a file; give a new or an empty folder"),
    ],
)
def test_options_are_checked_before_anything_is_read(
    options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full/mine").write_text("mine")
    given = {"--from": "deepvit", "--to": "net"} | {options[0]: options[1]}
    pairs = [part for pair in given.items() for part in pair]
    line = complaint(capsys, "nowhere.pth", *pairs)
    assert "nowhere.pth" not in line
    assert re.search(expected, line), line


def test_a_full_disk_leaves_nothing(
    state: State, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    torch.save(state, "a.pth")
    monkeypatch.setattr("vitnas.exported.convert.write_bytes", full_disk)
    assert complaint(capsys, "a.pth", *SMALL) == "net: cannot be written: no space left on device"


def test_a_name_in_another_code_s_capitals_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match=r"--model = 'SReT_T': .* \(nearest: sret_t\)"):
        convert(tmp_path / "not_read.pth", "sret", tmp_path / "out", model="SReT_T")
