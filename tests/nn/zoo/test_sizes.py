"""The papers' networks have the sizes that a faithful build of them has.

`BUILT` was measured on builds made apart from this code. Parameters in millions, to 0.1 %; FLOPs in
G as fvcore counts them, to 0.5 %.
"""

from __future__ import annotations

import pytest
import timm
from torch import nn

from vitnas.cost.closed_form import closed_form
from vitnas.cost.counter import measure_cost
from vitnas.cost.operators import count_operators
from vitnas.nn.zoo import printed, zoo_config, zoo_names
from vitnas.nn.zoo.table import agrees

BUILT = {
    "sret_t": (4.755979, 1.122),
    "sret_star_t": (4.755979, 1.375),
    "sret_t_g8_8_4_4": (4.755979, 1.026),
    "sret_t_g16_2_4_2": (4.755979, 1.087),
    "sret_tl": (4.988024, 1.174),
    "sret_star_tl": (4.988024, 1.427),
    "sret_tl_g8_4_4_2": (4.988024, 1.110),
    "sret_s": (20.8997, 4.191),
    "sret_b": (145.59, None),
    "sret_b_table12": (144.72, None),
    "vit_16b": (24.4238, 5.195),
    "vit_32b": (48.0905, 10.332),
    "deepvit_16b": (24.4267, 5.300),
    "deepvit_24b": (36.2614, 7.920),
    "deepvit_32b": (48.0962, 10.541),
    "deepvit_s": (27.313, 6.382),
    "deepvit_l": (55.636, 12.523),
    "deepvit_l_420": (58.884, 13.190),
    "bvit_5m": (5.7174, 1.355),
    "bvit_22m": (22.0507, 4.802),
    "caformer_s18": (26.342, 4.123),
    "convformer_s18": (26.774, 3.957),
    "cskaformer_s18": (28.983, 6.415),
    "cskaformer_b36": (119.493, 41.245),
    "skaformer_s18": (25.98, 3.94),
}
COUNTED = [
    "sret_t",
    "vit_16b",
    "deepvit_s",
    "bvit_5m",
    "bvit_5m_w_v",
    "caformer_s18",
    "cskaformer_s18",
    "skaformer_s18",
    "mixer_b16_recursion_lrc",
]


def sizes(name: str) -> tuple[int, int]:
    cost = closed_form(zoo_config(name))
    return cost.num_params, cost.flops


@pytest.mark.parametrize("name", BUILT)
def test_has_the_size_of_a_faithful_build(name: str) -> None:
    params, flops = BUILT[name]
    found = sizes(name)
    assert found[0] / 1e6 == pytest.approx(params, rel=1e-3)
    if flops is not None:
        assert found[1] / 1e9 == pytest.approx(flops, rel=5e-3)


@pytest.mark.parametrize("name", zoo_names())
def test_agrees_with_the_paper_or_says_why_not(name: str) -> None:
    entry, (params, flops) = printed()[name], sizes(name)
    same = agrees(entry.params, params / 1e6) and agrees(entry.flops, flops / 1e9)
    assert same == (not entry.why)


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTED)
def test_closed_form_is_what_is_built(name: str) -> None:
    measured, (params, flops) = measure_cost(zoo_config(name)), sizes(name)
    assert (measured.num_params, measured.flops) == (params, flops)


def test_sret_t_to_the_last_parameter() -> None:
    """4.755979 M is exact, and slicing changes no parameter."""
    for name in ("sret_t", "sret_star_t", "sret_t_g8_8_4_4", "sret_t_g16_2_4_2"):
        assert sizes(name)[0] == 4_755_979


@pytest.mark.slow
@pytest.mark.parametrize("name", ["caformer_s18", "convformer_s18", "caformer_b36"])
def test_is_timms_metaformer_parameter_for_parameter(name: str) -> None:
    assert sizes(name)[0] == _num_params(timm.create_model(name))


