"""model.py computes what the network computes, and is formatted as it is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.exported.source.parity import Compared, distance, module_of, source_of
from tests.nn.networks import hierarchy
from tests.strategies import random_config
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space, shipped_spaces
from vitnas.config.trials import RandomTrial, Refused
from vitnas.exported.source.expressed import unexpressed
from vitnas.nn.zoo import zoo_config, zoo_names

CLOSE = 1e-5
SMALL = ("digits", "hybrid_fashion", "hybrid_cifar", "papers_32", "images_64")


def draws(space: SearchSpace, number: int) -> list[ModelConfig]:
    found: list[ModelConfig] = []
    seed = 0
    while len(found) < number:
        seed += 1
        try:
            found.append(space.suggest(RandomTrial(seed)))
        except Refused:
            continue
    return found


@pytest.mark.parametrize("seed", [*range(25), 35, 44, 71, 86])
def test_random_networks_give_the_same_scores(seed: int) -> None:
    assert distance(random_config(seed)) < CLOSE


def whole(*stages: dict[str, Any], **fields: Any) -> ModelConfig:
    tree = {"img_size": 32, "num_classes": 7, "stem": {"stride": 4}, "stages": stages}
    return validate(ModelConfig, {**tree, **fields})


CONVOLVED = {"kernel_qkv": 3, "stride_kv": 2}
MIXED: dict[str, Any] = {"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 2}
NEWER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ska in windows": ({"token_mixer": "ska", "windows": 2}, {}),
    "ska in windows, collected": ({"token_mixer": "ska", "windows": 4}, {"broad": {"gamma": 0.4}}),
    "ska in windows, its query no projection": (
        {"token_mixer": "ska", "windows": 2, "q_proj": False, "kernel_qkv": 3},
        {},
    ),
    "cska in windows": ({"token_mixer": "cska", "windows": 2, "key_kernel": 5}, {}),
    "mhsa, fewer keys": (CONVOLVED, {"qkv_bias": False}),
    "mhsa, fewer keys and a class token": (CONVOLVED, {"class_token": True}),
    "mhsa, fewer keys, a masked diagonal": (CONVOLVED | {"mask_diagonal": True}, {}),
    "mhsa, convolved, in groups and passes": (
        {"kernel_qkv": 5, "groups": (4, 1), "nll_ratio": 1.0},
        {"norm_eps": 1e-5},
    ),
    "mhsa, convolved and collected": ({"kernel_qkv": 1}, {"broad": {"gamma": 0.4}}),
    "a map used again, fewer keys": (
        CONVOLVED | {"depth": 3},
        {"reattention_blocks": 1, "reattention": {"source": "shared"}},
    ),
    "a stage that is passed as a whole, without layers": (
        {"depth": 2, "groups": (1, 1), "loop": "external"},
        {},
    ),
    "the same, with statistics of each pass": (
        {"depth": 2, "groups": (1, 1), "loop": "external"},
        {"norm": "batchnorm"},
    ),
    "ska, fewer keys": (CONVOLVED | {"token_mixer": "ska"}, {}),
    "ska, fewer keys, passes": (CONVOLVED | {"token_mixer": "ska", "passes": 3}, {}),
    "cska, fewer keys and a class token": (
        CONVOLVED | {"token_mixer": "cska"},
        {"class_token": True},
    ),
    "cska, fewer keys, another width": (
        {"token_mixer": "cska", "kernel_qkv": 3, "stride_kv": 3, "attn_dim": 24},
        {},
    ),
}


@pytest.mark.parametrize(("stage", "network"), NEWER.values(), ids=NEWER)
def test_windows_and_convolutions_give_the_same_scores(
    stage: dict[str, Any], network: dict[str, Any]
) -> None:
    assert distance(whole(MIXED | stage, **network)) < CLOSE


@pytest.mark.parametrize("nll_ratio", [0.0, 1.0])
@pytest.mark.parametrize("norm", ["layernorm", "batchnorm"])
def test_a_stage_that_is_passed_as_a_whole_before_one_with_a_shared_map(
    norm: str, nll_ratio: float
) -> None:
    looped = MIXED | {"depth": 2, "groups": (1, 1), "loop": "external", "nll_ratio": nll_ratio}
    shared = {"reattention_blocks": 1, "reattention": {"source": "shared"}}
    config = whole(looped, MIXED | {"depth": 2}, norm=norm, **shared)
    assert distance(config) < CLOSE
    assert "class LoopedStage" in source_of(config)


@pytest.mark.parametrize(
    ("stage", "most"),
    [({"token_mixer": "ska", "windows": 2}, 240), ({"token_mixer": "mhsa", **CONVOLVED}, 255)],
)
def test_a_network_with_windows_or_convolutions_is_short(stage: dict[str, Any], most: int) -> None:
    config = whole({"token_mixer": "dwconv", "embed_dim": 16}, MIXED | {"depth": 2} | stage)
    assert source_of(config).count("\n") < most


def method(source: str, name: str) -> str:
    """The head of a class's `forward`."""
    return source.split(f"class {name}(")[1].split("def forward(")[1].split("\n")[0]


