"""The papers' networks have the sizes that a faithful build of them has."""

from __future__ import annotations

import pytest
import timm

from tests.published import BY_NAME, PUBLISHED, Published, sret
from vitnas.cost.closed_form import closed_form
from vitnas.cost.counter import count_operators, measure_cost

COUNTED = ["sret_t", "vit_16b", "deepvit_s", "bvit_5m", "caformer_s18", "cskaformer_s18"]


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name)
def test_size_by_formula(published: Published) -> None:
    cost = closed_form(published.config)
    assert cost.num_params / 1e6 == pytest.approx(published.params, rel=1e-3)
    assert cost.flops / 1e9 == pytest.approx(published.flops, rel=5e-3)


@pytest.mark.parametrize("name", COUNTED)
def test_size_of_the_built_network(name: str) -> None:
    published = BY_NAME[name]
    measured, formula = measure_cost(published.config), closed_form(published.config)
    assert (measured.flops, measured.num_params) == (formula.flops, formula.num_params)


def test_sret_t_to_the_last_parameter() -> None:
    """4.755979 M is exact, and slicing changes no parameter."""
    for name in ("sret_t", "sret_t_whole", "sret_t_8844"):
        assert closed_form(BY_NAME[name].config).num_params == 4_755_979


@pytest.mark.parametrize(
    ("ours", "theirs"), [("deit_tiny", "deit_tiny_patch16_224"), ("caformer_s18", "caformer_s18")]
)
def test_agrees_with_timm(ours: str, theirs: str) -> None:
    """Parameter for parameter and FLOP for FLOP, but for timm's last pooling: fvcore counts its
    `adaptive_avg_pool2d` and not our `mean`."""
    model = timm.create_model(theirs)
    counted = count_operators(model, (3, 224, 224))
    cost = closed_form(BY_NAME[ours].config)
    assert cost.num_params == sum(parameter.numel() for parameter in model.parameters())
    assert cost.flops == sum(counted.values()) - counted["adaptive_avg_pool2d"]


def test_the_papers_sret_b_cannot_have_71_million_parameters() -> None:
    """Table 12's own widths give 145.6 M."""
    tree = sret("[8,2][4,1][1,1]", (336, 672, 1344), 3.0, 2.0, 42)
    params = closed_form(Published("sret_b", tree, 0, 0).config).num_params
    assert params / 1e6 == pytest.approx(145.59, rel=1e-3)


def test_broad_attention_is_not_free() -> None:
    """BViT calls it free; pooled first it is N^2 C (L + 1), 8 % of BViT-5M."""
    with_broad, without = (closed_form(BY_NAME[n].config) for n in ("bvit_5m", "deit_tiny"))
    assert with_broad.num_params == without.num_params
    assert with_broad.flops - without.flops == 197**2 * 192 * (12 + 1)


def test_sliced_16_2_4_2_costs_more_than_8_8_4_4() -> None:
    """SReT's table prints 1.01 G for [16,2][4,2] and 1.03 G for [8,8][4,4]; 1/16 + 1/2 of the
    attention cannot be less than 1/8 + 1/8."""
    wider, narrower = (
        closed_form(BY_NAME[n].config).flops for n in ("sret_t_16242", "sret_t_8844")
    )
    assert wider > narrower
