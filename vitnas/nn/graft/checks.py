"""Checks of a graft. Each raises one `ConfigError` before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence

from timm.layers import PatchDropout, PatchDropoutWithIndices
from timm.models.pvt_v2 import Attention as ReducedAttention
from torch import nn

from vitnas.config import rules
from vitnas.config.graft import GraftConfig
from vitnas.config.mixers import MIXERS
from vitnas.errors import ConfigError
from vitnas.nn.graft.atrous import AtrousAttention
from vitnas.nn.graft.attention import Site, StaticKeyGraft
from vitnas.nn.graft.broad import BroadGraft, source_of, width_of
from vitnas.nn.graft.families import FAMILIES, Family
from vitnas.nn.graft.keyed import KeyedGraft
from vitnas.nn.graft.reattention import ReattentionDropout
from vitnas.nn.graft.reduced import Reduction
from vitnas.nn.graft.talking import TalkingAttention
from vitnas.nn.graft.windows import WindowGraft

_PARTS = ("q_norm", "k_norm", "norm", "gate")
"""Parts that a static-key mixer does not have."""
_DROPS = (PatchDropout, PatchDropoutWithIndices)


def check_network(model: nn.Module, family: Family, config: GraftConfig) -> None:
    """The network as a whole allows this graft."""
    name, gamma = type(model).__name__, config.broad.gamma
    if config.changes and isinstance(getattr(model, "broad", None), BroadGraft):
        rule = "has broad attention, and no graft can follow it: make broad attention the last one"
        raise ConfigError(rule, address="model", value=name)
    if config.reattention_blocks and not family.reattention:
        able = _classes("reattention")
        rule = f"re-attention needs a network of class {able}, and this is a {name}"
        raise ConfigError(
            rule, address="reattention_blocks", value=config.reattention_blocks, nearest=0
        )
    if gamma and not family.broad:
        rule = f"broad attention needs a network of class {_classes('broad')}; this is a {name}"
        raise ConfigError(rule, address="broad.gamma", value=gamma, nearest=0)
    if config.mixer and getattr(model, "rope", None) is not None:
        rule = f"{config.mixer} has no rotary positions, and this network turns queries by them"
        raise ConfigError(rule, address="model", value=type(model).__name__)
    check_windows(family, config)
    _check_sizes(model, family, config)


def _check_sizes(model: nn.Module, family: Family, config: GraftConfig) -> None:
    """The network has a fixed number of tokens where the graft needs one.

    Static keys are for the tokens of one image size. In Swin they are for a window, whose size
    does not depend on the image's; there only broad attention needs one image size.
    """
    windows = issubclass(family.graft, WindowGraft)
    strict = getattr(getattr(model, "patch_embed", None), "strict_img_size", True)
    bound = bool(config.broad.gamma) if windows else config.mixer is not None
    if bound and not strict:
        what = "broad attention" if windows else config.mixer
        rule = f"{what} needs one image size; this network accepts any (dynamic_img_size)"
        raise ConfigError(rule, address="model", value=type(model).__name__)
    if config.mixer and isinstance(getattr(model, "patch_drop", None), _DROPS):
        rule = f"{config.mixer} has a static key for each token, and patch_drop removes tokens"
        raise ConfigError(rule, address="model", value=type(model).__name__)


def check_has_attention(model: nn.Module, sites: Sequence[Site]) -> None:
    """There is an attention at all: PoolFormer and ConvFormer have none."""
    if not sites:
        rule = "no block of this network has attention, so there is nothing to replace"
        raise ConfigError(rule, address="model", value=type(model).__name__)


def check_some(chosen: Sequence[Site], config: GraftConfig) -> None:
    """The chosen stages have attention."""
    if not chosen:
        raise ConfigError("no block there has attention", address="blocks", value=config.blocks)


def check_known(site: Site, family: Family) -> None:
    """The attention is of the one class that grafts know in this family."""
    attention = site.attention
    if isinstance(attention, StaticKeyGraft):
        raise ConfigError("is a graft already", address=site.name, value=attention.kind)
    if type(attention) is not family.attention:
        found = site.block if attention is None else attention
        rule = f"cannot be grafted; the only class for this network is {family.attention.__name__}"
        raise ConfigError(rule, address=site.name, value=type(found).__name__)


def check_replaceable(site: Site, family: Family, config: GraftConfig) -> None:
    """The attention has no part that a static-key mixer would lose."""
    check_known(site, family)
    if not isinstance(site.attention, ReducedAttention):  # whose norm is kept
        _check_without(site, *_PARTS)
    if isinstance(site.attention.attn_drop, ReattentionDropout):
        raise ConfigError("has re-attention, which the graft would remove", address=site.name)
    if isinstance(site.attention, ReducedAttention):
        check_reduced(site)
    if isinstance(site.attention, AtrousAttention) and config.num_heads is not None:
        rule = "the convolution of LVT's queries is of its own heads, whose number stays"
        raise ConfigError(rule, address="num_heads", value=config.num_heads)
    if isinstance(site.attention, TalkingAttention) and config.num_heads is not None:
        rule = "what mixes the maps is of its own heads, whose number stays"
        raise ConfigError(rule, address="num_heads", value=config.num_heads)
    _check_projections(site)


def check_reduced(site: Site) -> None:
    """PVT's reduction leaves a token."""
    if 0 in Reduction(site.attention).after(site.grid):
        ratio = site.attention.sr.stride[0]
        grid = "{}x{}".format(*site.grid)
        rule = f"reduces {grid} tokens {ratio} times to none: build the network for larger images"
        raise ConfigError(rule, address=site.name)


