"""The papers' networks as configurations, and the sizes that a faithful build of them has.

Sizes: parameters in millions, FLOPs in G as fvcore counts them, from `published.yaml` of the
specification. Tolerance: 0.1 % of the parameters, 0.5 % of the FLOPs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig


@dataclass(frozen=True)
class Published:
    name: str
    tree: dict[str, Any]
    params: float
    flops: float

    @property
    def config(self) -> ModelConfig:
        return validate(ModelConfig, {"name": self.name, **self.tree})


def sret(groups: str, dims: tuple[int, ...], ffn: float, nll: float, head_dim: int) -> Any:
    """SReT, Table 12: blocks 2, 5, 3 with two passes each."""
    stages = [
        {
            "token_mixer": "mhsa",
            "depth": depth,
            "embed_dim": dim,
            "head_dim": head_dim,
            "mlp_ratio": ffn,
            "nll_ratio": nll,
        }
        for depth, dim in zip((2, 5, 3), dims, strict=True)
    ]
    stem = {"kind": "conv", "stride": 8}
    return {"stem": stem, "residual": "lrc", "groups": groups, "stages": stages}


def sret_t(groups: str) -> Any:
    return sret(groups, (64, 128, 256), 3.6, 1.0, 32)


def sret_tl(groups: str) -> Any:
    return sret(groups, (64, 128, 256), 4.0, 1.0, 32)


def _vit(dim: int, depth: int, heads: int, ffn: float, **rest: Any) -> Any:
    stage = {
        "token_mixer": "mhsa",
        "depth": depth,
        "embed_dim": dim,
        "num_heads": heads,
        "mlp_ratio": ffn,
    }
    return {"class_token": True, "stages": [stage], **rest}


def _deepvit(dim: int, depth: int, reattention: int, **rest: Any) -> Any:
    return _vit(dim, depth, 12, 3.0, reattention_blocks=reattention, **rest)


def _metaformer(
    mixers: list[str],
    depths: tuple[int, ...] = (3, 3, 9, 3),
    dims: tuple[int, ...] = (64, 128, 320, 512),
    **rest: Any,
) -> Any:
    """timm's CAFormer (S18 by default) with other token mixers; `stage1` overrides its fields."""
    stages = [
        {
            "token_mixer": mixer,
            "depth": depth,
            "embed_dim": dim,
            "residual": "scale" if index > 1 else "plain",
            **rest.get(f"stage{index}", {}),
        }
        for index, (mixer, depth, dim) in enumerate(zip(mixers, depths, dims, strict=True))
    ]
    return {
        "stem": {"kind": "metaformer", "stride": 4},
        "downsample": "metaformer",
        "norm": "layernorm_nobias",
        "mlp_act": "star_relu",
        "mlp_bias": False,
        "qkv_bias": False,
        "proj_bias": False,
        "pos_embed": "none",
        "head": {"kind": "mlp"},
        "stages": stages,
    }


_STEM = {"kind": "deepvit", "stride": 16, "width": 64}
_FULL = "[1,1][1,1][1,1]"
_SLICED = "[8,2][4,1][1,1]"
_BROAD = {"broad": {"gamma": 1.0}}

_CSKA = ["dwconv", "cska", "mhsa", "mhsa"]
_B36 = _metaformer(_CSKA, (3, 12, 18, 3), (128, 256, 512, 768), stage1={"head_dim": 16})

PUBLISHED = [
    Published("sret_t", sret_t(_SLICED), 4.755979, 1.122),
    Published("sret_t_whole", sret_t(_FULL), 4.755979, 1.375),
    Published("sret_t_8844", sret_t("[8,8][4,4][1,1]"), 4.755979, 1.026),
    Published("sret_t_16242", sret_t("[16,2][4,2][1,1]"), 4.755979, 1.087),
    Published("sret_tl", sret_tl(_SLICED), 4.988024, 1.174),
    Published("sret_tl_whole", sret_tl(_FULL), 4.988024, 1.427),
    Published("sret_tl_8442", sret_tl("[8,4][4,2][1,1]"), 4.988024, 1.110),
    Published("sret_s", sret(_SLICED, (126, 252, 504), 3.0, 2.0, 42), 20.8997, 4.191),
    Published("vit_16b", _deepvit(384, 16, 0), 24.4238, 5.195),
    Published("vit_32b", _deepvit(384, 32, 0), 48.0905, 10.332),
    Published("deepvit_16b", _deepvit(384, 16, 16), 24.4267, 5.300),
    Published("deepvit_24b", _deepvit(384, 24, 24), 36.2614, 7.920),
    Published("deepvit_32b", _deepvit(384, 32, 32), 48.0962, 10.541),
    Published("deepvit_s", _deepvit(396, 16, 5, stem=_STEM), 27.313, 6.382),
    Published("deepvit_l", _deepvit(408, 32, 12, stem=_STEM), 55.636, 12.523),
    Published("deepvit_l_420", _deepvit(420, 32, 12, stem=_STEM), 58.884, 13.190),
    Published("deit_tiny", _vit(192, 12, 3, 4.0), 5.7174, 1.2584),
    Published("deit_small", _vit(384, 12, 6, 4.0), 22.0507, 4.608),
    Published("bvit_5m", _vit(192, 12, 3, 4.0, **_BROAD), 5.7174, 1.355),
    Published("bvit_22m", _vit(384, 12, 6, 4.0, **_BROAD), 22.0507, 4.802),
    Published("caformer_s18", _metaformer(["dwconv", "dwconv", "mhsa", "mhsa"]), 26.342, 4.123),
    Published("convformer_s18", _metaformer(["dwconv"] * 4), 26.774, 3.957),
    Published(
        "cskaformer_s18",
        _metaformer(_CSKA, stage1={"head_dim": 16}),
        28.983,
        6.415,
    ),
    Published("cskaformer_b36", _B36, 119.493, 41.245),
    Published("skaformer_s18", _metaformer(["dwconv", "dwconv", "ska", "mhsa"]), 25.98, 3.94),
]
BY_NAME = {published.name: published for published in PUBLISHED}
