"""A checkpoint gives back what it took, tied weights and step counts included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from vitnas.config.recipe import Optimizer, Recipe
from vitnas.errors import RunError
from vitnas.training import checkpoint
from vitnas.training.optim import make_optimizer


def trained(kind: Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A network with tied layers and a batch norm, three steps on."""
    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.BatchNorm1d(4), layer)
    optimizer = make_optimizer(model, 0.1, 0.05, kind)
    for step in range(3):
        step_on(model, optimizer, step)
    return model, optimizer


def step_on(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(seed))
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize("kind", ["adamw", "lamb", "sgd", "muon"])
def test_what_goes_on_is_what_would_have(kind: Optimizer, tmp_path: Path) -> None:
    model, optimizer = trained(kind)
    log = [{"epoch": 1, "loss": 0.1 + 0.2}]
    checkpoint.take({"seed": 1}, log, {"model": model}, optimizer).save(tmp_path)
    saved = checkpoint.read(tmp_path, {"seed": 1})
    assert saved is not None
    assert (saved.identity, saved.log) == ({"seed": 1}, log)
    assert not [name for name in saved.tensors if name.startswith("model/2")]  # tied to the first
    layer = nn.Linear(4, 4)
    other = nn.Sequential(layer, nn.BatchNorm1d(4), layer)
    optimizer2 = make_optimizer(other, 0.1, 0.05, kind)
    saved.restore("model", other)
    saved.restore_optimizer(optimizer2)
    for network, steps in ((model, optimizer), (other, optimizer2)):
        step_on(network, steps, 9)
    assert other[0].weight is other[2].weight
    for one, two in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(one, two)


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert checkpoint.read(tmp_path, {}) is None
    assert checkpoint.read(tmp_path / "gone", {}) is None


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    one = {"network": "a", "recipe": {"lr": 0.1, "distill": {"teacher": None}}}
    checkpoint.check_same(one, {**one}, tmp_path)
    for other, message in (
        ({**one, "network": "b"}, "network was 'a' and is 'b'"),
        ({**one, "recipe": {"lr": 0.2, "distill": {"teacher": None}}}, "recipe.lr was 0.1 and is"),
        (
            {**one, "recipe": {"lr": 0.1, "distill": {"teacher": "t"}}},
            "teacher was null and is 't'",
        ),
        ({**one, "seed": 1}, "seed was null and is 1"),
    ):
        with pytest.raises(RunError, match=message):
            checkpoint.check_same(one, other, tmp_path)


def test_a_field_that_an_older_vitnas_did_not_write_had_its_default(tmp_path: Path) -> None:
    now = {"recipe": Recipe().model_dump(mode="json")}
    older = {"recipe": {k: v for k, v in now["recipe"].items() if k != "cooldown_epochs"}}
    checkpoint.check_same(older, now, tmp_path)
    now["recipe"]["cooldown_epochs"] = 2.0
    with pytest.raises(RunError, match=r"cooldown_epochs was 0\.0 and is 2\.0"):
        checkpoint.check_same(older, now, tmp_path)


def test_images_that_score_must_stay_where_the_checkpoint_tells_them(tmp_path: Path) -> None:
    older, now = {"images": {"digest": "a"}}, {"images": {"digest": "a", "scoring": "b"}}
    checkpoint.check_same(older, now, tmp_path)
    with pytest.raises(RunError, match=r"images\.scoring was 'c' and is 'b'"):
        checkpoint.check_same({"images": {"digest": "a", "scoring": "c"}}, now, tmp_path)


def rewritten(folder: Path, key: str, value: object) -> None:
    """The checkpoint with other JSON, or with another tensor, and all the rest as it was."""
    path = folder / checkpoint.FILE_NAME
    with safe_open(path, framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if isinstance(value, torch.Tensor):
        tensors[key] = value
    else:
        metadata[key] = json.dumps(value)
    path.write_bytes(save(tensors, metadata))


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("log", [{"epoch": 1}] * 60, "its content does not match its checksum"),
        ("groups", [], "its content does not match its checksum"),
        ("model/0.bias", torch.full((4,), torch.nan), "does not match its checksum"),
        ("model/0.bias", torch.zeros(4, dtype=torch.float64), "does not match its checksum"),
        ("log", "x", "log = 'x': should be a list"),
        ("identity", [1], "identity"),
        ("identity", {"seed": 9}, "another training: seed was 9 and is 1"),
        ("sha256", 5, "sha256 = 5"),
    ],
)
def test_what_was_not_written_so_is_refused(
    key: str, value: object, problem: str, tmp_path: Path
) -> None:
    model, optimizer = trained("adamw")
    checkpoint.take({"seed": 1}, [{"epoch": 1}], {"model": model}, optimizer).save(tmp_path)
    assert checkpoint.read(tmp_path, {"seed": 1}) is not None
    rewritten(tmp_path, key, value)
    with pytest.raises(RunError, match=problem):
        checkpoint.read(tmp_path, {"seed": 1})