def test_only_what_is_passed_several_times_knows_the_pass() -> None:
    looped = {"groups": (4, 1), "nll_ratio": 1.0}
    static = {"token_mixer": "ska", "passes": 2}
    conv = {"token_mixer": "mbconv", "embed_dim": 16}
    source = source_of(whole(conv, MIXED | looped, MIXED | static, norm="batchnorm"))
    assert method(source, "InvertedResidual") == "self, x: Tensor) -> Tensor:"
    assert "step: int = 0" in method(source, "GroupAttention")
    groups = {"groups": (4,)}
    source = source_of(whole(MIXED | groups, MIXED | static))
    assert "step" not in method(source, "StaticKeyAttention")
    assert "groups = 4\n" in source
    assert "self.block(x)" in source


def test_what_torch_has_is_not_written_again() -> None:
    skip = {"token_mixer": "skip", "embed_dim": 16, "depth": 2}
    source = source_of(whole(MIXED, skip))
    assert "stage(downsample=Downsample(16, 16))" in source
    assert "class Skip" not in source
    looped = MIXED | {"token_mixer": "identity", "passes": 2}
    assert "class Identity" not in source_of(whole(looped))
    told = source_of(whole(looped, MIXED | {"groups": (4, 1)}))  # which pass it is
    assert "class Identity" in told


def test_words_in_it_hold() -> None:
    """Layers after passes that are none, collected blocks, norms, what the file does not have."""
    looped = MIXED | {"passes": 2}
    source = source_of(
        whole(looped | {"nll_ratio": 1.0}, looped, broad={"gamma": 0.4}, drop_path_rate=0.1)
    )
    assert (
        '"""Several passes through one block, each followed by its own layer or none."""' in source
    )
    assert "drop_path_rate" not in source
    assert "values of both blocks." in source
    source = source_of(whole(MIXED | {"depth": 2}, MIXED, broad={"gamma": 0.4, "layers": "last:1"}))
    assert "value of block 3 of 3." in source
    assert "scale=" not in source  # torch's own
    mixed = whole({"token_mixer": "dwconv", "embed_dim": 16, "norm": "batchnorm"}, MIXED)
    assert "Layer norm and token mixer, then layer norm and MLP" in source_of(mixed)
    assert "type: ignore" not in source


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_networks_of_a_space_give_the_same_scores(name: str, compared: Compared) -> None:
    for config in draws(load_space(shipped_spaces()[name]), 4):
        found = distance(config)
        compared({"model.py": found})
        assert found < CLOSE


@pytest.mark.nightly
@pytest.mark.parametrize("name", shipped_spaces())
def test_fifty_draws_of_each_space(name: str, compared: Compared) -> None:
    different = {one.key: one for one in draws(load_space(shipped_spaces()[name]), 50)}
    configs = [one for one in different.values() if not unexpressed(one)]
    distances = [distance(config) for config in configs]
    for found in distances:
        compared({"model.py": found})
    assert max(distances) < CLOSE


@pytest.mark.nightly
@pytest.mark.parametrize("name", zoo_names())
def test_the_papers_networks(name: str, compared: Compared) -> None:
    found = distance(zoo_config(name))
    compared({"model.py": found})
    assert found < CLOSE


@pytest.mark.slow
def test_it_is_formatted_and_has_no_long_line(tmp_path: Path) -> None:
    """By ruff's own defaults, as somebody else runs it."""
    configs = [random_config(seed) for seed in range(40)]
    configs += [zoo_config(name) for name in zoo_names()]
    for index, config in enumerate(configs):
        (tmp_path / f"m{index}.py").write_text(source_of(config))
    for command in (["format", "--check"], ["check", "--extend-select=F,E,W,I,N,UP,SIM,RET"]):
        order = [sys.executable, "-m", "ruff", *command, "--isolated", "--ignore=N812", "."]
        if "format" in command:
            order.remove("--ignore=N812")
        done = subprocess.run(order, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_its_types_hold(tmp_path: Path) -> None:
    """By mypy's own defaults."""
    spaces = [load_space(name) for name in ("papers_32", "papers_32_vit", "hybrid_fashion")]
    configs = [config for space in spaces for config in draws(space, 20)]
    configs += [random_config(seed) for seed in range(20)]
    for index, config in enumerate(configs):
        (tmp_path / f"m{index}.py").write_text(source_of(config))
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    order = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "."]
    done = subprocess.run(order, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["deepvit_s", "bvit_5m", "skaformer_s18"])
def test_it_imports_torch_alone_and_is_short(name: str) -> None:
    source = source_of(zoo_config(name))
    assert source.count("\n") < 290
    imported = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert {line.split()[1].split(".")[0] for line in imported} <= {
        *("__future__", "collections", "hashlib", "json", "math", "sys", "pathlib", "torch")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [("digits", 240), ("images_64", 285), ("fashion_32", 300), ("hybrid_fashion", 275)],
)
def test_networks_of_a_space_are_short(name: str, most: int) -> None:
    configs = draws(load_space(shipped_spaces()[name]), 10)
    assert max(source_of(config).count("\n") for config in configs) < most


def test_networks_of_the_zoo_are_expressed() -> None:
    assert [unexpressed(zoo_config(name)) for name in zoo_names()] == [None] * len(zoo_names())


def test_a_permutation_of_another_block_would_be_seen() -> None:
    config = hierarchy()
    source = source_of(config)
    assert distance(config, source) < CLOSE
    other = source.replace("block * 1009", "block * 1008")
    assert other != source
    assert distance(config, other) > 10 * CLOSE


def test_batches_of_any_size_and_images_of_no_other() -> None:
    network = module_of(source_of(hierarchy())).Network().eval()
    assert network(torch.zeros(5, 3, 32, 32)).shape == (5, 7)
