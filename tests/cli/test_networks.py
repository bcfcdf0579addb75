"""`vitnas train` as a newcomer meets it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import vitnas
from vitnas.cli import main
from vitnas.config.model import ModelConfig, save_config

FAST = ("--epochs", "1", "--device", "cpu")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, tiny_config: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_config(tiny_config, "net.yaml")
    Path("short.yaml").write_text("epochs: 1\ntrain_fraction: 0.2\n")


def says(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    with pytest.raises(SystemExit) as ended:
        main(("train", *arguments))
    said = capsys.readouterr()
    assert ended.value.code == code, said.err
    return said.out, said.err


@pytest.mark.slow
def test_it_trains_and_the_folder_loads(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = says(capsys, "net.yaml", "--to", "out", "--recipe", "short.yaml", "--device", "cpu")
    first, second, *_ = out.splitlines()
    assert first.startswith("network on digits at 8x8 px: ")
    ends = "1 epoch of short.yaml; trains on 229 images, is scored on 287 held out of train"
    assert first.endswith(" FLOPs, " + ends)
    assert second.startswith("epoch 1/1  loss ")
    assert "out: load it with vitnas.load('out')" in out
    assert vitnas.load("out")(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


@pytest.mark.slow
def test_a_graft_has_the_mixers_fields(capsys: pytest.CaptureFixture[str]) -> None:
    size = ("--img-size", "32", "--patch-size", "16", "--blocks", "last:1", "--to", "grafted")
    of_mixer = ("--num-heads", "2", "--key-kernel", "5")
    of_map = ("--attn-act", "relu", "--mask-diagonal", "--temperature", "learnable")
    with pytest.raises(SystemExit) as ended:
        main(("graft", "vit_tiny_patch16_224", "--mixer", "cska", *size, *of_mixer, *of_map))
    assert not ended.value.code
    assert "blocks.11.attn  Attention -> cska, 5 tokens" in capsys.readouterr().out
    model: Any = vitnas.load("grafted")
    (config,) = model.grafts
    assert (config.num_heads, config.key_kernel, config.attn_act) == (2, 5, "relu")
    assert config.mask_diagonal
    assert config.temperature.kind == "learnable"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("net.yaml", "--to", "o", "--score-on", "val"), "val_split = 'val': digits has train and"),
        (("net.yaml", "--to", "o", "--recipe", "srett"), r"recipe = 'srett': no such recipe"),
        (("nett.yaml", "--to", "o"), "nett.yaml: no such file"),
        (("net.yaml", "--to", "o", "--data", "digts"), "--data = 'digts': is neither"),
        (("net.yaml", "--to", "net.yaml", *FAST), "net.yaml: is a file"),
        (("net.yaml", "--to", "o", "--device", "gpu"), "'gpu' is not a device"),
        (("net.yaml", "--to", "o", "--teacher", "resnet5O"), "distill.teacher = 'resnet5O'"),
        (("net.yaml", "--to", "o", "--init-from", "x"), "x: is no exported folder"),
        (("net.yaml", "--to", "o", "--track", "cvs"), "--track = 'cvs': must be one of csv, "),
        (("net.yaml", "--to", "o", "--recipe", "sret_distill", *FAST), "has 1000 classes"),
        (("deepvit_s", "--to", "o", "--recipe", "sret_mixed_depth"), "needs recursion"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    before = sorted(Path.cwd().rglob("*"))
    out, err = says(capsys, *arguments, code=2)
    assert not out
    assert err.count("\n") == 1
    assert message in err
    assert sorted(Path.cwd().rglob("*")) == before


@pytest.mark.slow
def test_a_killed_process_goes_on_with_the_same_command() -> None:
    """SIGKILL as soon as two epochs are in the log; the end is that of an undisturbed training."""
    command = [sys.executable, "-m", "vitnas", "train", "net.yaml", "--epochs", "4"]
    command += ["--device", "cpu", "--to"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*command, "cut"], env=environment, stdout=subprocess.DEVNULL)
    log, deadline = Path("cut.training/log.jsonl"), time.monotonic() + 120
    while not (log.is_file() and log.read_text().count("\n") >= 2):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not Path("cut").exists()
    for name in ("cut", "whole"):
        subprocess.run([*command, name], env=environment, check=True, capture_output=True)
    contents = [Path(name, "model.safetensors").read_bytes() for name in ("cut", "whole")]
    assert contents[0] == contents[1]
