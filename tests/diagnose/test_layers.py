"""Where features and maps can be seen."""

from __future__ import annotations

import pytest
import timm
from torch import nn

from tests.diagnose.networks import CONV, CSKA, MHSA, SKA, network, small_swin
from vitnas.diagnose.layers import find_places, grid_of, name_of
from vitnas.errors import VitnasError


def labels(model: nn.Module) -> list[str]:
    places = find_places(model)
    stages = len({place.stage for place in places})
    return [name_of(place, stages=stages)[1] for place in places]


def test_every_pass_of_a_recursive_block_is_a_layer() -> None:
    model = network(
        CONV, MHSA | {"depth": 2, "groups": [2, 1], "nll_ratio": 1.0}, stem={"stride": 1}
    )
    assert labels(model) == ["1.1", "2.1p1", "2.1p2", "2.2p1", "2.2p2"]
    places = find_places(model)
    assert places[1].tap is places[2].tap
    assert places[1].output is not places[2].output
    assert name_of(places[2], stages=2)[0] == "stage 2, block 1, pass 2"


def test_layers_of_an_external_loop_are_in_the_order_of_execution() -> None:
    stage = MHSA | {"depth": 2, "groups": [2, 1], "nll_ratio": 1.0, "loop": "external"}
    assert labels(network(CONV, stage, stem={"stride": 1})) == [
        *("1.1", "2.1p1", "2.2p1", "2.1p2", "2.2p2")
    ]


def test_one_stage_is_not_named() -> None:
    places = find_places(network(MHSA | {"depth": 2}))
    assert [name_of(place, stages=1) for place in places] == [("block 1", "1"), ("block 2", "2")]


def test_the_tap_is_after_reattention_where_there_is_one() -> None:
    model = network(MHSA | {"depth": 2}, reattention_blocks=1)
    plain, mixed = find_places(model)
    assert plain.attention is not None
    assert mixed.attention is not None
    assert plain.tap is plain.attention.attn_drop
    assert mixed.tap is mixed.attention.reattention
    assert (plain.mixer, mixed.mixer) == ("mhsa", "mhsa with re-attention")


def test_a_reused_map_is_a_layer_like_others() -> None:
    model = network(MHSA | {"depth": 3}, reattention_blocks=2, reattention={"source": "shared"})
    assert [place.mixer for place in find_places(model)] == [
        "mhsa",
        "mhsa with an earlier block's map",
        "mhsa with an earlier block's map",
    ]


@pytest.mark.parametrize("mixer", ["dwconv", "pool", "mlp", "identity"])
def test_mixers_without_a_map_say_so(mixer: str) -> None:
    place = find_places(network({"token_mixer": mixer, "embed_dim": 8}))[0]
    assert place.tap is None
    assert place.absent == f"{mixer} has no attention map"


@pytest.mark.parametrize("stage", [MHSA, SKA, CSKA])
def test_attention_mixers_have_one(stage: dict[str, object]) -> None:
    place = find_places(network(stage))[0]
    assert place.mixer == stage["token_mixer"]
    assert not place.absent


def test_broad_attention_is_the_last_layer_and_its_map_is_not_read() -> None:
    places = find_places(network(MHSA | {"depth": 2}, broad={"gamma": 0.4}))
    assert name_of(places[-1], stages=1) == ("broad attention", "broad")
    assert "all layers" in places[-1].absent


def test_timms_blocks_are_found() -> None:
    vit = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=3)
    assert labels(vit) == ["1", "2", "3"]
    swin = small_swin(32, 4)
    assert labels(swin) == ["1.1", "1.2", "2.1", "2.2"]
    assert {place.mixer for place in find_places(swin)} == {"WindowAttention"}


def test_a_network_without_blocks_is_refused() -> None:
    with pytest.raises(VitnasError, match="Sequential: has no list named 'blocks'"):
        find_places(nn.Sequential(nn.Linear(2, 2)))


@pytest.mark.parametrize(
    ("tokens", "image_hw", "grid"),
    [
        (49, (224, 224), (7, 7)),
        (6, (32, 48), (2, 3)),
        (6, (48, 32), (3, 2)),
        (50, (224, 224), None),
        (7, (224, 224), None),
    ],
)
def test_grids_have_the_shape_of_the_image(
    tokens: int, image_hw: tuple[int, int], grid: tuple[int, int] | None
) -> None:
    assert grid_of(tokens, image_hw) == grid
