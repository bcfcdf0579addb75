"""What fits a network, as far as it is known: why a value cannot be in its place."""

from __future__ import annotations

from typing import Any

from vitnas.config import rules
from vitnas.config.mixers import mixer_name, names_with
from vitnas.config.network import Network
from vitnas.config.pattern import MixerPattern
from vitnas.config.stage import StageConfig


def broad_problem(network: Network) -> str | None:
    """Why broad attention is impossible over these stages, or None."""
    sources = [stage for stage in network.stages if stage.taps]
    if not sources:
        names = " and ".join(names_with("taps"))
        return f"broad attention collects from {names} with stride_kv 1, and no stage has either"
    heads, width = sources[-1].heads, network.stages[-1].embed_dim
    if heads and width % heads:
        return (
            f"the {heads} heads of the last {sources[-1].token_mixer!s} stage do not divide "
            f"the last width {width}"
        )
    return None


def pools_misfit(network: Network, pools: int, _: Network) -> str | None:
    """There are more poolings than the stem halves the grid."""
    return rules.pools_fit(pools, network.stem.stride)


def reattention_limit(network: Network) -> int:
    """How many of the last blocks with maps to mix can take re-attention."""
    return rules.reattention_limit([(s.count("reattention"), s.groups) for s in network.stages])


def schedule_misfit(stage: StageConfig, groups: tuple[int, ...], network: Network) -> str | None:
    """A number in `groups` does not divide the tokens, or does not suit the mixer."""
    schedule = rules.schedule_of(groups, stage.passes)
    problem = rules.groups_fit(stage.kinds, network.tokens_of(stage), schedule)
    return problem or rules.stride_fits(_stride_of(stage), schedule)


def number_misfit(stage: StageConfig, number: int, network: Network) -> str | None:
    """A number of groups does not divide the tokens, or does not suit the mixer or its keys."""
    problem = rules.groups_fit(stage.kinds, network.tokens_of(stage), (number,))
    return problem or rules.stride_fits(_stride_of(stage), (number,))


def stride_misfit(stage: StageConfig, stride: int, network: Network) -> str | None:
    """Fewer keys than tokens cannot be sliced."""
    known = stage.__dict__
    if stride == 1 or not stage.qkv_kernel:
        return None
    windows = known.get("windows", 1) if "windows" in stage.facts.fields else 1
    return rules.stride_fits(stride, known.get("groups", (1,)), windows)


def kernel_misfit(stage: StageConfig, kernel: int | None, network: Network) -> str | None:
    """With a kernel the stride of the keys matters, and may be impossible."""
    known = stage.__dict__
    if kernel is None or "kernel_qkv" not in stage.facts.fields:
        return None
    windows = known.get("windows", 1) if "windows" in stage.facts.fields else 1
    return rules.stride_fits(known.get("stride_kv", 1), known.get("groups", (1,)), windows)


def _stride_of(stage: StageConfig) -> int:
    """Of the keys, as far as it is known; 1 while it is not."""
    known = stage.__dict__
    if not known.get("kernel_qkv") or "kernel_qkv" not in stage.facts.fields:
        return 1
    stride: int = known.get("stride_kv", 1)
    return stride


def passes_misfit(stage: StageConfig, passes: int, network: Network) -> str | None:
    """A mixer that is passed once has no second pass."""
    return rules.groups_fit(stage.kinds, 1, (1,) * passes)


def mixer_misfit(stage: StageConfig, mixer: Any, network: Network) -> str | None:
    """A class token has no place in a grid, and a pattern may be longer than the stage.

    An unknown mixer is refused elsewhere.
    """
    if isinstance(mixer, MixerPattern):
        known = tuple(name for name in (*mixer.pattern, mixer.__dict__.get("last")) if name)
        return _pattern_problem(mixer, stage.depth) or _token_problem(known, network)
    return _token_problem((mixer_name(mixer),), network)


def _token_problem(mixers: tuple[str, ...], network: Network) -> str | None:
    if not all(mixers) or not network.class_token:
        return None
    return rules.class_token_fits(mixers, network.num_prefix_tokens)


def pool_misfit(network: Network, pool: str | None, _: Network) -> str | None:
    """The classifier cannot see every place."""
    return rules.flatten_fits(pool, network.head.kind)


def head_misfit(network: Network, kind: str, _: Network) -> str | None:
    """This classifier cannot see every place."""
    return rules.flatten_fits(network.global_pool, kind)


def distillation_misfit(network: Network, wanted: bool, _: Network) -> str | None:
    """A mixer has no key for a second token, or nothing reads the tokens."""
    kinds = [kind for stage in network.stages for kind in stage.kinds]
    return rules.distillation_token_fits(kinds, network.pool) if wanted else None


def depth_misfit(stage: StageConfig, depth: int, _: Network) -> str | None:
    """The stage's mixers need more blocks."""
    mixer = stage.token_mixer
    return None if isinstance(mixer, str) else _pattern_problem(mixer, depth)


def last_misfit(stage: StageConfig, last: str | None, network: Network) -> str | None:
    """The mixer is one of the pattern, or there is no block for it."""
    pattern = _pattern_of(stage)
    if last is None:
        return None
    if last in pattern.pattern:
        return f"{last} is in the pattern already"
    tail = pattern.__dict__.get("blocks", 1)
    return _token_problem((last,), network) or _pattern_problem(pattern, stage.depth, tail)


def item_misfit(stage: StageConfig, mixer: str, network: Network) -> str | None:
    """A mixer in a pattern is the last blocks', or reads a grid beside a class token."""
    if mixer == _pattern_of(stage).last:
        return f"{mixer} is the last blocks' mixer already"
    return _token_problem((mixer,), network)


def tail_misfit(stage: StageConfig, blocks: int, _: Network) -> str | None:
    """Too few blocks are left for the pattern."""
    return _pattern_problem(_pattern_of(stage), stage.depth, blocks)


def _pattern_of(stage: StageConfig) -> MixerPattern:
    assert isinstance(stage.token_mixer, MixerPattern)
    return stage.token_mixer


def _pattern_problem(mixer: MixerPattern, depth: int, tail: int | None = None) -> str | None:
    """See `MixerPattern.problem`; what is not known of the last blocks needs as few as it can."""
    if tail is None:
        known = mixer.__dict__
        tail = known.get("blocks", 1) if known.get("last") else 0
    problem = mixer.problem(depth, tail)
    return f"{problem[1]} = {problem[2]}: {problem[0]}" if problem else None


def heads_misfit(field: str, stage: StageConfig, value: int | None, _: Network) -> str | None:
    """The value of `field` does not divide the width, or not together with the other one."""
    known = {name: stage.__dict__.get(name) for name in ("num_heads", "head_dim", "attn_dim")}
    problem = rules.heads_problem(stage.embed_dim, **{**known, field: value})
    if not problem or not (known.keys() - {field}) <= stage.__dict__.keys():
        return None
    rule, where, wrong, _nearest = problem
    return f"{where} = {wrong}: {rule}"


def windows_misfit(stage: StageConfig, windows: int, network: Network) -> str | None:
    """The grid cannot be cut into so many windows."""
    if windows == 1:
        return None
    problem = rules.windows_fit(windows, network.grid_of(stage), network.class_token)
    return problem or rules.stride_fits(_stride_of(stage), windows=windows)


def too_many_blocks(network: Network, count: int, _: Network) -> str | None:
    """There are fewer blocks that can have re-attention."""
    limit = reattention_limit(network)
    return None if count <= limit else f"at most {limit} blocks can have re-attention"
