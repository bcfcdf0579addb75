"""When a field matters, and which of its values mean the same: the one table.

The canonical form resets a field that does not matter, a space does not ask for it, and
`space/README.md` prints the words. A field that is not here always matters, and every value of it
is another network. `fits` has the functions that say which values cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, get_args

from vitnas.config import rules
from vitnas.config.field_rule import FieldRule, itself
from vitnas.config.fits import (
    broad_problem,
    depth_misfit,
    distillation_misfit,
    head_misfit,
    heads_misfit,
    item_misfit,
    kernel_misfit,
    last_misfit,
    mixer_misfit,
    number_misfit,
    passes_misfit,
    pool_misfit,
    pools_misfit,
    reattention_limit,
    schedule_misfit,
    stride_misfit,
    tail_misfit,
    too_many_blocks,
    windows_misfit,
)
from vitnas.config.meanings import (
    collected_layers,
    falls,
    linear_or_none,
    mixer_paths,
    named_widths,
    residual,
    schedule,
    square,
    turns,
)
from vitnas.config.mixers import MIXERS, names_with
from vitnas.config.network import Network
from vitnas.config.parts import BroadConfig, NotSettled, ReattentionConfig, Residual
from vitnas.config.pattern import MixerPattern
from vitnas.config.stage import StageConfig


def any_stage(network: Network, test: Callable[[StageConfig], bool]) -> bool:
    """Whether a stage passes `test`.

    Raises:
        NotSettled: no stage does, and of one it is not known yet.
    """
    unknown: NotSettled | None = None
    for stage in network.stages:
        try:
            if test(stage):
                return True
        except NotSettled as error:
            unknown = error
    if unknown is not None:
        raise unknown
    return False


@cache
def rule_of(path: tuple[str | int, ...]) -> FieldRule[Any] | None:
    """The rule of the field at `path` in a model file; None where it always matters.

    A value inside a list has the rule that `item` of the list's rule gives it, or the list's own.
    """
    is_of_stage = len(path) > 2 and path[0] == "stages" and isinstance(path[1], int)
    inside = path[2:] if is_of_stage else path
    address = ".".join(part for part in inside if isinstance(part, str))
    table: Mapping[str, FieldRule[Any]] = STAGE_RULES if is_of_stage else NETWORK_RULES
    rule, last = table.get(address), inside[-1]
    return rule.item(last) if rule and rule.item and isinstance(last, int) else rule


def _has_attention(network: Network) -> bool:
    return any_stage(network, lambda stage: stage.facts.maps)


def _is_sliced(stage: StageConfig) -> bool:
    return stage.facts.groups != "ignored" and any(g > 1 for g in stage.groups)


def _is_permuted(permute: str, stage: StageConfig) -> bool:
    """Whether a pass permutes the tokens: of those with g > 1 all, all but a first one, or none."""
    first = {"always": 0, "second": 1}.get(permute)
    return first is not None and _is_sliced(stage) and any(g > 1 for g in stage.groups[first:])


def _has_norms(network: Network) -> bool:
    return network.has_norm_between or _has_blocks(network)


def _has_blocks(network: Network) -> bool:
    """Whether blocks of a stage are made of norm, mixer and MLP."""
    return any_stage(network, lambda stage: stage.has_norm)


def _of_mixer(
    field: str, meaning: Callable[[StageConfig, Any, Network], Any] = itself
) -> FieldRule[StageConfig]:
    """A field that some token mixers read."""
    readers = [name for name, mixer in MIXERS.items() if field in mixer.facts.fields]
    return FieldRule(
        f"`token_mixer` is {_listed(readers)}", lambda stage: field in stage.facts.fields, meaning
    )


def _listed(names: Sequence[str]) -> str:
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} or {last}" if others else last


def _mixer_in_turn(index: int) -> FieldRule[StageConfig]:
    """The rule of one mixer in a pattern."""
    return FieldRule(meaning=mixer_paths, own=MIXERS, misfit=item_misfit)


def _groups_of_pass(index: int) -> FieldRule[StageConfig]:
    """The rule of one number in `groups`."""
    return FieldRule(
        "`token_mixer` is not `identity`, and there is such a pass",
        lambda stage: (
            stage.facts.groups != "ignored" and (stage.passes is None or index < stage.passes)
        ),
        misfit=number_misfit,
    )


_WHOLE = _listed(names_with("whole"))
_IN_BLOCKS = f"a stage has another mixer than {_WHOLE}"

NETWORK_RULES: dict[str, FieldRule[Network]] = {
    "name": FieldRule("never", lambda network: False),
    "img_size": FieldRule(meaning=square),
    "stem.width": FieldRule("`stem.kind` is `deepvit`", lambda n: n.stem.kind == "deepvit"),
    "stem.convs": FieldRule(
        "`stem.kind` is `conv`",
        lambda network: network.stem.kind == "conv",
        lambda network, count, _: None if count == max(1, network.stem.halvings) else count,
    ),
    "stem.pools": FieldRule(
        "`stem.kind` is `conv`, of stride 2 or more",
        lambda network: network.stem.kind == "conv" and network.stem.halvings > 0,
        misfit=pools_misfit,
        is_limit=True,
    ),
    **{
        f"stem.{name}": FieldRule("`stem.kind` is `conv`", lambda n: n.stem.kind == "conv")
        for name in ("act", "filters")
    },
    "stem.widths": FieldRule(
        "`stem.kind` is `conv`, with two convolutions or more",
        lambda network: network.stem.kind == "conv" and network.stem.convolutions > 1,
        named_widths,
    ),
    "downsample": FieldRule("there are two stages or more", lambda n: len(n.stages) > 1),
    "pooling": FieldRule(
        "`stem.pools` above 0 matters, or `downsample` is `maxpool`, `vgg` or `crelu`, with two "
        "stages or more",
        lambda network: network.has_pooling,
    ),
    **{
        f"downsample_{name}": FieldRule(
            "`downsample` is `mbconv`, with two stages or more",
            lambda network: network.downsample == "mbconv" and len(network.stages) > 1,
        )
        for name in ("expansion", "se_ratio")
    },
    "permute": FieldRule("a pass has g > 1", lambda network: any_stage(network, _is_sliced)),
    "permute_inverse": FieldRule(
        "a pass with g > 1 permutes the tokens",
        lambda network: any_stage(network, partial(_is_permuted, network.permute)),
    ),
    "residual": FieldRule(
        "a stage has no `residual` of its own",
        lambda network: any_stage(network, lambda stage: stage.residual is None),
    ),
    "norm": FieldRule(
        f"a stage of another mixer than {_WHOLE} has no `norm` of its own, or `stem.kind` is "
        "`metaformer` or `shifted`, or `downsample` is `metaformer` or `cvt`",
        lambda network: (
            network.has_norm_between
            or any_stage(network, lambda stage: stage.norm is None and stage.has_norm)
        ),
    ),
    "norm_eps": FieldRule(f"{_IN_BLOCKS}, or `norm` matters", _has_norms),
    **{
        name: FieldRule(_IN_BLOCKS, _has_blocks)
        for name in ("mlp_act", "mlp_bias", "proj_drop_rate")
    },
    "distillation_token": FieldRule(
        "`class_token` is true", lambda network: network.class_token, misfit=distillation_misfit
    ),
    "global_pool": FieldRule(
        meaning=lambda network, pool, _: pool or ("token" if network.class_token else "avg"),
        own=("avg", "token", "flatten"),
        misfit=pool_misfit,
    ),
    "head.kind": FieldRule(own=("linear", "mlp"), misfit=head_misfit),
    "head.norm_eps": FieldRule(
        "`head.norm` is `layernorm`", lambda network: network.head.norm == "layernorm"
    ),
    "head.mlp_norm_eps": FieldRule("`head.kind` is `mlp`", lambda n: n.head.kind == "mlp"),
    "attn_drop_rate": FieldRule("a stage has attention", _has_attention),
    "temperature.kind": FieldRule(
        "a stage has attention", _has_attention, linear_or_none, own=("none", "learnable")
    ),
    "temperature.last": FieldRule(
        "`temperature.kind` is `linear`, with two attention blocks or more",
        lambda network: network.temperature.kind == "linear" and falls(network),
    ),
    "reattention_blocks": FieldRule(
        f"the last stage with {_listed(names_with('reattention'))} has g = 1 in every pass",
        lambda network: reattention_limit(network) > 0,
        misfit=too_many_blocks,
        is_limit=True,
    ),
    **{
        f"reattention.{name}": FieldRule(
            "`reattention_blocks` above 0", lambda network: network.reattention_blocks > 0
        )
        for name in ReattentionConfig.model_fields
    },
    "reattention.norm_eps": FieldRule(
        "`reattention_blocks` above 0, and `reattention.norm` is `layer`",
        lambda network: network.reattention_blocks > 0 and network.reattention.norm == "layer",
    ),
    **{
        f"broad.{name}": FieldRule("`broad.gamma` above 0", lambda n: n.broad.gamma > 0)
        for name in BroadConfig.model_fields
    },
    "broad.layers": FieldRule(
        "`broad.gamma` above 0", lambda network: network.broad.gamma > 0, collected_layers
    ),
    "broad.gamma": FieldRule(
        f"a stage has {_listed(names_with('taps'))} with `stride_kv` 1, and the heads of the last "
        "of these divide the last width",
        lambda network: broad_problem(network) is None,
    ),
}
"""By address in a model file."""

STAGE_RULES: dict[str, FieldRule[StageConfig]] = {
    "token_mixer": FieldRule(meaning=mixer_paths, own=MIXERS, misfit=mixer_misfit),
    "token_mixer.pattern": FieldRule(meaning=turns, item=_mixer_in_turn),
    "token_mixer.last": FieldRule(meaning=mixer_paths, own=MIXERS, misfit=last_misfit),
    "token_mixer.blocks": FieldRule(
        "`last` is given",
        lambda stage: isinstance(m := stage.token_mixer, MixerPattern) and m.last is not None,
        misfit=tail_misfit,
        is_limit=True,
    ),
    "depth": FieldRule(
        meaning=lambda stage, depth, _: depth if stage.has_blocks else 1,
        misfit=depth_misfit,
        is_least=True,
    ),
    "attn_dim": FieldRule(
        f"`token_mixer` is {_listed(names_with('heads'))}",
        lambda stage: "attn_dim" in stage.facts.fields,
        lambda stage, width, _: None if width == stage.embed_dim else width,
        misfit=partial(heads_misfit, "attn_dim"),
    ),
    "num_heads": FieldRule(
        f"`token_mixer` is {_listed(names_with('heads'))}",
        lambda stage: stage.facts.heads,
        lambda stage, heads, _: rules.heads_of(stage.attn_width, heads, stage.head_dim),
        misfit=partial(heads_misfit, "num_heads"),
    ),
    "head_dim": FieldRule(
        f"`token_mixer` is {_listed(names_with('heads'))}, and `num_heads` is null",
        lambda stage: stage.facts.heads and stage.num_heads is None,
        lambda stage, dim, _: dim or rules.DEFAULT_HEAD_DIM,
        misfit=partial(heads_misfit, "head_dim"),
    ),
    "passes": FieldRule(misfit=passes_misfit, is_limit=True),
    "groups": FieldRule(meaning=schedule, misfit=schedule_misfit, item=_groups_of_pass),
    "loop": FieldRule(
        "there are two passes and two blocks or more",
        lambda stage: len(stage.groups) > 1 and stage.depth > 1,
    ),
    "mlp_ratio": FieldRule(f"`token_mixer` is not {_WHOLE}", lambda stage: not stage.facts.whole),
    "nll_ratio": FieldRule("there are two passes or more", lambda stage: len(stage.groups) > 1),
    "residual": FieldRule(
        meaning=residual,
        own=get_args(Residual),
    ),
    "norm": FieldRule(
        f"`token_mixer` is not {_WHOLE}",
        lambda stage: stage.has_norm,
        lambda stage, norm, network: norm or network.norm,
        own=("layernorm", "layernorm_nobias", "batchnorm"),
    ),
    "qk_scale": _of_mixer("qk_scale"),
    "attn_act": _of_mixer("attn_act"),
    "mask_diagonal": FieldRule(
        f"`token_mixer` is {_listed(names_with('maps'))}, with a key for each token",
        lambda stage: "mask_diagonal" in stage.facts.fields and stage.key_stride == 1,
    ),
    "kernel_qkv": FieldRule(
        f"`token_mixer` is {_listed(names_with('maps'))}",
        lambda stage: "kernel_qkv" in stage.facts.fields,
        misfit=kernel_misfit,
    ),
    "stride_kv": FieldRule(
        "`kernel_qkv` is given", lambda stage: stage.qkv_kernel > 0, misfit=stride_misfit
    ),
    "key_init": _of_mixer("key_init"),
    "q_proj": FieldRule(
        "`token_mixer` is `ska` or `cska`, and attention is as wide as the stage",
        lambda stage: "q_proj" in stage.facts.fields and stage.attn_width == stage.embed_dim,
    ),
    "key_kernel": _of_mixer("key_kernel"),
    "windows": FieldRule(
        "`token_mixer` is `ska` or `cska`",
        lambda stage: "windows" in stage.facts.fields,
        misfit=windows_misfit,
    ),
    "expansion": _of_mixer(
        "expansion",
        lambda stage, ratio, _: None if ratio == stage.facts.expansion else ratio,
    ),
    "se_ratio": _of_mixer("se_ratio"),
    "conv_act": _of_mixer("conv_act"),
    "kernel_size": _of_mixer(
        "kernel_size", lambda stage, size, _: size or stage.facts.kernel_size or None
    ),
    "tokens_dim": _of_mixer(
        "tokens_dim", lambda stage, dim, _: dim or rules.default_tokens_dim(stage.embed_dim)
    ),
}
"""By address in a stage. `num_heads` stands before `head_dim`, which it replaces."""
