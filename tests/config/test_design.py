"""Whatever a network is built from tells the same facts by the same names."""

from __future__ import annotations

import pytest

from vitnas.config.baseline import Baseline
from vitnas.config.design import Design
from vitnas.config.files import validate
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig

SIZES = {"img_size": 16, "in_chans": 1, "num_classes": 5}
MODEL = {**SIZES, "stages": [{"token_mixer": "ska", "depth": 1, "embed_dim": 16, "num_heads": 2}]}
GRAFT = {"model": "vit_tiny_patch16_224", "options": SIZES, "grafts": [{"mixer": "ska"}]}
BASELINE = {"family": "vgg", "width": 4, "image_hw": 16, "in_chans": 1, "num_classes": 5}


@pytest.mark.parametrize(
    "design",
    [
        validate(ModelConfig, MODEL),
        validate(GraftFile, GRAFT),
        validate(Baseline, {**BASELINE, "image_hw": [16, 16]}),
    ],
    ids=["model file", "graft", "baseline"],
)
def test_each_kind_has_size_classes_name_and_tree(design: Design) -> None:
    facts = (design.image_hw, design.in_chans, design.num_classes)
    assert facts == ((16, 16), 1, 5)
    assert design.name
    assert len(design.key) == 12
    again: Design = validate(type(design), design.to_tree())
    assert (again, again.key) == (design, design.key)
