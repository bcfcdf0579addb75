"""What one image shows of a network, and how much of it fits."""

from __future__ import annotations

import pytest
import timm
import torch

from tests.diagnose.networks import CONV, MHSA, hooks_of, layer, network, pictures
from vitnas.diagnose import survey as module
from vitnas.diagnose.survey import Survey, comparable, survey
from vitnas.errors import VitnasError


def test_layers_know_their_tokens_grid_and_heads() -> None:
    model = network(CONV, MHSA | {"depth": 2}, stem={"stride": 1})
    first, second, third = survey(model, pictures(1)).layers
    assert (first.tokens, first.grid, first.heads, first.last) == (64, (8, 8), 0, True)
    assert (second.tokens, second.grid, second.heads, second.last) == (16, (4, 4), 2, False)
    assert third.last
    assert first.absent == "dwconv has no attention map"
    assert third.facts()["map"] is True
    assert not hooks_of(model)


def test_class_tokens_are_no_part_of_the_grid() -> None:
    found = survey(network(MHSA, class_token=True), pictures(1)).layers[0]
    assert (found.tokens, found.prefix, found.grid) == (17, 1, (4, 4))


def test_timms_prefix_tokens_are_known() -> None:
    deit = timm.create_model("deit_tiny_distilled_patch16_224", img_size=32)
    found = survey(deit, pictures(1, 3, 32)).layers[0]
    assert (found.tokens, found.prefix, found.grid) == (6, 2, (2, 2))


def test_class_attention_is_not_taken_for_a_map() -> None:
    """CaiT's class token comes after the blocks, so that these have none."""
    cait = timm.create_model("cait_xxs24_224", img_size=32, depth=2)
    found = survey(cait, pictures(1, 3, 32))
    assert [one.prefix for one in found.layers] == [0, 0]
    assert len(found.with_maps) == 2


def test_without_maps_nothing_is_unfused() -> None:
    model = network(MHSA)
    assert survey(model, pictures(1), maps=False).layers[0].heads == 0


def test_too_large_a_map_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_A_MAP", 2 * 16**2 - 1)
    model = network(MHSA)
    with pytest.raises(VitnasError, match="stage 1, block 1: a map of 2 heads and 16 tokens"):
        survey(model, pictures(1))
    assert not hooks_of(model)
    survey(model, pictures(1), maps=False)


def test_large_maps_are_seen_fewer_at_a_time_and_of_fewer_images() -> None:
    large = [layer(index, tokens=3136, heads=3) for index in range(2)]
    found = Survey(torch.nn.Identity(), (), tuple(large))
    assert found.map_batch == 1
    assert found.most_map_images == 291
    small = Survey(torch.nn.Identity(), (), (layer(),))
    assert small.map_batch == 32


def test_only_maps_of_one_stage_and_size_are_compared() -> None:
    layers = [layer(0), layer(1), layer(2, stage=2), layer(3, stage=2, heads=4)]
    assert [[one.index for one in group] for group in comparable(layers)] == [[0, 1], [2], [3]]
