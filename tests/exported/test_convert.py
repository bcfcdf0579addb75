"""`vitnas convert` writes a whole folder or, with one line, nothing."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest
import torch
import yaml
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
FILES = ["README.md", "config.json", "config.yaml", "model.py", "model.safetensors"]

State = dict[str, Tensor]


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


BARE = ("--formats", "none")
SMALL = ("--from", "deepvit", "--model", "small.yaml", "--to", "net")


def test_what_is_no_weight_is_left_out_and_named(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"model": {**state, "blocks.0.total_ops": torch.zeros(1)}, "epoch": 7}, "a.pth")
    out = says(capsys, "a.pth", *SMALL, *BARE, code=0)
    assert f"a.pth: {len(state)} tensors of small, none left over" in out
    assert "left out: blocks.0.total_ops (a FLOP counter's entry, no weight)" in out
    assert torch.equal(vitnas.load("net").state_dict()["head.classifier.bias"], state["head.bias"])


@pytest.mark.slow
def test_the_folder_and_its_card(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model": state, "model_ema": state}, "a.pth")
    out = says(capsys, "a.pth", *SMALL, code=0)
    assert out.endswith("net: load it with vitnas.load('net')\n")
    assert sorted(path.name for path in Path("net").iterdir()) == FILES
    card = Path("net/README.md").read_text()
    for part in (
        "# net\n\n`2x mhsa 24 h12 | class token | re 1`",
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
    chosen = ("--from", "bvit", "--model", "broad.yaml", "--to", "net", *BARE)
    out = says(capsys, "a.ckpt", *chosen, code=0)
    card = Path("net/README.md").read_text()
    for option in ("stem.kind: bvit", "qkv_bias: false", "norm_eps: 1.0e-5", "broad.gamma: 0.4"):
        assert f"- `{option}`" in card
        assert option.replace(": ", " ") in out
    assert "rows 5 to 16 of pos_embedding are left out" in card
    assert "rows 5 to 16 of pos_embedding are left out" in out


@pytest.mark.slow
def test_weights_of_another_network(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    """The user's own model file, which is like nothing in the zoo."""
    del (lacking := dict(state))["norm.weight"]
    torch.save(lacking, "a.pth")
    line = complaint(capsys, "a.pth", *SMALL)
    assert line == "a.pth: these are not deepvit weights of small: 1 missing (norm.weight)"


@pytest.mark.slow
def test_the_likely_layout_and_model_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(Deepvit(384, 16, reattention=16, img_size=224).state_dict(), "a.pth")
    line = complaint(capsys, "a.pth", "--from", "bvit", "--to", "net")
    assert line.endswith("; they fit --from deepvit --model deepvit_16b")
    assert "missing (pos_embedding, " in line.replace("cls_token, ", "")
    assert "unexpected (" in line
    line = complaint(capsys, "a.pth", "--from", "deepvit", "--model", "deepvit_24b", "--to", "net")
    assert "deepvit_24b: 144 missing (blocks.16.norm1.weight, " in line
    assert line.endswith("; they fit --from deepvit --model deepvit_16b")


@pytest.mark.slow
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


def test_what_is_no_checkpoint_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.pth").write_text("hello world")
    line = complaint(capsys, "a.pth", "--from", "sret", "--to", "net")
    assert line.startswith("a.pth: is damaged or not a checkpoint")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from", "sert"], "--from = 'sert': must be one of sret, deepvit, .*nearest: sret"),
        (
            ["--model", "deepvit_m"],
            "--model = 'deepvit_m': must be a model of the zoo or a model file",
        ),
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
    monkeypatch.setattr("vitnas.exported.write.write_bytes", full_disk)
    assert complaint(capsys, "a.pth", *SMALL) == "net: cannot be written: no space left on device"


def test_a_name_in_another_code_s_capitals_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(VitnasError, match=r"--model = 'SReT_T': .* \(nearest: sret_t\)"):
        convert(tmp_path / "not_read.pth", "sret", tmp_path / "out", model="SReT_T")
