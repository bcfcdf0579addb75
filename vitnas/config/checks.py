"""Rules that only the whole network can break."""

from __future__ import annotations

from math import gcd

from vitnas.config import rules
from vitnas.config.findings import RuleError
from vitnas.config.fits import broad_problem, reattention_limit
from vitnas.config.mixers import mixer_named, names_with
from vitnas.config.network import Network
from vitnas.words import plural


def check_network(config: Network) -> None:
    """Raise `RuleError` for the first rule across fields that `config` breaks."""
    _check_resolution(config)
    _check_pooling(config)
    _check_class_token(config)
    for index, stage in enumerate(config.stages):
        problem = rules.groups_fit(stage.kinds, config.num_tokens(index), stage.groups)
        if problem:
            _raise_groups(config, index, problem)
    _check_windows(config)
    _check_stride(config)
    _check_reattention(config)
    _check_broad(config)


def _check_resolution(config: Network) -> None:
    total = config.stem.stride << (len(config.stages) - 1)
    for side in config.image_hw:
        if side % total:
            nearest = max(total, round(side / total) * total)
            rule = f"must be a multiple of {total}: a stem of stride {config.stem.stride}"
            if (later := len(config.stages) - 1) > 0:
                rule += f", and the grid is halved before {plural(later, 'stage')}"
            raise RuleError(rule, "img_size", config.img_size, nearest)


def _check_pooling(config: Network) -> None:
    if problem := rules.flatten_fits(config.global_pool, config.head.kind):
        raise RuleError(problem, "global_pool", "flatten", "avg")


def _check_class_token(config: Network) -> None:
    if config.global_pool == "token" and not config.class_token:
        raise RuleError("needs class_token: true", "global_pool", "token", "avg")
    if not config.class_token:
        return
    kinds = [kind for stage in config.stages for kind in stage.kinds]
    problem = rules.class_token_fits(kinds)
    if problem:
        raise RuleError(problem, "class_token", True, "false")
    problem = rules.distillation_token_fits(kinds, config.pool)
    if problem and config.distillation_token:
        raise RuleError(problem, "distillation_token", True, "false")


def _raise_groups(config: Network, index: int, problem: str) -> None:
    stage = config.stages[index]
    height, width = config.grids[index]
    tokens = config.num_tokens(index)
    nearest = None
    if any(mixer_named(mixer).facts.whole for mixer in stage.kinds):
        nearest = [1]
    elif stage.facts.groups == "refused":
        nearest = [1] * stage.passes
    else:
        problem += f" ({height}x{width} grid at img_size {config.img_size})"
        nearest = [rules.nearest_divisor(tokens, number) for number in stage.groups]
    raise RuleError(problem, f"stages[{index}].groups", list(stage.groups), nearest)


def _check_windows(config: Network) -> None:
    for index, stage in enumerate(config.stages):
        if stage.num_windows == 1:
            continue
        problem = rules.windows_fit(stage.windows, config.grids[index], config.class_token)
        if problem:
            side = 1 if config.class_token else gcd(*config.grids[index])
            nearest = rules.nearest_divisor(side, stage.windows)
            raise RuleError(problem, f"stages[{index}].windows", stage.windows, nearest)


def _check_stride(config: Network) -> None:
    for index, stage in enumerate(config.stages):
        windows = stage.windows if stage.num_windows > 1 else 1
        problem = rules.stride_fits(stage.key_stride, stage.groups, windows)
        if problem:
            raise RuleError(problem, f"stages[{index}].stride_kv", stage.stride_kv, 1)


def _check_reattention(config: Network) -> None:
    wanted = config.reattention_blocks
    if not wanted:
        return
    mixed = " or ".join(names_with("reattention"))
    if not any(stage.facts.reattention for stage in config.stages):
        rule = f"re-attention needs a stage with {mixed}, and there is none"
        raise RuleError(rule, "reattention_blocks", wanted, 0)
    limit = reattention_limit(config)
    if wanted > limit:
        rule = f"only the last {limit} {mixed} blocks of this network have g = 1 in every pass"
        raise RuleError(rule, "reattention_blocks", wanted, limit)
    if config.reattention.source == "shared":
        _check_shared_map(config)


def _check_shared_map(config: Network) -> None:
    """The last k blocks and the block whose map they use are in one stage with a single pass."""
    last = max(i for i, stage in enumerate(config.stages) if stage.facts.reattention)
    sharing = " or ".join(names_with("shares_maps"))
    if not config.stages[last].facts.shares_maps:
        rule = f"only {sharing} can use shared maps"
        raise RuleError(rule, "reattention.source", "shared", "own")
    limit = config.stages[last].count("reattention") - 1
    if config.reattention_blocks > limit:
        rule = f"shared maps come from an earlier block of the stage: at most {limit} here"
        raise RuleError(rule, "reattention_blocks", config.reattention_blocks, limit)
    if config.stages[last].passes > 1:
        rule = "shared maps need blocks with a single pass"
        raise RuleError(rule, "reattention.source", "shared", "own")
    if config.broad.gamma:
        rule = "broad attention needs queries and keys, and blocks with shared maps have none"
        raise RuleError(rule, "reattention.source", "shared", "own")


def _check_broad(config: Network) -> None:
    if not config.broad.gamma:
        return
    problem = broad_problem(config)
    if problem:
        raise RuleError(problem, "broad.gamma", config.broad.gamma, 0)
