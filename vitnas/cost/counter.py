"""FLOPs and parameters of a network by building it and counting."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from vitnas.config.model import ModelConfig
from vitnas.cost.operators import count_operators
from vitnas.nn import build_model
from vitnas.nn.layers.shuffle import TokenShuffle


@dataclass(frozen=True)
class MeasuredCost:
    """What was counted on a built network.

    Attributes:
        flops: multiply-adds for one image, norms included.
        num_params: numbers to learn; a shared one counts once.
        by_operator: `flops` by fvcore's names of operators.
    """

    flops: int
    num_params: int
    by_operator: dict[str, int]


def measure_cost(config: ModelConfig) -> MeasuredCost:
    """Build the network that `config` describes and count it; leaves random state alone."""
    with torch.device("meta"):  # neither initialises weights nor touches a random generator
        model = build_model(config)
    model.to_empty(device="cpu")
    for module in model.modules():
        if isinstance(module, TokenShuffle):
            module.init_non_persistent_buffers()
    operators = count_operators(model, (config.in_chans, *config.image_hw))
    params = sum(parameter.numel() for parameter in model.parameters())
    return MeasuredCost(sum(operators.values()), params, dict(operators))
