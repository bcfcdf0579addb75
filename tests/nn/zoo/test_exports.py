"""Every network of the zoo leaves PyTorch and gives the same scores.

Each is built at the smallest image size that it can have, and with two blocks a stage: more blocks
are the same blocks again. What travels is the network as it is built, so the sizes are no others.
One network of each paper is in the slow run, the others are in the nightly one.
"""

from __future__ import annotations

import io
import warnings

import pytest
import torch
from torch import Tensor

from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn import HybridTransformer, build_model
from vitnas.nn.zoo import zoo_config, zoo_names

SLOW = ("sret_t", "bvit_5m", "deepvit_s", "cskaformer_s18")
NETWORKS = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else pytest.mark.nightly)
    for name in zoo_names()
]


def small(name: str) -> ModelConfig:
    """The network with at most two blocks a stage, at the smallest image size."""
    config = zoo_config(name)
    stages = config.to_tree()["stages"]
    short = [{**stage, "depth": min(2, stage.get("depth", 1))} for stage in stages]
    changes = {"stages": short, "groups": config.to_tree().get("groups")}
    if changes["groups"] is None:
        del changes["groups"]
    if config.reattention_blocks:
        every = config.reattention_blocks == sum(stage.depth for stage in config.stages)
        changes["reattention_blocks"] = 2 if every else 1
    for size in range(32, 513, 32):
        try:
            return zoo_config(name, img_size=size, **changes)
        except ConfigError:
            continue
    raise AssertionError(name)


@pytest.fixture(scope="module", params=NETWORKS)
def model(request: pytest.FixtureRequest) -> HybridTransformer:
    torch.manual_seed(0)
    return build_model(small(request.param)).eval()


def images_for(model: HybridTransformer, batch: int) -> Tensor:
    return torch.randn(batch, model.in_chans, *model.image_hw)


@pytest.fixture(scope="module")
def program(model: HybridTransformer) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1, max=64)
    return torch.export.export(model, (images_for(model, 2),), dynamic_shapes=({0: batch},))


def test_torch_export(model: HybridTransformer, program: torch.export.ExportedProgram) -> None:
    images = images_for(model, 5)
    torch.testing.assert_close(program.module()(images), model(images))


def test_onnx(model: HybridTransformer, program: torch.export.ExportedProgram) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnx = torch.onnx.export(program, dynamo=True, verbose=False)
    file = io.BytesIO()
    onnx.save(file)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    images = images_for(model, 3)
    (scores,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
    torch.testing.assert_close(torch.from_numpy(scores), model(images), rtol=1e-4, atol=1e-4)
