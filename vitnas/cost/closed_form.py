"""FLOPs and parameters of a network from its configuration alone: no torch, microseconds.

`flops` is what fvcore counts for one image in eval mode. A multiply-add counts 1; LayerNorm counts
5 and BatchNorm 2 for each element; element-wise operations, means and softmax count 0. The FLOPs of
a block count in each pass, its parameters once. `vitnas.cost.counter` counts the built network; the
tests check that both agree for every kind of configuration.

Letters: N tokens, C channels, h heads, g groups, L passes. Formulas of token mixers, stems and
norms are in `mixers`, `stems` and `norms`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from vitnas.config.model import ModelConfig
from vitnas.config.parts import POOLED, Residual
from vitnas.config.rules import halved
from vitnas.config.stage import StageConfig
from vitnas.cost.mixers import (
    FORMULAS,
    NORMED_CHANNELS,
    inverted_residual,
    lacking_norms,
    numbers_of_maps,
    other_formula,
    qkv_norms,
)
from vitnas.cost.norms import BATCH_NORM, LAYER_NORM, norm_cost
from vitnas.cost.stems import BLUR, stem_cost

_RESIDUALS: dict[Residual, int] = {"plain": 0, "lrc": 2, "lrc_branch": 1, "lrc_identity": 1}
"""Parameters of a residual connection; `scale` has one for each channel."""


class Row(NamedTuple):
    """What one kind of part costs in one stage, all its blocks and passes together.

    Attributes:
        stage: index of the stage; None for what is before or after all stages.
        kind: stem, pos_embed, class_token, downsample, a token mixer's name, reattention, mlp, nll,
            norm, residual, broad or head. All norms are in `norm`, also those of stem and head.
        flops: for one image.
        params: numbers to learn, without running statistics.
        passes: L of the stage's blocks.
        shared_params: those of `params` that more than one pass uses.
        reused_flops: those of `flops` in the second pass and later, by weights that an earlier pass
            has used.
    """

    stage: int | None
    kind: str
    flops: int
    params: int
    passes: int = 1
    shared_params: int = 0
    reused_flops: int = 0


@dataclass(frozen=True)
class Cost:
    """FLOPs and parameters of a network, part by part."""

    rows: tuple[Row, ...]
    flops: int
    num_params: int

    @property
    def norm_flops(self) -> int:
        """FLOPs of normalisation layers, which other counters leave out."""
        return sum(row.flops for row in self.rows if row.kind == "norm")

    @property
    def shared_params(self) -> int:
        """Parameters that more than one pass uses."""
        return sum(row.shared_params for row in self.rows)

    @property
    def reused_flops(self) -> int:
        """FLOPs done in second and later passes by weights that an earlier pass has used."""
        return sum(row.reused_flops for row in self.rows)


def closed_form(config: ModelConfig) -> Cost:
    """The cost of `config` by formulas, in time proportional to its stages."""
    rows = _rows(config)
    return Cost(tuple(rows), sum([row[2] for row in rows]), sum([row[3] for row in rows]))


def _rows(config: ModelConfig) -> list[Row]:
    rows = _stem(config)
    for index, stage in enumerate(config.stages):
        if index:
            rows += _downsample(config, index)
        if index and config.class_token:
            rows.append(_widened_token(config, index))
        if config.pos_embed == "conditional":
            rows.append(_conditional_position(config, index))
        for mixer in stage.kinds:
            rows += _blocks(config.only(index, mixer), mixer, index)
        rows += _nlls(config, stage, index)
    if config.broad.gamma:
        rows.append(_broad(config))
    rows += _head(config)
    return rows


# Before the stages


def _stem(config: ModelConfig) -> list[Row]:
    dim, cost = config.stages[0].embed_dim, stem_cost(config)
    rows = [Row(None, "stem", cost.flops, cost.params)]
    if cost.norm_params:
        rows.append(Row(None, "norm", cost.norm_flops, cost.norm_params))
    if config.class_token:
        rows.append(Row(None, "class_token", 0, config.num_prefix_tokens * dim))
    if config.pos_embed == "learned":
        rows.append(Row(None, "pos_embed", 0, config.num_tokens(0) * dim))
    return rows


def _downsample(config: ModelConfig, index: int) -> list[Row]:
    before, after = config.stages[index - 1].embed_dim, config.stages[index].embed_dim
    height, width = config.grids[index]
    if config.downsample in ("separable", "mbconv"):
        return _inverted_downsample(config, index, before, after)
    if config.downsample in POOLED:
        is_first = config.downsample != "maxpool"  # before the pooling, at four times the places
        filters = halved(after) if config.downsample == "crelu" else after
        weights = (9 if is_first else 1) * before * filters
        tokens = (4 if is_first else 1) * height * width
        norm = Row(index, "norm", *norm_cost("batchnorm", filters, tokens))
        blurred = (after if is_first else before) if config.pooling == "max_blur" else 0
        flops = weights * tokens + BLUR * blurred * height * width
        return [Row(index, "downsample", flops, weights), norm]
    weights = 4 if config.downsample == "patch" else 9
    weights *= before * after
    if config.downsample == "conv":
        weights //= math.gcd(before, after)
    rows = [Row(index, "downsample", weights * height * width, weights + after)]
    if config.downsample == "metaformer":
        rows.append(Row(index, "norm", *norm_cost(config.norm, before, 4 * height * width)))
    if config.downsample == "cvt":
        rows.append(Row(index, "norm", *norm_cost(config.norm, after, height * width)))
    return rows


def _widened_token(config: ModelConfig, index: int) -> Row:
    """The linear layer that takes the tokens before the grid to the width of stage `index`."""
    weights = config.stages[index - 1].embed_dim * (after := config.stages[index].embed_dim)
    return Row(index, "class_token", config.num_prefix_tokens * weights, weights + after)


def _inverted_downsample(config: ModelConfig, index: int, before: int, after: int) -> list[Row]:
    height, width = config.grids[index]
    tokens = height * width
    hidden, squeezed = config.downsample_channels(index)
    inside = inverted_residual(before, hidden, after, 3, squeezed)
    expanded = hidden if inside.first else 0
    flops, params = norm_cost("batchnorm", hidden + after, tokens)
    more_flops, more_params = norm_cost("batchnorm", expanded, 4 * tokens)
    return [
        Row(index, "downsample", inside.flops(4 * tokens, tokens), inside.params),
        Row(index, "norm", flops + more_flops, params + more_params),
    ]


def _conditional_position(config: ModelConfig, index: int) -> Row:
    dim, (height, width) = config.stages[index].embed_dim, config.grids[index]
    return Row(index, "pos_embed", 9 * dim * height * width, 10 * dim)


# Inside a stage


def _blocks(config: ModelConfig, mixer: str, index: int) -> list[Row]:
    """The blocks of a stage that have `mixer`, which are all that `config` has in this stage."""
    stage = config.stages[index]
    dim, depth, tokens = stage.embed_dim, stage.depth, config.num_tokens(index)
    passes, branches, is_whole = len(stage.groups), 1, stage.facts.whole
    formula = FORMULAS.get(mixer) or other_formula(mixer)
    params, of_passes = formula(config, index, tokens)
    every, first = sum(of_passes), of_passes[0]
    rows = [_shared(index, mixer, passes, depth, every, first, params)]
    if config.map_source is not None and config.reattention_plan[index]:
        rows[0] = _without_own_maps(config, stage, rows[0], tokens)
    if stage.mlp_ratio and not is_whole:
        branches = 2
        flops, params = _mlp(config, dim, stage.mlp_ratio, tokens)
        rows.append(_shared(index, "mlp", passes, depth, passes * flops, flops, params))
    norm_flops, norm_params = norm_cost(stage.norm or config.norm, dim, tokens)
    flops, params = branches * norm_flops, branches * norm_params
    if is_whole:
        flops, params = _inner_norms(stage, mixer, tokens)
    if params:
        rows.append(_shared(index, "norm", passes, depth, passes * flops, flops, params))
    if stage.qkv_kernel:
        flops, params = qkv_norms(config, mixer, index)
        norms = _shared(index, "norm", passes, depth, passes * flops, flops, params)
        if config.map_source is not None:
            flops, params = lacking_norms(config, index)
            blocks = config.reattention_plan[index]
            norms = norms._replace(
                flops=norms.flops - blocks * flops, params=norms.params - blocks * params
            )
        rows.append(norms)
    residual = stage.residual or config.residual
    per_residual = _RESIDUALS.get(residual, dim)
    if per_residual and stage.has_blocks:
        rows.append(_shared(index, "residual", passes, depth, 0, 0, branches * per_residual))
    if config.reattention_plan[index]:
        rows += _reattention(config, stage, index, tokens)
    return rows


def _nlls(config: ModelConfig, stage: StageConfig, index: int) -> list[Row]:
    count, passes = stage.num_nlls, len(stage.groups)
    if not count:
        return []
    dim, tokens = stage.embed_dim, config.num_tokens(index)
    flops, params = _mlp(config, dim, stage.nll_ratio, tokens)
    norm_flops, norm_params = norm_cost(stage.norm or config.norm, dim, tokens)
    rows = [
        Row(index, "nll", count * flops, count * params, passes),
        Row(index, "norm", count * norm_flops, count * norm_params, passes),
    ]
    per_residual = _RESIDUALS.get(config.residual_of(stage), dim)
    return rows + [Row(index, "residual", 0, count * per_residual, passes)] * bool(per_residual)


def _shared(
    index: int, kind: str, passes: int, blocks: int, every: int, first: int, params: int
) -> Row:
    """A part of `blocks` blocks: FLOPs of all passes and of the first one, and parameters, each
    of one block."""
    params *= blocks
    shared = params if passes > 1 else 0
    return Row(index, kind, blocks * every, params, passes, shared, blocks * (every - first))


def _mlp(config: ModelConfig, dim: int, ratio: float, tokens: int) -> tuple[int, int]:
    hidden = int(ratio * dim)
    weights = 2 * dim * hidden
    params = weights + config.mlp_bias * (hidden + dim) + 2 * (config.mlp_act == "star_relu")
    return tokens * weights, params


def _reattention(config: ModelConfig, stage: StageConfig, index: int, tokens: int) -> list[Row]:
    heads, passes, blocks = stage.heads, len(stage.groups), config.reattention_plan[index]
    pairs = tokens * config.num_keys(index)
    flops, params = heads * heads * pairs, heads * heads
    params += config.reattention.bias * heads
    rows = [_shared(index, "reattention", passes, blocks, passes * flops, flops, params)]
    if config.reattention.norm != "none":
        flops = BATCH_NORM if config.reattention.norm == "batch" else LAYER_NORM
        flops *= heads * pairs
        rows.append(_shared(index, "norm", passes, blocks, passes * flops, flops, 2 * heads))
    return rows


def _without_own_maps(config: ModelConfig, stage: StageConfig, row: Row, tokens: int) -> Row:
    """Re-attention blocks with another block's map have no query, key, logits or activation."""
    dim, width, index = stage.embed_dim, stage.attn_width, row.stage or 0
    blocks, keys, kernel = config.reattention_plan[index], config.num_keys(index), stage.qkv_kernel
    params = 2 * dim * width + config.qkv_bias * 2 * width + numbers_of_maps(config, stage)
    params += 2 * kernel**2 * dim
    flops = (tokens + keys) * dim * width + tokens * keys * width
    flops += kernel**2 * dim * (tokens + keys - 2 * config.num_prefix_tokens)
    return row._replace(flops=row.flops - blocks * flops, params=row.params - blocks * params)


