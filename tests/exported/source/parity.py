"""A network beside the one of its model.py, with weights unlike fresh ones."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from tests.nn.networks import hierarchy, images_for
from vitnas.config.model import ModelConfig
from vitnas.exported.check import _SCRIPT, TOLERANCES
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


_EACH = """
import runpy, sys
script, *folders = sys.argv[1:]
for folder in folders:
    sys.argv = [script, folder, folder + "/scores.pt"]
    runpy.run_path(script, run_name="__main__")
"""


@torch.no_grad()
def program_distances(configs: Sequence[ModelConfig]) -> list[dict[str, float]]:
    """As `distance`, of model.pt2 and model.onnx, by file, of each network.

    Three images, since the programs are traced with two. Without onnx there is model.pt2 alone.
    They are checked by the program that checks an export, but all in one process: most of its
    time would be the imports.
    """
    formats = ("pt2",) if without_onnx() else ("pt2", "onnx")
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place, str(number)) for number in range(len(configs))]
        for folder, config in zip(folders, configs, strict=True):
            folder.mkdir()
            network = trained(config)
            assert write_programs(folder, network, formats) == {}
            images = images_for(config, 3)
            torch.save((images, network(images)), folder / "scores.pt")
        command = [sys.executable, "-c", _EACH, str(_SCRIPT), *map(str, folders)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(one) for one in found] == [{f"model.{name}" for name in formats}] * len(configs)
    for config, one in zip(configs, found, strict=True):
        for file, (difference, same) in one.items():
            assert difference <= TOLERANCES[file], (config, file)
            assert same == 1, (config, file)
    return [{file: difference for file, (difference, _) in one.items()} for one in found]


def pyramid(**fields: Any) -> ModelConfig:
    """`hierarchy` whose second stage has two heads, which divide the last width."""
    stages = hierarchy().to_tree()["stages"]
    stages[1] = {**stages[1], "num_heads": 2}
    stages[0] |= fields
    return hierarchy(stages=stages, broad={"gamma": 0.4})
