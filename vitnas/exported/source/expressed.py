"""Which fields of a network the templates know, and with which values.

A field that is not here, or has a value that is not here, is one that no template reads. A network
in which it is set has no model.py: better none than one that computes something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vitnas.config.mixers import short_name
from vitnas.config.model import ModelConfig
from vitnas.errors import shorten

ANY = None
NETWORK: dict[str, tuple[Any, ...] | None] = {
    "img_size": ANY,
    "in_chans": (1, 3),
    "num_classes": ANY,
    "stem.kind": ("patch", "conv", "metaformer", "deepvit", "bvit", "shifted"),
    "stem.stride": ANY,
    "stem.width": ANY,
    "stem.convs": ANY,
    "stem.pools": ANY,
    "stem.act": ("relu", "crelu"),
    "stem.filters": ANY,
    "stem.widths": ANY,
    "downsample": (
        *("conv", "metaformer", "cvt", "patch", "separable", "mbconv", "maxpool", "vgg", "crelu"),
    ),
    "pooling": ("max", "max_blur"),
    "downsample_expansion": ANY,
    "downsample_se_ratio": ANY,
    "permute": ("always", "second", "never"),
    "permute_inverse": (True, False),
    "residual": ("plain", "lrc", "lrc_branch", "lrc_identity", "scale"),
    "branch_scale": ANY,
    "norm": ("layernorm", "layernorm_nobias", "batchnorm"),
    "norm_eps": ANY,
    "mlp_act": ("gelu", "star_relu"),
    "mlp_bias": (True, False),
    "qkv_bias": (True, False),
    "proj_bias": (True, False),
    "pos_embed": ("learned", "none", "conditional"),
    "class_token": (True, False),
    "distillation_token": (True, False),
    "global_pool": ("avg", "token", "flatten", None),
    "head.kind": ("linear", "mlp"),
    "head.norm": ("layernorm", "none"),
    "head.norm_eps": ANY,
    "head.mlp_norm_eps": ANY,
    "drop_rate": ANY,
    "pos_drop_rate": ANY,
    "proj_drop_rate": ANY,
    "attn_drop_rate": ANY,
    "drop_path_rate": ANY,
    "temperature.kind": ("none", "linear", "learnable"),
    "temperature.last": ANY,
    "reattention_blocks": ANY,
    "reattention.norm": ("batch", "layer", "none"),
    "reattention.norm_eps": ANY,
    "reattention.bias": (True, False),
    "reattention.scale": ANY,
    "reattention.source": ("own", "shared"),
    "broad.gamma": ANY,
    "broad.layers": ANY,
    "broad.pool": ("official", "layers"),
    "broad.scale": ("head_dim", "embed_dim"),
    "broad.with_v": (True, False),
    "broad.with_qk": (True, False),
}
MIXERS = ("mhsa", "ska", "cska", "dwconv", "mbconv", "mlp", "pool", "identity", "skip")
STAGE: dict[str, tuple[Any, ...] | None] = {
    "token_mixer": ANY,  # `MIXERS`
    "depth": ANY,
    "embed_dim": ANY,
    "num_heads": ANY,
    "head_dim": ANY,
    "attn_dim": ANY,
    "groups": ANY,
    "loop": ("internal", "external"),
    "mlp_ratio": ANY,
    "nll_ratio": ANY,
    "residual": (None, "plain", "lrc", "lrc_branch", "lrc_identity", "scale"),
    "norm": (None, "layernorm", "layernorm_nobias", "batchnorm"),
    "expansion": ANY,
    "kernel_size": ANY,
    "se_ratio": ANY,
    "conv_act": ("relu6", "hard_swish", "silu"),
    "tokens_dim": ANY,
    "qk_scale": (True, False),
    "attn_act": ("softmax", "gelu", "relu", "star_relu"),
    "mask_diagonal": (True, False),
    "key_init": ANY,
    "key_kernel": ANY,
    "q_proj": (True, False),
    "windows": ANY,
    "kernel_qkv": ANY,
    "stride_kv": ANY,
}


def unexpressed(config: ModelConfig) -> str | None:
    """The first field that no template reads, and its value; None where there is none."""
    network = config.canonical().model_dump(exclude_defaults=True)
    stages = network.pop("stages")
    for index, stage in enumerate(config.stages):
        for name in stage.kinds:
            if name not in MIXERS:
                return f"stages[{index}].token_mixer = {shorten(short_name(name))}"
    for address, value in _leaves(network):
        if not _known(NETWORK, address, value):
            return f"{address} = {shorten(value)}"
    for index, stage in enumerate(stages):
        for address, value in stage.items():
            if not _known(STAGE, address, value):
                return f"stages[{index}].{address} = {shorten(value)}"
    return None


def _leaves(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _known(table: dict[str, tuple[Any, ...] | None], address: str, value: Any) -> bool:
    if address not in table:
        return False
    values = table[address]
    return values is ANY or value in values