def _inner_norms(stage: StageConfig, mixer: str, tokens: int) -> tuple[int, int]:
    """FLOPs and parameters of the batch norms inside a mixer that is a whole block."""
    inside = NORMED_CHANNELS.get(mixer)
    return norm_cost("batchnorm", inside(stage), tokens) if inside else (0, 0)


# After the stages


def _broad(config: ModelConfig) -> Row:
    """N^2 C (L + 1): logits of L layers, then one attention over values that are pooled first."""
    last = len(config.stages) - 1
    layers = len(config.broad_sources) if config.broad.with_qk else 1
    tokens, dim = config.num_tokens(last), config.stages[last].embed_dim
    return Row(None, "broad", tokens * tokens * dim * (layers + 1), 0)


def _head(config: ModelConfig) -> list[Row]:
    """The last norm, if any, is over the mean of the tokens, else over each of them.

    A distillation token has a classifier of its own.
    """
    dim, classes = config.stages[-1].embed_dim, config.num_classes
    tokens = 1 if config.pool == "avg" else config.num_tokens(len(config.stages) - 1)
    normed, heads = config.head.norm == "layernorm", 1 + config.has_distillation_token
    norm_flops, norm_params = normed * LAYER_NORM * tokens * dim, normed * 2 * dim
    flops, params = config.head_width * classes, classes
    if config.head.kind == "mlp":
        hidden = 4 * dim
        norm_flops += heads * LAYER_NORM * hidden
        norm_params += heads * 2 * hidden
        flops, params = dim * hidden + hidden * classes, hidden + classes
    return [
        Row(None, "norm", norm_flops, norm_params),
        Row(None, "head", heads * flops, heads * (flops + params)),
    ]
