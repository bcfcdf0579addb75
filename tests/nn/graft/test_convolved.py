"""Static keys in SKA's CvT keep its convolutions."""

from __future__ import annotations

import pytest
import torch

from tests.nn.graft.networks import ska_cvt
from vitnas.config.graft_file import GraftFile
from vitnas.exported.design import brought_to, build_design, network_of
from vitnas.nn.graft import graft
from vitnas.nn.weights import weights_bytes


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_convolutions_of_query_and_value_are_kept(mixer: str) -> None:
    model = ska_cvt()
    old = model.stages[1].blocks[0].attn
    graft(model, mixer=mixer)
    new = model.stages[1].blocks[0].attn.mixer
    for name, index in (("query", 0), ("value", 2)):
        conv, norm = old.convs[index]
        assert new.convs[name].conv is conv
        found = new.convs[name].norm.norm
        assert found.weight is norm.weight
        assert found.running_var is norm.running_var


def test_the_scale_is_that_of_all_channels() -> None:
    model, plain = ska_cvt(), ska_cvt()
    graft(model, mixer="ska")
    graft(plain, mixer="ska", qk_scale=False)
    blocks = (network.stages[1].blocks[0].attn.mixer for network in (model, plain))
    assert [block.scale for block in blocks] == [24**-0.5, 1.0]


def test_a_key_is_as_long_as_the_values() -> None:
    model = ska_cvt()
    graft(model, mixer="ska")
    shapes = [stage.blocks[0].attn.mixer.static_key.shape for stage in model.stages]
    assert shapes == [(2, 4, 8), (3, 2, 8)]  # of 4x4 tokens, and of 2x2 and a class token


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_keys_are_resized_with_the_image(mixer: str) -> None:
    options = {"embed_dims": (16, 24), "depths": (1, 1), "num_heads": (2, 3), "num_classes": 5}
    tree = {"model": "ska_small_cvt", "options": options, "grafts": [{"mixer": mixer}]}
    design = GraftFile.model_validate(tree)
    network = network_of(design, weights_bytes(build_design(design)))
    larger = brought_to(network, design, (48, 48))
    assert larger(torch.zeros(1, 3, 48, 48)).shape == (1, 5)
