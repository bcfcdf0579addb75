"""From similar blocks to a number of blocks with re-attention."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch

from tests.diagnose.networks import CONV, MHSA, SKA, network
from tests.diagnose.test_run import images
from vitnas.config.model import load_config
from vitnas.diagnose.run import diagnose, with_suggestion
from vitnas.diagnose.suggest import Suggestion, check_suggestion
from vitnas.errors import ConfigError, RunError, VitnasError


def uniform(*stages: dict[str, Any], **fields: Any) -> torch.nn.Module:
    """A network whose maps are all alike: without queries every map is uniform."""
    model = network(*stages, **fields)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "mixer.qkv" in name or "static_key" in name:
                parameter.zero_()
    return model


def suggested(model: torch.nn.Module, channels: int = 1, side: int = 8) -> Suggestion:
    found = with_suggestion(diagnose(model, images(4, channels, side), ["similarity"]))
    assert found.suggestion is not None
    return found.suggestion


def test_k_is_the_number_of_similar_blocks() -> None:
    found = suggested(uniform(MHSA | {"depth": 4}))
    assert (found.similar, found.blocks) == (4, 4)
    assert found.config is not None
    assert found.config.reattention_blocks == 4
    assert suggested(network(MHSA | {"depth": 4})).blocks < 4


def test_a_block_of_several_passes_counts_once() -> None:
    stage = MHSA | {"depth": 2, "groups": [1, 1]}
    assert suggested(uniform(stage)).similar == 2


@pytest.mark.slow
def test_k_is_at_most_what_the_network_can_have() -> None:
    """Groups and static keys take no re-attention, and a convolution has no map."""
    sliced = MHSA | {"depth": 2, "groups": [2]}
    stages = (CONV, sliced, MHSA | {"depth": 3})
    found = suggested(uniform(*stages, stem={"stride": 1}, permute="never"))
    assert (found.similar, found.blocks) == (5, 3)
    assert suggested(uniform(SKA | {"depth": 2})).blocks == 0


def test_a_network_of_timm_is_told_the_graft() -> None:
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2)
    found = suggested(model, 3, 64)
    assert found.config is None
    assert found.text("vit", "x").endswith(f"vitnas graft vit --reattention {found.blocks}")


@pytest.mark.parametrize(
    ("wanted", "blocks", "rule"),
    [("reatention", 0, "nearest: reattention"), ("reattention", 2, "2 blocks of this network")],
)
def test_what_cannot_be_suggested_is_one_line(wanted: str, blocks: int, rule: str) -> None:
    model = network(MHSA | {"depth": 3}, reattention_blocks=blocks)
    with pytest.raises(ConfigError, match=rule):
        check_suggestion(wanted, model)
    check_suggestion(None, model)


def test_nothing_is_suggested_without_maps() -> None:
    found = diagnose(network(CONV), images())
    with pytest.raises(VitnasError, match="--suggest: no block of this network has"):
        with_suggestion(found)


def test_the_file_is_a_model_file_and_nobody_elses(tmp_path: Any) -> None:
    found = with_suggestion(diagnose(uniform(MHSA | {"depth": 2}), images(), ["similarity"]))
    found.write(tmp_path / "out")
    file = tmp_path / "out" / "reattention.yaml"
    assert load_config(file).reattention_blocks == 2
    diagnose(network(MHSA), images(), ["features"]).write(tmp_path / "out")
    assert not file.exists()
    file.write_text("mine")
    with pytest.raises(RunError, match=r"reattention\.yaml: is not from a diagnosis"):
        found.write(tmp_path / "out")
