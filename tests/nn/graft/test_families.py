"""Every family lists its attentions: names that lead to them, grids that hold all their tokens."""

from __future__ import annotations

import pytest
import timm
from timm.models.cait import ClassAttn
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from tests.nn.graft.networks import ALL, deit, images, swin
from vitnas.errors import ConfigError
from vitnas.nn.graft.families import FAMILIES, family_of


def test_every_family_has_a_small_network() -> None:
    assert {type(build()) for build in ALL.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", ALL)
def test_sites_are_all_attentions_in_the_order_in_which_they_run(name: str) -> None:
    model = ALL[name]()
    family = family_of(model)
    sites = family.sites(model)
    assert [site.name for site in sites] == [
        found for found, module in model.named_modules() if type(module) is family.attention
    ]
    for site in sites:
        assert model.get_submodule(site.name) is site.attention
    stages = [site.stage for site in sites]
    assert stages == sorted(stages)


@pytest.mark.parametrize("name", ALL)
def test_a_site_knows_how_many_tokens_its_attention_gets(name: str) -> None:
    model = ALL[name]()
    sites, seen = family_of(model).sites(model), dict[nn.Module, int]()

    def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen[module] = inputs[0].shape[1]  # the attentions of LVT run twice

    for site in sites:
        site.attention.register_forward_pre_hook(note)
    model(images())
    assert list(seen.values()) == [site.num_tokens for site in sites]


def test_prefixes_and_windows() -> None:
    first = family_of(model := deit()).sites(model)[0]
    assert (first.prefix, first.grid, first.stage_grid) == (2, (4, 4), (4, 4))
    first = family_of(model := swin()).sites(model)[0]
    assert (first.prefix, first.grid, first.stage_grid) == (0, (4, 4), (8, 8))


def test_class_attention_of_cait_is_no_site() -> None:
    model = ALL["cait"]()
    family = family_of(model)
    assert family.left is ClassAttn
    assert sum(isinstance(module, ClassAttn) for module in model.modules()) == 2
    assert not any(isinstance(site.attention, ClassAttn) for site in family.sites(model))


class Sub(VisionTransformer):
    """May compute anything."""


def test_other_classes_and_subclasses_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"model = 'Sub': .*possible classes are VisionTransf"):
        family_of(Sub(img_size=16, patch_size=4, embed_dim=24, depth=1, num_heads=3))
    with pytest.raises(ConfigError, match="model = 'ResNet'"):
        family_of(timm.create_model("resnet18"))
