"""Every network of the zoo gives the same scores as model.pt2 and model.onnx.

Each is built at the smallest image size that it can have, and with two blocks a stage: more blocks
are the same blocks again. What travels is the network as it is built, so the sizes are no others.
One network of each paper is in the slow run, where one process checks them all; the others are in
the nightly one.
"""

from __future__ import annotations

import pytest

from tests.exported.source.parity import Compared, program_distances
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn.zoo import zoo_config, zoo_names

SLOW = ("sret_t", "bvit_5m", "deepvit_s", "cskaformer_s18")
NETWORKS = [
    pytest.param(SLOW, id="one of each paper", marks=pytest.mark.slow),
    *(
        pytest.param((name,), id=name, marks=pytest.mark.nightly)
        for name in zoo_names()
        if name not in SLOW
    ),
]


def small(name: str) -> ModelConfig:
    """The network with at most two blocks a stage, at the smallest image size."""
    config = zoo_config(name)
    stages = config.to_tree()["stages"]
    short = [{**stage, "depth": min(2, stage.get("depth", 1))} for stage in stages]
    changes = {"stages": short, "groups": config.to_tree().get("groups")}
    if changes["groups"] is None:
        del changes["groups"]
    if config.reattention_blocks:
        every = config.reattention_blocks == sum(stage.depth for stage in config.stages)
        changes["reattention_blocks"] = 2 if every else 1
    for size in range(32, 513, 32):
        try:
            return zoo_config(name, img_size=size, **changes)
        except ConfigError:
            continue
    raise AssertionError(name)


@pytest.mark.parametrize("names", NETWORKS)
def test_programs(names: tuple[str, ...], compared: Compared) -> None:
    for name, found in zip(names, program_distances(list(map(small, names))), strict=True):
        compared(found)
        assert found["model.pt2"] < 1e-5, name  # the same operations; an export allows more
