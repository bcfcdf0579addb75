"""A graft: it is planned, then checked as a whole, then made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vitnas.config.collected import collected
from vitnas.config.files import validate
from vitnas.config.graft import GraftConfig, chosen_blocks
from vitnas.config.mixers import MIXERS
from vitnas.nn.graft import checks
from vitnas.nn.graft.attention import Site
from vitnas.nn.graft.broad import BroadGraft
from vitnas.nn.graft.families import Family, family_of
from vitnas.nn.graft.reattention import mix_maps


@dataclass(frozen=True)
class Grafted:
    """What a graft changed. All fields but `was` hold names of attention modules.

    Attributes:
        was: the class that the attention of every block had before.
        replaced: attentions that are static-key mixers now.
        reattention: attentions that mix their maps now.
        broad: attentions that broad attention collects from.
        left: attentions that did not change.
    """

    was: str
    replaced: tuple[str, ...]
    reattention: tuple[str, ...]
    broad: tuple[str, ...]
    left: tuple[str, ...]


def graft(model: Any, **fields: Any) -> Grafted:
    """Change the attention of a built timm network, in place. Everything else stays, bit for bit.

    If one part of the graft is impossible, nothing is changed.

    Args:
        model: a network of a class in `vitnas.nn.graft.families.FAMILIES`: timm's ViTs, DeiT, EVA,
            CaiT, Swin, PVT and MetaFormers, or a `CvT`. It must be built for the size of its
            images. Its weights may be trained or not.
        **fields: fields of `vitnas.config.graft.GraftConfig`, e.g. `mixer="cska",
            blocks="last:4", reattention_blocks=4, broad={"gamma": 0.4}`. Without a field, nothing
            is changed.

    Returns:
        What was changed. `model.grafts` lists the configurations of all grafts on this network.

    Raises:
        ConfigError: a field is wrong, or the network's class, size or options do not allow it.

    Randomness: the initial static keys, from torch's generator.
    """
    config = validate(GraftConfig, fields)
    family = family_of(model)
    sites = family.sites(model)
    checks.check_has_attention(model, sites)
    checks.check_network(model, family, config)
    replaced = _to_replace(sites, family, config)
    mixed = _to_mix(sites, replaced, family, config)
    sources = _to_collect(sites, replaced, family, config)
    mixers = [(site, family.graft(site, config)) for site in replaced]
    drops = [(site, mix_maps(site.attention, config.reattention)) for site in mixed]
    # from here on nothing can fail
    for site, mixer in mixers:
        setattr(site.block, site.field, mixer)
    for site, drop in drops:
        site.attention.attn_drop, site.attention.fused_attn = drop, False
    if sources:
        model.broad = BroadGraft(sources, sites[-1], config.broad)
    if config.changes:
        model.grafts = (*getattr(model, "grafts", ()), config)
    changed = {*replaced, *mixed}
    left = [site.name for site in sites if site not in changed]
    left += [name for name, module in model.named_modules() if type(module) is family.left]
    was = family.attention.__name__
    return Grafted(was, _names(replaced), _names(mixed), _names(sources), tuple(left))


def _to_replace(sites: list[Site], family: Family, config: GraftConfig) -> list[Site]:
    """The chosen attentions.

    Raises:
        ConfigError: one of them cannot be replaced.
    """
    if config.mixer is None:
        return []
    chosen = chosen_blocks(config.blocks, [site.stage for site in sites])
    found = [sites[index] for index in chosen]
    checks.check_some(found, config)
    for site in found:
        checks.check_replaceable(site, family, config)
        checks.check_prefix(site, config)
        checks.check_cut(site, config)
    return found


def _to_mix(
    sites: list[Site], replaced: list[Site], family: Family, config: GraftConfig
) -> list[Site]:
    """The last k attentions that are not replaced and do not mix their maps yet.

    Raises:
        ConfigError: there are fewer than k.
    """
    wanted = config.reattention_blocks
    able = [site for site in sites if site not in replaced and checks.can_mix(site, family)]
    checks.check_enough(wanted, len(able), family)
    return able[len(able) - wanted :]


def _to_collect(
    sites: list[Site], replaced: list[Site], family: Family, config: GraftConfig
) -> list[Site]:
    """What broad attention collects from.

    These are the attentions with a key that `broad.layers` names: by default all (BViT, Eq. 5); in
    a network of several stages, the last one of each stage.

    Raises:
        ConfigError: there is none, or their sizes do not fit together.
    """
    if not config.broad.gamma:
        return []
    has_key = config.mixer is None or MIXERS[config.mixer].facts.taps
    kept = [site for site in sites if has_key or site not in replaced]
    found = [site for site in kept if checks.has_key(site)]
    stages, flat = [site.stage for site in found], not sites[-1].stage
    found = [found[index] for index in collected(config.broad.layers, stages, flat=flat)]
    checks.check_sources(found, sites[-1], replaced, family, config)
    return found


def _names(sites: list[Site]) -> tuple[str, ...]:
    return tuple(site.name for site in sites)
