"""A network beside the one of its model.py, with weights unlike fresh ones."""

from __future__ import annotations

import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from tests.nn.networks import hierarchy, images_for
from vitnas.config.model import ModelConfig
from vitnas.exported.check import check_files
from vitnas.exported.preprocessing import unknown
from vitnas.exported.programs import without_onnx, write_programs
from vitnas.exported.source.write import model_source
from vitnas.nn.model import HybridTransformer, build_model
from vitnas.nn.weights import state_of

Compared = Callable[[dict[str, float]], None]
"""Of the fixture `compared`, which takes the differences of a network by file."""


def source_of(config: ModelConfig) -> str:
    return model_source(config, unknown(config.in_chans), config.name)


def module_of(source: str) -> types.ModuleType:
    """The file as a module. It is not in `sys.modules`, and its folder is the current one."""
    module = types.ModuleType("model")
    module.__file__ = "model.py"
    exec(compile(source, "model.py", "exec"), module.__dict__)
    return module


def trained(config: ModelConfig) -> HybridTransformer:
    """Weights and statistics as a training may leave them, in eval mode."""
    torch.manual_seed(0)
    model = build_model(config)
    generator = torch.Generator().manual_seed(1)

    def noise(like: Tensor) -> Tensor:
        return torch.rand(like.shape, generator=generator) - 0.5

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_((0.2 if parameter.ndim == 1 else 0.03) * noise(parameter))
        for module in model.modules():
            if isinstance(module, _BatchNorm) and module.running_var is not None:
                assert module.running_mean is not None
                module.running_mean.add_(0.2 * noise(module.running_mean))
                module.running_var.mul_(1.5 + noise(module.running_var))
    return model.eval()


@torch.no_grad()
def distance(config: ModelConfig, source: str | None = None) -> float:
    """Largest difference of the scores of random images, in units of the largest score."""
    model = trained(config)
    network = module_of(source or source_of(config)).Network().eval()
    network.load_state_dict(state_of(model), strict=True)
    images = images_for(config)
    expected = model(images)
    difference = (network(images) - expected).abs().max()
    return float(difference / expected.abs().max().clamp_min(1.0))


def program_distances(config: ModelConfig) -> dict[str, float]:
    """As `distance`, of model.pt2 and model.onnx, by file, as an export writes and checks them.

    Three images, since the programs are traced with two. Without onnx there is model.pt2 alone.

    Raises:
        RunError: the scores of a file are others, or another class is the likeliest.
    """
    network = trained(config)
    formats = ("pt2",) if without_onnx() else ("pt2", "onnx")
    with tempfile.TemporaryDirectory() as place:
        assert write_programs(Path(place), network, formats) == {}
        images = images_for(config, 3)
        return check_files(Path(place), network, images, config.name).differences


def pyramid(**fields: Any) -> ModelConfig:
    """`hierarchy` whose second stage has two heads, which divide the last width."""
    stages = hierarchy().to_tree()["stages"]
    stages[1] = {**stages[1], "num_heads": 2}
    stages[0] |= fields
    return hierarchy(stages=stages, broad={"gamma": 0.4})
