"""A training that is killed goes on: to the same bit, and only as the training that it was."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tests.training.test_train import plan, recipe
from vitnas.config.data import DataConfig
from vitnas.config.files import write_bytes
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import DistillConfig
from vitnas.errors import ConfigError, RunError
from vitnas.exported.folder import WEIGHTS_FILE
from vitnas.exported.grafts import graft_named
from vitnas.exported.read import load
from vitnas.training.data import load_data
from vitnas.training.distill import load_teacher
from vitnas.training.final import Entry
from vitnas.training.plan import Plan, make_plan
from vitnas.training.score import evaluate
from vitnas.training.train import train_network

PARTS: list[dict[str, Any]] = [
    {},
    {"mixup": 0.8, "cutmix": 1.0},
    {"random_erasing": 0.5},
    {"ema_decay": 0.9},
    {"optimizer": "lamb"},
    {"optimizer": "sgd"},
    {"batch_size": 128},  # two steps an epoch
]


class Killed(Exception):
    pass


def killed_after(number: int) -> Any:
    def listen(entry: Entry) -> None:
        if entry["epoch"] == number:
            raise Killed

    return listen


@pytest.mark.slow
@pytest.mark.parametrize("changes", PARTS, ids=lambda changes: "-".join(changes))
def test_a_killed_training_goes_on_to_the_same_weights(
    model_file: Path, lrc: ModelConfig, tmp_path: Path, changes: dict[str, Any]
) -> None:
    tree = lrc.model_dump() | {"norm": "batchnorm"}
    save_config(ModelConfig.model_validate(tree), model_file)
    wanted = plan(model_file, epochs=3, **changes)
    whole = train_network(wanted, tmp_path / "whole", device="cpu")
    with pytest.raises(Killed):
        train_network(wanted, tmp_path / "cut", device="cpu", listener=killed_after(2))
    assert not (tmp_path / "cut").exists()
    assert (tmp_path / "cut.training" / "log.jsonl").is_file()
    seen: list[Entry] = []
    cut = train_network(wanted, tmp_path / "cut", device="cpu", listener=seen.append)
    assert [entry["epoch"] for entry in seen] == [3]
    assert not (tmp_path / "cut.training").exists()
    name = "model.safetensors"
    assert (cut / name).read_bytes() == (whole / name).read_bytes()
    assert lines_of(whole) == lines_of(cut)


@pytest.mark.slow
def test_a_graft_is_trained_killed_resumed_and_read(tmp_path: Path) -> None:
    """To the same bit, with what only a graft has: hooks, static keys and re-attention's norms."""
    options = {"img_size": 8, "patch_size": 2, "embed_dim": 24, "num_heads": 3, "depth": 3}
    fields = {"mixer": "ska", "blocks": "0-1", "reattention_blocks": 1, "broad": {"gamma": 0.4}}
    graft_named("vit_tiny_patch16_224", fields, options, to=tmp_path / "graft")
    wanted = make_plan(tmp_path / "graft", recipe=recipe(epochs=3, ema_decay=0.9), seed=3)
    said: list[str] = []
    whole = train_network(wanted, tmp_path / "whole", device="cpu", notice=said.append)
    assert said[0].endswith("; a classifier of 10 classes replaces its 1,000")
    with pytest.raises(Killed):
        train_network(wanted, tmp_path / "cut", device="cpu", listener=killed_after(2))
    cut = train_network(wanted, tmp_path / "cut", device="cpu")
    assert (cut / WEIGHTS_FILE).read_bytes() == (whole / WEIGHTS_FILE).read_bytes()
    names = {path.name for path in cut.iterdir()}
    assert names >= {"graft.yaml", "config.json", "recipe.yaml", "log.jsonl", "README.md"}
    scored = json.loads((cut / "log.jsonl").read_text().splitlines()[-1])["top1"]
    assert evaluate(load(cut), load_data(DataConfig(), 8).val) == scored
    images = load_data(DataConfig(), 8)
    read: Any = load(cut)
    assert read.pretrained_cfg["mean"] == images.mean  # as `distill` and `diagnose` ask for it
    taught = load_teacher(DistillConfig(teacher=str(cut)), images, torch.device("cpu"))
    pixels = images.val.normalise(images.val.pixels[:4])
    assert torch.equal(taught(pixels), read(pixels))
    few = make_plan(cut, DataConfig(classes=4), recipe(epochs=1), teacher=str(cut))
    with pytest.raises(ConfigError, match="has 10 classes and digits has 4"):
        train_network(few, tmp_path / "few", device="cpu")
    assert not list(tmp_path.glob("few*"))
    further = make_plan(cut, recipe=recipe(epochs=1), img_size=16, init_from=cut)
    assert further.before is None
    train_network(further, tmp_path / "more", device="cpu")
    assert load(tmp_path / "more")(torch.zeros(1, 1, 16, 16)).shape == (1, 10)


