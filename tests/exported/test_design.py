"""A model file and a graft.yaml: both are read, built, sized and written by the same names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from vitnas.config.baseline import Baseline
from vitnas.config.design import Design
from vitnas.config.files import validate, write_text
from vitnas.config.graft_file import GraftFile
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError, MemoryLimitError
from vitnas.exported.design import (
    brought_to,
    build_design,
    design_text,
    file_of,
    line_of,
    network_of,
    read_design,
    settled_design,
    size_of_design,
)
from vitnas.nn.weights import weights_bytes

STAGE = {"token_mixer": "ska", "depth": 1, "embed_dim": 16, "num_heads": 2}
OURS = validate(ModelConfig, {"img_size": 16, "num_classes": 5, "stages": [STAGE]})
OPTIONS = {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3, "depth": 2}
GRAFT = validate(
    GraftFile,
    {
        "model": "vit_tiny_patch16_224",
        "options": {**OPTIONS, "num_classes": 5, "in_chans": 3},
        "grafts": [{"mixer": "ska"}],
    },
)


SIZES = {"img_size": 16, "in_chans": 3, "num_classes": 5}
PLAIN = validate(GraftFile, {"model": "test_resnet", "options": SIZES, "grafts": []})
VGG = Baseline(family="vgg", width=4, image_hw=(16, 16), in_chans=3, num_classes=5)
VIT = Baseline(family="vit", width=4, image_hw=(16, 16), in_chans=3, num_classes=5)


DESIGNS: dict[str, Design] = {
    "model file": OURS,
    "graft": GRAFT,
    "timm": PLAIN,
    "vgg": VGG,
    "vit": VIT,
}


@pytest.fixture(params=list(DESIGNS.values()), ids=list(DESIGNS))
def design(request: pytest.FixtureRequest) -> Design:
    found: Design = request.param
    return found


def test_it_comes_back_from_its_folder(design: Design, tmp_path: Path) -> None:
    write_text(tmp_path / file_of(design), design_text(design))
    assert read_design(tmp_path) == design
    assert settled_design(design) == design


def test_its_size_is_that_of_the_network(design: Design) -> None:
    model: Any = build_design(design)
    assert size_of_design(design).num_params == sum(p.numel() for p in model.parameters())
    assert size_of_design(design).flops > 10_000
    assert (model.image_hw, model.in_chans) == (design.image_hw, design.in_chans)
    assert any(word in line_of(design) for word in ("baseline v", "ska", "test_resnet"))


def test_its_weights_come_back_and_go_to_another_size(design: Design) -> None:
    model = build_design(design).eval()
    again = network_of(design, weights_bytes(model))
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(model(images), again(images))
    if isinstance(design, Baseline):  # the sizes of its parts follow from the image's
        with pytest.raises(ConfigError, match="16x16 px do not fit 32x32 px"):
            brought_to(again, design, (32, 32))
        return
    larger = brought_to(again, design, (32, 32))
    assert larger(torch.randn(1, 3, 32, 32)).shape == (1, 5)


def test_a_baseline_of_convolutions_goes_to_another_size() -> None:
    small = VGG.changed(family="dwcnn")
    larger = brought_to(build_design(small), small, (20, 20))
    assert larger(torch.randn(1, 3, 20, 20)).shape == (1, 5)


def test_a_baseline_too_large_for_the_memory_is_one_line(tmp_path: Path) -> None:
    write_text(tmp_path / "baseline.yaml", design_text(VGG.changed(width=1_000_000)))
    with pytest.raises(MemoryLimitError, match=r"the weights of vgg-1000000 take .* smaller width"):
        build_design(read_design(tmp_path))


def test_a_family_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"family = 'vg': no such family.*nearest: vgg"):
        build_design(VGG.changed(family="vg"))


def test_counting_and_loading_draw_nothing() -> None:
    state = torch.get_rng_state()
    size_of_design(GRAFT.changed(num_classes=7))
    network_of(GRAFT, weights_bytes(build_design(GRAFT)))
    torch.set_rng_state(state)
    size_of_design(GRAFT.changed(num_classes=8))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.slow
def test_the_page_has_the_sizes_of_timms_networks() -> None:
    """The FLOPs that docs/training.md names, of networks without grafts."""
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    passage = page.split("Some that are small enough")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)`\s([\d.]+)\sM", passage)
    assert len(named) >= 9
    for model, told in named:
        tree = {"model": model, "options": {"img_size": 64}, "grafts": []}
        flops = size_of_design(validate(GraftFile, tree)).flops / 1e6
        assert round(flops, 1 if "." in told else 0) == float(told), model
