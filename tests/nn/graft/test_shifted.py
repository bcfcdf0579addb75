"""timm's ViT on shifted patches begins as a model file with the stem `shifted` does."""

from __future__ import annotations

import pytest
import torch

from tests.nn.graft.networks import images
from vitnas.config.model import ModelConfig
from vitnas.nn.graft import build_network
from vitnas.nn.graft.shifted import ShiftedPatches
from vitnas.nn.layers.stem import Stem


def test_it_is_the_stem_of_a_model_file() -> None:
    stage = {"token_mixer": "mhsa", "depth": 1, "embed_dim": 24, "num_heads": 3}
    stem = {"kind": "shifted", "stride": 4}
    tree = {"img_size": 16, "stem": stem, "norm_eps": 1e-5, "stages": [stage]}
    wanted, found = Stem(ModelConfig.model_validate(tree)), ShiftedPatches(16, 4, 3, 24)
    found.load_state_dict(wanted.state_dict())
    torch.testing.assert_close(found(images()), wanted(images()))


def test_a_patch_divides_the_image() -> None:
    with pytest.raises(ValueError, match=r"4x4 px do not cut .18, 18. px"):
        ShiftedPatches(18, 4, 3, 24)


def test_the_host_is_timms_vit() -> None:
    model = build_network("ska_small_vit", img_size=16, embed_dim=24, num_heads=3, depth=1)
    assert isinstance(model.patch_embed, ShiftedPatches)
    assert model(images()).shape == (2, 10)