def test_the_checkpoint_of_another_training_is_refused(
    model_file: Path, lrc: ModelConfig, tmp_path: Path
) -> None:
    first = plan(model_file, epochs=3)
    with pytest.raises(Killed):
        train_network(first, tmp_path / "out", device="cpu", listener=killed_after(1))
    before = (tmp_path / "out.training" / "checkpoint.safetensors").read_bytes()
    tree = lrc.model_dump()
    tree["stages"][0]["embed_dim"] = 24
    save_config(ModelConfig.model_validate(tree), tmp_path / "other.yaml")
    for other, message in (
        (
            plan(tmp_path / "other.yaml", epochs=3),
            r"network was '1x dwconv 16 .*and is '1x dwconv 24",
        ),
        (plan(model_file, epochs=4), r"recipe\.epochs was 3 and is 4"),
        (make_plan(model_file, recipe=recipe(epochs=3), seed=4), r"seed was 3 and is 4"),
    ):
        with pytest.raises(RunError, match=f"checkpoint of another training: {message}"):
            train_network(other, tmp_path / "out", device="cpu")
    assert (tmp_path / "out.training" / "checkpoint.safetensors").read_bytes() == before


def test_a_training_goes_on_only_with_the_images_that_it_began_with(
    tiny_config: ModelConfig, folder_root: Path, tmp_path: Path
) -> None:
    tree = tiny_config.model_dump() | {"num_classes": 3, "in_chans": 3}
    data = DataConfig(name="imagefolder", root=str(folder_root))
    wanted = Plan(ModelConfig.model_validate(tree), data, recipe(epochs=2, batch_size=8))
    with pytest.raises(Killed):
        train_network(wanted, tmp_path / "out", device="cpu", listener=killed_after(1))
    name = folder_root / "train" / "red" / "0.png"
    name.rename(name.with_name("9.png"))
    with pytest.raises(RunError, match=r"another training: images\.digest was '\w+' and is"):
        train_network(wanted, tmp_path / "out", device="cpu")
    name.with_name("9.png").rename(name)
    train_network(wanted, tmp_path / "out", device="cpu")


@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"\xff" * 64])
def test_a_damaged_checkpoint_is_one_line(model_file: Path, tmp_path: Path, content: bytes) -> None:
    write_bytes(tmp_path / "out.training" / "checkpoint.safetensors", content)
    with pytest.raises(RunError, match="damaged checkpoint"):
        train_network(plan(model_file), tmp_path / "out", device="cpu")


def _train_and_tell(wanted: Plan, to: Path, teller: Connection) -> None:
    """What a process does that will be killed: it tells of every step."""
    register_optimizer_step_post_hook(lambda *_: teller.send(None))
    train_network(wanted, to, device="cpu", track=["csv"])


@pytest.mark.nightly
def test_ten_kills_at_random_moments_change_no_bit(model_file: Path, tmp_path: Path) -> None:
    """SIGKILL after some steps and then at any moment: in a step, in scoring, in a checkpoint."""
    wanted = plan(model_file, epochs=12, mixup=0.8, ema_decay=0.9)  # of 8 steps
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train_network(wanted, whole, device="cpu")
    draw, context = random.Random(0), multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vitnas.training.train"])
    for _ in range(10):
        heard, teller = context.Pipe(duplex=False)
        process = context.Process(target=_train_and_tell, args=(wanted, cut, teller))
        process.start()
        for _ in range(draw.randint(1, 14)):
            assert heard.poll(300)
            heard.recv()
        time.sleep(draw.uniform(0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not cut.exists()
    assert 1 <= len(lines_of(tmp_path / "cut.training")) < 12
    train_network(wanted, cut, device="cpu", track=["csv"])
    assert lines_of(cut) == lines_of(whole)
    name = "model.safetensors"
    assert (cut / name).read_bytes() == (whole / name).read_bytes()
    table = (tmp_path / "cut.tracking" / "log.csv").read_text().splitlines()[1:]
    assert [int(row.split(",")[0]) for row in table] == list(range(1, 13))


def lines_of(folder: Path) -> list[Entry]:
    """The log without what a clock said."""
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [{**json.loads(line), "seconds": 0} for line in lines]
