"""The papers' printed top-1 beside the sizes of the networks, as `vitnas zoo --plot` draws them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from vitnas.cost.closed_form import closed_form
from vitnas.nn.zoo.names import TrainedBy, printed, zoo_config
from vitnas.plotting import COLOURS


class Series(NamedTuple):
    """Networks of a paper that are drawn in one shape.

    Attributes:
        paper: gives the colour.
        shape: matplotlib's marker.
        networks: name in the zoo -> what stands at its mark; empty = a small mark of an ablation.
    """

    paper: str
    shape: str
    networks: Mapping[str, str]


PAPERS = {"SReT": COLOURS[0], "DeepViT": COLOURS[1], "BViT": COLOURS[5], "SKA": COLOURS[3]}
FAMILIES = {
    "SReT, sliced groups": Series("SReT", "o", {
        "sret_t": "T", "sret_tl": "TL", "sret_s": "S", "sret_b": "B",
        "sret_t_384": "T 384", "sret_tl_384": "TL 384",
        "sret_t_g8_8_4_4": "", "sret_t_g16_2_4_2": "", "sret_tl_g8_8_4_4": "",
        "sret_tl_g8_4_4_2": "", "sret_tl_g8_1_4_1": "", "sret_tl_g16_1_14_1": "",
        "sret_tl_g49_1_28_1": "",
    }),
    "SReT-*, no sliced groups": Series("SReT", "s", {
        "sret_star_t": "T", "sret_star_tl": "TL", "sret_star_s": "S",
        "sret_star_t_384": "T 384", "sret_star_tl_384": "TL 384", "sret_star_s_384": "S 384",
        "sret_star_s_512": "S 512",
    }),
    "ViT, DeepViT's baseline": Series("DeepViT", "X", {
        "vit_16b": "16B", "vit_24b": "24B", "vit_32b": "32B",
    }),
    "DeepViT": Series("DeepViT", "D", {
        "deepvit_16b": "16B", "deepvit_24b": "24B", "deepvit_32b": "32B",
    }),
    "DeepViT-S, DeepViT-L": Series("DeepViT", "p", {
        "deepvit_s": "S", "deepvit_l": "L", "deepvit_l_420": "L", "deepvit_l_384": "L 384",
    }),
    "BViT": Series("BViT", "h", {
        "bvit_5m": "5M", "bvit_22m": "22M", "bvit_5m_w_v": "", "bvit_5m_wo_v": "",
    }),
    "CAFormer, SKA's baseline": Series("SKA", "^", {
        "caformer_s18": "S18", "caformer_b36": "B36",
    }),
    "ConvFormer": Series("SKA", "v", {"convformer_s18": "S18"}),
    "SKAFormer": Series("SKA", "<", {"skaformer_s18": "S18", "skaformer_b36": "B36"}),
    "CSKAFormer": Series("SKA", ">", {"cskaformer_s18": "S18", "cskaformer_b36": "B36"}),
}  # fmt: skip
"""What is drawn: one network for each row that a paper prints.

Table 5 of SReT prints one row that fits `sret_star_s_512` and not `sret_s_512`, and Table 12 one
for `sret_b` and `sret_b_table12`. SKA's networks of half a training are left out."""


class Point(NamedTuple):
    """One printed top-1.

    Attributes:
        name: in the zoo.
        family: key of `FAMILIES`.
        top1: as printed, in percent.
        training: how the network was trained for it.
        flops, params: of the network, in G multiply-adds and in millions.
        printed: what the paper prints for both; None where it prints nothing.
        img_size: pixels of a side.
    """

    name: str
    family: str
    top1: float
    training: TrainedBy
    flops: float
    params: float
    printed: tuple[float | None, float | None]
    img_size: int

    @property
    def tag(self) -> str:
        return FAMILIES[self.family].networks[self.name]

    @property
    def colour(self) -> str:
        return PAPERS[FAMILIES[self.family].paper]


@cache
def points() -> tuple[Point, ...]:
    """What is drawn, by family."""
    return tuple(_points())


def _points() -> Iterator[Point]:
    for family, (_, _, networks) in FAMILIES.items():
        for name in networks:
            entry, config = printed()[name], zoo_config(name)
            cost = closed_form(config)
            told = _number(entry.flops), _number(entry.params)
            for one in entry.top1:
                if one.training != "short":
                    yield Point(
                        name, family, float(one.percent), one.training, cost.flops / 1e9,
                        cost.num_params / 1e6, told, config.image_hw[0],
                    )  # fmt: skip


def _number(figure: str | None) -> float | None:
    return None if figure is None else float(figure)
