"""What a token mixer costs: parameters, and FLOPs of each pass, from the configuration alone.

`FORMULAS` has one formula for each mixer of vitnas. Another package's mixer has its formula in its
facts, or is built and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from vitnas.config.mixers import Formula, mixer_named
from vitnas.config.model import ModelConfig
from vitnas.config.stage import StageConfig
from vitnas.cost.norms import norm_cost
from vitnas.plugins import load

Cost = tuple[int, list[int]]


def numbers_of_maps(config: ModelConfig, stage: StageConfig) -> int:
    """Parameters between logits and map: the temperature, scale and bias of StarReLU."""
    return (config.temperature.kind == "learnable") + 2 * (stage.attn_act == "star_relu")


def _mhsa(config: ModelConfig, index: int, tokens: int) -> Cost:
    stage = config.stages[index]
    dim, width, keys = stage.embed_dim, stage.attn_width, config.num_keys(index)
    params = 4 * dim * width + config.qkv_bias * 3 * width + config.proj_bias * dim
    params += numbers_of_maps(config, stage) + 3 * stage.qkv_kernel**2 * dim
    linear, maps = 2 * (tokens + keys) * dim * width, 2 * tokens * keys * width
    linear += stage.qkv_kernel**2 * dim * convolved_tokens(config, "mhsa", index)
    return params, [linear + maps // number for number in stage.groups]


def _ska(config: ModelConfig, index: int, tokens: int) -> Cost:
    stage = config.stages[index]
    width, linears = stage.attn_width, 2 + stage.projects_query
    keys, kernel = config.num_keys(index), stage.qkv_kernel**2 * stage.embed_dim
    params = _linears(config, stage, linears) + keys * width + numbers_of_maps(config, stage)
    projected = (linears - 1) * tokens + keys
    flops = width * (projected * stage.embed_dim + 2 * tokens * keys // stage.num_windows)
    flops += kernel * convolved_tokens(config, "ska", index)
    return params + 2 * kernel, [flops] * len(stage.groups)


def _cska(config: ModelConfig, index: int, tokens: int) -> Cost:
    stage = config.stages[index]
    width, linears, kernel = stage.attn_width, 2 + stage.projects_query, stage.key_kernel**2
    patches, keys = tokens - config.class_token, config.num_keys(index)
    before = stage.qkv_kernel**2 * stage.embed_dim
    params = _linears(config, stage, linears) + numbers_of_maps(config, stage) + 2 * before
    params += kernel * keys * width + stage.heads * keys + config.class_token * keys * width
    rows_of_map = kernel * patches + config.class_token  # a class token's row is no convolution
    rows = ((linears - 1) * tokens + keys) * stage.embed_dim
    rows += keys * (tokens + rows_of_map) // stage.num_windows
    flops = width * rows + before * convolved_tokens(config, "cska", index)
    return params, [flops] * len(stage.groups)


def convolved_tokens(config: ModelConfig, mixer: str, index: int) -> int:
    """Outputs of all convolutions before the projections of a block, per channel."""
    prefix, keys = config.num_prefix_tokens, config.num_keys(index)
    return config.num_tokens(index) - prefix + (_convolutions(mixer) - 1) * (keys - prefix)


def _convolutions(mixer: str) -> int:
    """Before query, key and value; a static key has none."""
    return 3 if mixer == "mhsa" else 2


def qkv_norms(config: ModelConfig, mixer: str, index: int) -> tuple[int, int]:
    """FLOPs and parameters of the norms after these convolutions, in one pass through a block."""
    dim, count = config.stages[index].embed_dim, _convolutions(mixer)
    flops, params = norm_cost("batchnorm", dim, convolved_tokens(config, mixer, index))
    return flops, count * params


def lacking_norms(config: ModelConfig, index: int) -> tuple[int, int]:
    """Those of query and key, which a block with another block's map has not."""
    keys, prefix = config.num_keys(index), config.num_prefix_tokens
    tokens = config.num_tokens(index) + keys - 2 * prefix
    flops, params = norm_cost("batchnorm", config.stages[index].embed_dim, tokens)
    return flops, 2 * params