def _check_without(site: Site, *names: str) -> None:
    for name in names:
        part = getattr(site.attention, name, None)
        if not isinstance(part, (nn.Identity, type(None))):
            rule = f"has a {type(part).__name__} ({name}), which the graft would lose"
            raise ConfigError(rule, address=site.name)


def _check_projections(site: Site) -> None:
    """One linear layer gives query, key and value, and another one C channels of the values."""
    if isinstance(site.attention, ReducedAttention):
        return  # it has one for the query and one for both others
    qkv, proj = site.attention.qkv, site.attention.proj
    if type(qkv) is not nn.Linear or type(proj) is not nn.Linear:
        rule = f"its projections are {type(qkv).__name__} and {type(proj).__name__}, not Linear"
        raise ConfigError(rule, address=site.name)
    if (qkv.out_features, proj.out_features) != (3 * proj.in_features, qkv.in_features):
        rule = f"its projections are not those of {proj.in_features} channels each"
        raise ConfigError(rule, address=site.name)


def check_prefix(site: Site, config: GraftConfig) -> None:
    """`cska` accepts at most one token before the grid; `class_row` is that token's."""
    if config.class_row == "last" and site.prefix != 1:
        rule = f"the last row is the class token's, and {site.name} has none"
        raise ConfigError(rule, address="class_row", value="last", nearest="first")
    if config.mixer == "cska" and site.prefix > 1:
        rule = f"cska accepts at most one token before the grid, and here are {site.prefix}"
        raise ConfigError(rule, address="mixer", value="cska", nearest="ska")


def check_cut(site: Site, config: GraftConfig) -> None:
    """The tokens can be cut into the mixer's own windows."""
    if config.windows > 1 and isinstance(site.attention, ReducedAttention):
        rule = "the values are fewer than the queries, and cannot be cut like them"
        raise ConfigError(rule, address="windows", value=config.windows, nearest=1)
    if config.windows > 1:
        found = rules.windows_fit(config.windows, site.grid, site.prefix > 0)
        if found:
            raise ConfigError(found, address="windows", value=config.windows, nearest=1)


def check_windows(family: Family, config: GraftConfig) -> None:
    """What Swin's position bias and mask allow."""
    if not issubclass(family.graft, (WindowGraft, KeyedGraft)):
        return
    if config.windows > 1:
        rule = "Swin has its own windows"
        raise ConfigError(rule, address="windows", value=config.windows, nearest=1)
    if config.num_heads is not None and issubclass(family.graft, WindowGraft):
        rule = "Swin's table of relative positions is of its own heads, whose number stays"
        raise ConfigError(rule, address="num_heads", value=config.num_heads)
    if config.attn_act == "star_relu":
        rule = "is not 0 where Swin's mask hides a token: it has a bias"
        raise ConfigError(rule, address="attn_act", value="star_relu", nearest="relu")


def can_mix(site: Site, family: Family) -> bool:
    """Whether re-attention can be added to this attention."""
    attention = site.attention
    return type(attention) is family.attention and not isinstance(
        attention.attn_drop, ReattentionDropout
    )


def check_enough(wanted: int, found: int, family: Family) -> None:
    """At least `wanted` attentions can mix their maps."""
    if wanted > found:
        kind = family.attention.__name__
        rule = f"only {found} blocks keep their attention ({kind}) and do not mix its maps yet"
        raise ConfigError(rule, address="reattention_blocks", value=wanted, nearest=found)


def has_key(site: Site) -> bool:
    """Whether the attention has a key, which broad attention needs."""
    attention = site.attention
    return not isinstance(attention, StaticKeyGraft) or MIXERS[attention.kind].facts.taps


def check_sources(
    sources: list[Site], last: Site, replaced: list[Site], family: Family, config: GraftConfig
) -> None:
    """Broad attention has sources, and their tokens can be pooled to the last grid."""
    gamma = config.broad.gamma
    if not sources:
        rule = "broad attention needs an attention with a key, and cska has none"
        raise ConfigError(rule, address="broad.gamma", value=gamma, nearest=0)
    for site in sources:
        if not isinstance(site.attention, StaticKeyGraft):
            check_known(site, family)
            _check_without(site, "q_norm", "k_norm")
            _check_projections(site)
        source = source_of(site)
        for grid in (source.grid, source.of_keys.grid):
            if any(a % b for a, b in zip(grid, last.stage_grid, strict=True)):
                grids = " and ".join("{}x{}".format(*each) for each in (grid, last.stage_grid))
                rule = f"pools {grids} tokens to one grid: the second must divide the first"
                raise ConfigError(rule, address="broad.gamma", value=gamma, nearest=0)
    heads, dim = source_of(sources[-1]).num_heads, width_of(last)
    if sources[-1] in replaced:
        heads = config.num_heads or heads
    if dim % heads:
        rule = f"the {heads} heads of the last source do not divide the last width {dim}"
        raise ConfigError(rule, address="broad.gamma", value=gamma, nearest=0)


def _classes(what: str) -> str:
    return ", ".join(kind.__name__ for kind, family in FAMILIES.items() if getattr(family, what))