def test_is_timms_caformer_flop_for_flop() -> None:
    """But for timm's last pooling: fvcore counts its `adaptive_avg_pool2d` and not our `mean`."""
    counted = count_operators(timm.create_model("caformer_s18"), (3, 224, 224))
    assert sizes("caformer_s18")[1] == sum(counted.values()) - counted["adaptive_avg_pool2d"]


def test_mixer_is_timms_and_recursion_adds_no_parameters_but_lrc() -> None:
    assert sizes("mixer_b16")[0] == _num_params(timm.create_model("mixer_b16_224"))
    assert sizes("mixer_b16_recursion")[0] == sizes("mixer_b16")[0]
    assert sizes("mixer_b16_recursion_lrc")[0] == sizes("mixer_b16")[0] + 12 * 4


def _num_params(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "theirs"),
    [("bvit_5m", "deit_tiny_patch16_224"), ("bvit_22m", "deit_small_patch16_224")],
)
def test_broad_attention_has_no_parameters_but_is_not_free(name: str, theirs: str) -> None:
    """BViT calls it free; pooled first it is N^2 C (L + 1), 8 % of BViT-5M."""
    model = timm.create_model(theirs)
    params, flops = sizes(name)
    assert params == _num_params(model)
    without = closed_form(zoo_config(name, broad={}))
    assert without.flops == sum(count_operators(model, (3, 224, 224)).values())
    assert flops - without.flops == 197**2 * model.embed_dim * (12 + 1)


# The reasons that papers.yaml gives are true


def test_sret_16_2_4_2_costs_more_than_8_8_4_4() -> None:
    assert sizes("sret_t_g16_2_4_2")[1] > sizes("sret_t_g8_8_4_4")[1]


def test_sret_tl_with_16_2_4_2_has_what_is_printed_for_8_4_4_2() -> None:
    cost = closed_form(zoo_config("sret_tl", groups="[16,2][4,2][1,1]"))
    assert cost.flops / 1e9 == pytest.approx(1.14, abs=0.005)


def test_sret_b_has_98_million_parameters_in_its_last_stage() -> None:
    rows = closed_form(zoo_config("sret_b")).rows
    assert sum(row.params for row in rows if row.stage == 2) == pytest.approx(98e6, abs=0.5e6)
    paper = _stem_params(96, 168, 336)
    assert _stem_params(168, 336, 336) - paper == pytest.approx(0.87e6, abs=0.005e6)


def _stem_params(*widths: int) -> int:
    """Three 3x3 convolutions with bias and batch norm, from three channels."""
    return sum(
        9 * before * after + 3 * after for before, after in zip((3, *widths), widths, strict=False)
    )


def test_vit_16b_lies_on_the_line_of_vit_24b_and_vit_32b() -> None:
    of_16, of_24, of_32 = (sizes(name)[0] for name in ("vit_16b", "vit_24b", "vit_32b"))
    assert of_32 - of_24 == of_24 - of_16 == pytest.approx(11.83e6, abs=0.005e6)


def test_nine_of_skaformer_b36s_blocks_would_fit() -> None:
    """Nine of 18: half of what replacing all of them changes."""
    (params, flops), (base_params, base_flops) = sizes("skaformer_b36"), sizes("caformer_b36")
    assert (params + base_params) / 2e6 == pytest.approx(97.3, abs=0.05)
    assert (flops + base_flops) / 2e9 == pytest.approx(22.8, abs=0.05)
    fourth = closed_form(
        zoo_config("caformer_b36", stages=_with_last(zoo_config("caformer_b36").to_tree(), "ska"))
    )
    assert fourth.num_params / 1e6 == pytest.approx(97.1, abs=0.05)
    assert fourth.flops / 1e9 == pytest.approx(23.1, abs=0.05)


def _with_last(tree: dict[str, object], mixer: str) -> list[dict[str, object]]:
    stages: list[dict[str, object]] = tree["stages"]
    return [*stages[:-1], {**stages[-1], "token_mixer": mixer}]