def _linears(config: ModelConfig, stage: StageConfig, count: int) -> int:
    """Parameters of the linear layers of a static-key mixer; the last one is the projection."""
    dim, width = stage.embed_dim, stage.attn_width
    return count * dim * width + config.qkv_bias * (count - 1) * width + config.proj_bias * dim


def _dwconv(config: ModelConfig, index: int, tokens: int) -> Cost:
    stage = config.stages[index]
    hidden = stage.hidden_channels
    weights = 2 * stage.embed_dim * hidden + hidden * stage.kernel**2
    return weights + 2, [tokens * weights] * len(stage.groups)


def _mbconv(config: ModelConfig, index: int, tokens: int) -> Cost:
    """Without its batch norms, which are in `NORMED_CHANNELS`."""
    stage = config.stages[index]
    dim, hidden, squeezed = stage.embed_dim, stage.hidden_channels, stage.se_channels
    inside = inverted_residual(dim, hidden, dim, stage.kernel, squeezed)
    flops = inside.flops(tokens, tokens)
    return inside.params, [flops] * len(stage.groups)


def _mbconv_norms(stage: StageConfig) -> int:
    hidden = stage.hidden_channels
    return (1 + (hidden != stage.embed_dim)) * hidden + stage.embed_dim


class Inverted(NamedTuple):
    """An inverted residual without its batch norms.

    Attributes:
        first, rest: weights of the first convolution, and of the others.
        gates, biases: weights and biases of squeeze-excitation.
    """

    first: int
    rest: int
    gates: int
    biases: int

    @property
    def params(self) -> int:
        return sum(self)

    def flops(self, before: int, after: int) -> int:
        """Of `before` tokens, of which the depthwise convolution leaves `after`."""
        return before * self.first + after * self.rest + self.gates


def inverted_residual(before: int, hidden: int, after: int, kernel: int, squeezed: int) -> Inverted:
    """See `vitnas.nn.layers.inverted_residual`."""
    first = before * hidden if hidden != before else 0
    rest = hidden * (kernel**2 + after)
    return Inverted(first, rest, 2 * hidden * squeezed, hidden + squeezed if squeezed else 0)


def _token_mlp(config: ModelConfig, index: int, tokens: int) -> Cost:
    stage = config.stages[index]
    hidden = stage.hidden_tokens
    weights = 2 * tokens * hidden
    return weights + hidden + tokens, [weights * stage.embed_dim] * len(stage.groups)


def _nothing(config: ModelConfig, index: int, tokens: int) -> Cost:
    return 0, [0] * len(config.stages[index].groups)


FORMULAS: dict[str, Formula] = {
    "mhsa": _mhsa,
    "ska": _ska,
    "cska": _cska,
    "dwconv": _dwconv,
    "mbconv": _mbconv,
    "mlp": _token_mlp,
    "pool": _nothing,
    "identity": _nothing,
    "skip": _nothing,
}

NORMED_CHANNELS: dict[str, Callable[[StageConfig], int]] = {"mbconv": _mbconv_norms}
"""Channels under the batch norms inside a mixer, in one pass."""


def other_formula(name: str) -> Formula:
    """The formula of another package's mixer; without one, a function that builds and counts it."""
    mixer = mixer_named(name)
    if mixer.facts.cost is not None:
        return mixer.facts.cost
    counted: Formula = load(mixer.path).counted
    return counted


def is_counted(name: str) -> bool:
    """Whether a mixer has no closed form, so that it is built and counted."""
    return name not in FORMULAS and mixer_named(name).facts.cost is None


def counted_mixers(configs: Iterable[ModelConfig]) -> list[str]:
    """The mixers of these networks that have no closed form."""
    names = {name for config in configs for stage in config.stages for name in stage.kinds}
    return sorted(name for name in names if is_counted(name))
