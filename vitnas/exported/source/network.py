"""What the templates of model.py read of the whole network."""

from __future__ import annotations

from typing import Any

from vitnas.config.model import ModelConfig
from vitnas.exported.source.layout import literal
from vitnas.exported.source.mixers import has_later_norms
from vitnas.exported.source.plan import (
    has_steps,
    stem_layers,
    tap_order,
    tapped,
)


def network_facts(config: ModelConfig) -> dict[str, Any]:
    """Values by name; numbers with a point as text."""
    height, width = config.grids[0]
    taps = bool(config.broad.gamma)
    return {
        "shape": f"B, {config.in_chans}, {config.image_hw[0]}, {config.image_hw[1]}",
        "in_chans": config.in_chans,
        "num_classes": config.num_classes,
        "class_token": config.class_token,
        "distilled": config.has_distillation_token,
        "prefix": config.num_prefix_tokens,
        "pos_embed": config.pos_embed == "learned",
        "tokens": height * width,
        "dim": config.stages[0].embed_dim,
        "last_dim": config.stages[-1].embed_dim,
        "qkv_bias": config.qkv_bias,
        "proj_bias": config.proj_bias,
        "mlp_act": config.mlp_act,
        "mlp_bias": config.mlp_bias,
        "norm": config.norm,
        "norm_eps": literal(config.norm_eps),
        "scale": literal(config.branch_scale),
        "step": has_steps(config),
        "norm_passes": has_later_norms(config),
        "maps": config.map_source is not None,
        "taps": taps,
        **_stem(config),
        **_convolutions(config),
        **_reattention(config),
        **(_broad(config) if taps else {}),
        **_head(config),
    }


def _stem(config: ModelConfig) -> dict[str, Any]:
    kind, normed = config.stem.kind, None
    if kind == "shifted":
        normed = 5 * config.in_chans * config.stem.stride**2
    elif kind == "metaformer" and config.norm != "batchnorm":
        normed = config.stages[0].embed_dim
    return {"stem": stem_layers(config), "stem_norm": normed, "stem_proj": kind == "shifted"}


def _convolutions(config: ModelConfig) -> dict[str, Any]:
    """What inverted residuals of the network have."""
    stages = [stage for stage in config.stages if "mbconv" in stage.kinds]
    between = range(1, len(config.stages))
    squeezed = [config.downsample_channels(index)[1] for index in between]
    return {
        "squeezes": any([*squeezed, *(stage.se_channels for stage in stages)]),
        "wide_kernels": any(stage.only("mbconv").kernel != 3 for stage in stages),
    }


def _reattention(config: ModelConfig) -> dict[str, Any]:
    wanted = config.reattention
    return {
        "theta_norm": wanted.norm,
        "theta_bias": wanted.bias,
        "theta_scale": literal(wanted.scale),
    }


def _broad(config: ModelConfig) -> dict[str, Any]:
    broad, stages = config.broad, config.stages
    indices = [stage for stage, _ in config.broad_sources]
    grid, dim, heads = config.grids[-1], stages[-1].embed_dim, stages[indices[-1]].heads
    shapes = {(config.grids[i], stages[i].heads, stages[i].attn_width) for i in indices}
    fits = shapes != {(grid, heads, dim)}
    found, whole = tapped(config), len(tap_order(config))
    return {
        "gamma": literal(broad.gamma),
        "broad_count": len(indices),
        "broad_pool": broad.pool,
        "broad_qk": broad.with_qk,
        "broad_v": broad.with_v,
        "broad_scale": literal((dim if broad.scale == "embed_dim" else dim // heads) ** -0.5),
        "broad_fits": fits,
        "broad_pools": any(config.grids[index] != grid for index in indices),
        "broad_heads": heads,
        "broad_dim": dim,
        "broad_grids": tuple(config.grids[index] for index in indices),
        "broad_shape": f"(B, {heads}, {config.num_tokens(-1)}, {dim // heads})",
        "broad_kernel": f"(grid[0] // {grid[0]}, grid[1] // {grid[1]})",
        "tapped": None if found == list(range(whole)) else found,
    }


def _head(config: ModelConfig) -> dict[str, Any]:
    over_tokens, normed = config.pool != "avg", config.head.norm == "layernorm"
    layers = "two linear layers" if config.head.kind == "mlp" else "a linear layer"
    firsts = {"avg": "The mean of the tokens", "token": "The class token"}
    first = firsts.get(config.pool, "All tokens of the grid, side by side")
    between = ", a norm" if normed and not over_tokens else ""
    doc = f"{first}{between}, then {layers}."
    if config.has_distillation_token:
        doc = f"Class and distillation token, each with {layers}; the mean of both."
    return {
        "pool": config.pool,
        "head_width": config.head_width,
        "head_norm": normed and not over_tokens,
        "token_norm": normed and over_tokens,
        "head_kind": config.head.kind,
        "head_eps": literal(config.head.norm_eps),
        "mlp_norm_eps": literal(config.head.mlp_norm_eps),
        "head_doc": doc,
    }
