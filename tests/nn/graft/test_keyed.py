"""Each window of SKA's Swin has a static key of its own, or a convolution of its own."""

from __future__ import annotations

import pytest
import torch

from tests.nn.graft.networks import images, ska_swin
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError
from vitnas.exported.design import brought_to, build_design, network_of
from vitnas.nn.graft import graft
from vitnas.nn.weights import weights_bytes


def test_each_window_has_a_key() -> None:
    model = ska_swin()
    graft(model, mixer="ska")
    shapes = [stage.blocks[0].attn.mixer.static_key.shape for stage in model.stages]
    assert shapes == [(2, 4 * 16, 8), (4, 16, 8)]


def test_a_window_reads_its_own_key() -> None:
    model = ska_swin()
    graft(model, mixer="ska")
    attention, x = model.stages[0].blocks[0].attn, torch.randn(1, 64, 16)
    before = attention(x)
    with torch.no_grad():
        attention.mixer.static_key[:, 16:32] += torch.randn(2, 16, 8)
    changed = (attention(x) != before).any(dim=2)[0].reshape(8, 8)
    assert changed[:4, 4:].all()
    assert changed.sum() == 16


def test_cstus_key_is_a_convolution_of_the_query_in_the_window() -> None:
    model = ska_swin()
    graft(model, mixer="cska")
    mixer = model.stages[0].blocks[0].attn.mixer
    assert mixer.key.weight.shape == (4 * 16, 8, 3, 3)
    query = torch.randn(4, 16, 16)
    key = mixer._key_of(query, (4, 4))
    weight = mixer.key.weight[16:32]  # of the second window
    picture = query[1:2].mT.unflatten(2, (4, 4))
    wanted = torch.conv2d(picture, weight, mixer.key.bias[16:32], padding=1, groups=2)
    torch.testing.assert_close(key[1:2], wanted.flatten(2).mT)


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_windows_and_their_places_are_kept(mixer: str) -> None:
    model = ska_swin()
    places = model.stages[0].blocks[1].attn.places
    graft(model, mixer=mixer)
    new = model.stages[0].blocks[1].attn
    assert new.places is places
    with torch.no_grad():
        before = model(images())
        places.table.copy_(torch.randn(7, 7))
    assert not torch.equal(model(images()), before)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"windows": 2}, "windows = 2: Swin has its own windows"),
        ({"attn_act": "star_relu"}, "attn_act = 'star_relu': is not 0 where Swin's mask"),
    ],
)
def test_what_the_windows_do_not_allow(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        graft(ska_swin(), mixer="ska", **fields)


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_larger_images_have_more_windows(mixer: str) -> None:
    options = {"embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4), "num_classes": 5}
    options |= {"head_dim": 8, "downscaling_factors": (2, 2), "img_size": 16}
    tree = {"model": "ska_small_swin", "options": options, "grafts": [{"mixer": mixer}]}
    design = GraftFile.model_validate(tree)
    network = network_of(design, weights_bytes(build_design(design)))
    larger = brought_to(network, design, (32, 32))
    assert larger(torch.zeros(1, 3, 32, 32)).shape == (1, 5)
    same = brought_to(network, design, (16, 16))
    torch.testing.assert_close(same(images()), network(images()))
