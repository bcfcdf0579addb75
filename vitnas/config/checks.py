"""What only the whole network can tell: rules across stages, and which fields matter.

`MATTERS` is read twice: the canonical form resets a field that cannot matter to its default, and
a space does not ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from vitnas.config import rules
from vitnas.config.files import RuleError
from vitnas.config.mixers import MIXERS, MixerFacts, mixer_named, names_with

if TYPE_CHECKING:
    from vitnas.config.model import ModelConfig


class StageView(Protocol):
    """What has to be known of a stage to say which of its fields matter."""

    @property
    def token_mixer(self) -> str: ...
    @property
    def facts(self) -> MixerFacts: ...
    @property
    def groups(self) -> Sequence[int]: ...
    @property
    def heads(self) -> int: ...
    @property
    def embed_dim(self) -> int: ...


_StageRule = Callable[[StageView], bool]


def _read_by_mixer(field: str) -> _StageRule:
    return lambda stage: field in stage.facts.fields


_OF_MIXERS = ("qk_scale", "key_init", "q_proj", "expansion", "kernel_size", "tokens_dim")
STAGE_MATTERS: dict[str, _StageRule] = {
    "num_heads": lambda stage: stage.facts.heads,
    "head_dim": lambda stage: stage.facts.heads,
    **{field: _read_by_mixer(field) for field in _OF_MIXERS},
    "nll_ratio": lambda stage: len(stage.groups) > 1,
}


def broad_fits(stages: Sequence[StageView]) -> str | None:
    """Why broad attention is impossible over these stages, or None."""
    sources = [stage for stage in stages if stage.facts.taps]
    if not sources:
        names = " and ".join(names_with("taps"))
        return f"broad attention collects from {names}, and no stage has either"
    heads, width = sources[-1].heads, stages[-1].embed_dim
    if heads and width % heads:
        return (
            f"the {heads} heads of the last {sources[-1].token_mixer} stage do not divide "
            f"the last width {width}"
        )
    return None


def check_network(config: ModelConfig) -> None:
    """Raise `RuleError` for the first rule across fields that `config` breaks."""
    _check_resolution(config)
    _check_class_token(config)
    for index, stage in enumerate(config.stages):
        problem = rules.groups_fit(stage.token_mixer, config.num_tokens(index), stage.groups)
        if problem:
            _raise_groups(config, index, problem)
    _check_reattention(config)
    _check_broad(config)


def _check_resolution(config: ModelConfig) -> None:
    total = config.stem.stride << (len(config.stages) - 1)
    for side in config.image_hw:
        if side % total:
            nearest = max(total, round(side / total) * total)
            rule = (
                f"must be a multiple of {total}: a stem of stride {config.stem.stride} and "
                f"{len(config.stages)} stages that halve"
            )
            raise RuleError(rule, "img_size", config.img_size, nearest)


def _check_class_token(config: ModelConfig) -> None:
    if config.global_pool == "token" and not config.class_token:
        raise RuleError("needs class_token: true", "global_pool", "token", "avg")
    if not config.class_token:
        return
    if len(config.stages) > 1:
        rule = "a class token cannot pass a downsampling layer: one stage only, or pool the tokens"
        raise RuleError(rule, "class_token", True, "false")
    if config.stages[0].facts.grid:
        rule = f"{config.stages[0].token_mixer} reads a grid of tokens: no class token"
        raise RuleError(rule, "class_token", True, "false")


def _raise_groups(config: ModelConfig, index: int, problem: str) -> None:
    stage = config.stages[index]
    height, width = config.grids[index]
    tokens = config.num_tokens(index)
    nearest = None
    if stage.facts.groups == "refused":
        nearest = [1] * stage.passes
    else:
        problem += f" ({height}x{width} grid at img_size {config.img_size})"
        nearest = [rules.nearest_divisor(tokens, number) for number in stage.groups]
    raise RuleError(problem, f"stages[{index}].groups", list(stage.groups), nearest)


def _check_reattention(config: ModelConfig) -> None:
    wanted = config.reattention_blocks
    if not wanted:
        return
    if not any(stage.facts.reattention for stage in config.stages):
        rule = "re-attention mixes the maps of mhsa, and no stage has mhsa"
        raise RuleError(rule, "reattention_blocks", wanted, 0)
    limit = rules.reattention_limit([(s.token_mixer, s.depth, s.groups) for s in config.stages])
    if wanted > limit:
        rule = f"only the last {limit} mhsa blocks of this network have g = 1 in every pass"
        raise RuleError(rule, "reattention_blocks", wanted, limit)
    if config.reattention.source == "shared":
        _check_shared_map(config)


def _check_shared_map(config: ModelConfig) -> None:
    """The last k blocks and the one whose map they use stand in one stage, passed once."""
    last = max(i for i, stage in enumerate(config.stages) if stage.facts.reattention)
    if config.stages[last].token_mixer != "mhsa":
        raise RuleError("mhsa alone can use shared maps", "reattention.source", "shared", "own")
    limit = config.stages[last].depth - 1
    if config.reattention_blocks > limit:
        rule = f"shared maps come from an mhsa block of the same stage: at most {limit} here"
        raise RuleError(rule, "reattention_blocks", config.reattention_blocks, limit)
    if config.stages[last].passes > 1:
        rule = "shared maps are for blocks that are passed once"
        raise RuleError(rule, "reattention.source", "shared", "own")
    if config.broad.gamma:
        rule = "broad attention collects a query and a key, which blocks with shared maps lack"
        raise RuleError(rule, "reattention.source", "shared", "own")


def _check_broad(config: ModelConfig) -> None:
    if not config.broad.gamma:
        return
    problem = broad_fits(config.stages)
    if problem:
        raise RuleError(problem, "broad.gamma", config.broad.gamma, 0)


def canonical(config: ModelConfig) -> ModelConfig:
    """See `ModelConfig.canonical`."""
    stages = tuple(_canonical_stage(config, index) for index in range(len(config.stages)))
    changes: dict[str, Any] = {
        "name": "network",
        "img_size": config.image_hw[0] if len(set(config.image_hw)) == 1 else config.image_hw,
        "stages": stages,
        "residual": "plain",
        "global_pool": config.pool,
        "drop_path_rate": config.drop_path_rate,
    }
    changes["stem"] = _canonical_stem(config)
    if config.head.kind != "mlp":
        changes["head"] = type(config.head)(norm_eps=config.head.norm_eps)
    if not any(stage.facts.maps for stage in stages):
        changes |= {"attn_drop_rate": 0.0, "temperature": type(config.temperature)()}
    elif config.temperature.kind != "linear":
        changes["temperature"] = type(config.temperature)(kind=config.temperature.kind)
    elif len(set(config.attention_span)) == 1:
        changes["temperature"] = type(config.temperature)()
    if len(config.stages) == 1:
        changes["downsample"] = "conv"
    if all(number == 1 for stage in stages for number in stage.groups):
        changes["permute"] = "always"
    if not config.reattention_blocks:
        changes["reattention"] = type(config.reattention)()
    if not config.broad.gamma:
        changes["broad"] = type(config.broad)()
    return config.model_copy(update=changes)


def _canonical_stem(config: ModelConfig) -> Any:
    stem, dim = config.stem, config.stages[0].embed_dim
    plain = stem.model_copy(update={"widths": None})
    changes: dict[str, Any] = {}
    if stem.kind != "deepvit":
        changes["width"] = 64
    if stem.kind != "conv" or stem.conv_widths(dim) == plain.conv_widths(dim):
        changes["widths"] = None
    return stem.model_copy(update=changes)


def _canonical_stage(config: ModelConfig, index: int) -> Any:
    stage = config.stages[index]
    fields = type(stage).model_fields
    changes: dict[str, Any] = {
        name: fields[name].default for name, rule in STAGE_MATTERS.items() if not rule(stage)
    }
    changes |= {"residual": config.residual_of(stage), "head_dim": None}
    changes["num_heads"] = stage.heads or None
    if stage.token_mixer not in MIXERS:  # an announced name and its path are one mixer
        changes["token_mixer"] = mixer_named(stage.token_mixer).path
    if stage.facts.groups == "ignored":
        changes["groups"] = (1,) * len(stage.groups)
    if "kernel_size" in stage.facts.fields:
        changes["kernel_size"] = stage.kernel
    if "tokens_dim" in stage.facts.fields:
        changes["tokens_dim"] = stage.hidden_tokens
    return stage.model_copy(update=changes)
