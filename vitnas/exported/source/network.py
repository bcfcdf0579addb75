"""What the templates of model.py read of the whole network."""

from __future__ import annotations

from typing import Any

from vitnas.config.model import ModelConfig
from vitnas.exported.source.convolutions import inverted_facts
from vitnas.exported.source.layout import Call, Code, call, literal, signature
from vitnas.exported.source.mixers import has_later_norms, is_square
from vitnas.exported.source.plan import crelu_cuts, stem_layers, steps_of
from vitnas.exported.source.statements import assigned, statements

_FEW = 4
_ROOM = 30  # characters of a line of text that are left for it


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
        "square": is_square(config),
        **steps_of(config),
        "norm_passes": has_later_norms(config),
        "maps": config.map_source is not None,
        "taps": taps,
        **_stem(config),
        **inverted_facts(config),
        **_convolved(config),
        "orders": _orders(config),
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
    layers = call("nn.Sequential", {"layers": tuple(stem_layers(config))})
    return {
        "stem": statements(assigned("self.conv", layers))[0],
        "stem_norm": normed,
        "stem_proj": kind == "shifted",
        "plain_stem": [] if normed else assigned("self.stem", call("named", {"conv": layers})),
        "crelu_cuts": crelu_cuts(config),
        "pooling": config.pooling,
    }


def _orders(config: ModelConfig) -> str:
    """Which passes in groups have an order of their own: all, the first of two, or some."""
    found = {stage.groups for stage in config.stages if max(stage.groups) > 1}
    if all(1 not in groups for groups in found):
        return "all"
    is_first = all(len(groups) == 2 and groups[1] == 1 for groups in found)
    return "first" if is_first and len(found) == 1 else "some"


def _convolved(config: ModelConfig) -> dict[str, Any]:
    """Of convolutions before the projections of an attention; their batch norm has its own eps."""
    wanted = any(stage.qkv_kernel for stage in config.stages)
    passes = has_later_norms(config)
    types = {"dim": "int"} | ({} if is_square(config) else {"grid": "tuple[int, int]"})
    types |= {"kernel": "int", "stride": "int = 1"} | ({"passes": "int = 1"} if passes else {})
    return {
        "convolved_tokens": signature(types),
        "other_eps": wanted and literal(config.norm_eps) != "1e-5",
    }


def _reattention(config: ModelConfig) -> dict[str, Any]:
    wanted = config.reattention
    return {
        "theta_norm": wanted.norm,
        "theta_eps": literal(wanted.norm_eps),
        "theta_bias": wanted.bias,
        "theta_scale": literal(wanted.scale),
    }


def _broad(config: ModelConfig) -> dict[str, Any]:
    broad, stages = config.broad, config.stages
    indices = [stage for stage, _ in config.broad_sources]
    grid, dim, heads = config.grids[-1], stages[-1].embed_dim, stages[indices[-1]].heads
    shapes = {(config.grids[i], stages[i].heads, stages[i].attn_width) for i in indices}
    fits = shapes != {(grid, heads, dim)}
    layers = config.tapped_layers
    chosen = [layers.index(source) for source in config.broad_sources]
    grids = tuple(config.grids[index] for index in indices)
    scale = dim if broad.scale == "embed_dim" else dim // heads
    width = dim // heads * (len(indices) if broad.with_qk else 1)  # of a query: torch's own scale
    return {
        "gamma": literal(broad.gamma),
        "broad_count": len(indices),
        "broad_pool": broad.pool,
        "broad_qk": broad.with_qk,
        "broad_v": broad.with_v,
        "broad_scale": "" if scale == width else f", scale={scale}**-0.5",
        "broad_words": _words(config),
        "broad_fits": fits,
        "broad_pools": any(config.grids[index] != grid for index in indices),
        "broad_resizes": any(stages[index].attn_width != dim for index in indices),
        "broad_heads": heads,
        "broad_dim": dim,
        "broad_grid": grid,
        "broad_grids": grids if len(set(grids)) > 1 else grids[:1],
        "broad_shape": f"(B, {heads}, {config.num_tokens(-1)}, {dim // heads})",
        "tapped": _chosen(chosen, len(layers)),
    }


def _words(config: ModelConfig) -> str:
    """Which blocks broad attention collects from, counted from 1 over all stages."""
    first = [sum(stage.depth for stage in config.stages[:at]) for at in range(len(config.stages))]
    numbers = [first[stage] + block + 1 for stage, block in config.broad_sources]
    total = sum(stage.depth for stage in config.stages)
    if len(numbers) == 1:
        return f"block {numbers[0]} of {total}"
    if len(numbers) == total:
        return f"all {total} blocks" if total > 2 else "both blocks"
    words = f"blocks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} of {total}"
    return words if len(words) <= _ROOM else f"{len(numbers)} of {total} blocks"


def _chosen(indices: list[int], number: int) -> str:
    """What broad attention collects, of so many taps."""
    if len(indices) == 1:
        return f"taps[{indices[0] if indices[0] < number - 1 else -1}]"
    first, step = indices[0], indices[1] - indices[0]
    if indices == list(range(first, number, step)):
        every = f":{step}" if step > 1 else ""
        return f"taps[{first or ''}:{every}]" if first or every else "taps"
    if len(indices) <= _FEW:
        return f"[{', '.join(f'taps[{index}]' for index in indices)}]"
    return f"[taps[index] for index in {literal(tuple(indices))}]"


def _head(config: ModelConfig) -> dict[str, Any]:
    over_tokens, normed = config.pool != "avg", config.head.norm == "layernorm"
    return {
        "pool": config.pool,
        "token_norm": normed and over_tokens,
        "head_eps": literal(config.head.norm_eps),
        "classifiers": {
            name: statements(assigned(f"self.{name}", _classifier(config)))[0]
            for name in ("classifier", "distillation_classifier")
        },
        **_plain_head(config),
    }


def _plain_head(config: ModelConfig) -> dict[str, Any]:
    """The head, and what it gets of the tokens; nothing with two classifiers."""
    if config.has_distillation_token:
        return {"plain_head": []}
    args: dict[str, Any] = {}
    if config.head.norm == "layernorm" and config.pool == "avg":
        eps = literal(config.head.norm_eps)
        args["norm"] = Code(f"nn.LayerNorm({config.stages[-1].embed_dim}, eps={eps})")
    args["classifier"] = _classifier(config)
    patches = f"%s[:, {config.num_prefix_tokens}:]" if config.num_prefix_tokens else "%s"
    pools = {"token": "%s[:, 0]", "flatten": f"{patches}.flatten(1)"}
    return {
        "plain_head": assigned("self.head", call("named", args)),
        "plain_pool": pools.get(config.pool, f"{patches}.mean(dim=1)"),
    }


def _classifier(config: ModelConfig) -> Call | Code:
    width, classes = config.head_width, config.num_classes
    if config.head.kind != "mlp":
        return Code(f"nn.Linear({width}, {classes})")
    layers = (
        Code(f"nn.Linear({width}, {4 * width})"),
        Code("SquaredReLU()"),
        Code(f"nn.LayerNorm({4 * width}, eps={literal(config.head.mlp_norm_eps)})"),
        Code(f"nn.Linear({4 * width}, {classes})"),
    )
    return call("nn.Sequential", {"layers": layers})
