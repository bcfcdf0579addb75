"""int8 files, made and run by onnxruntime itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.deploy.made import small_file
from vitnas.config.model import ModelConfig
from vitnas.exported.quantized import InInt8, Quantizer
from vitnas.exported.runtime import run_with
from vitnas.nn.model import build_model

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
IMAGES = torch.randn(64, 1, 4, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def quantizer(tmp_path: Path) -> Quantizer:
    return Quantizer(small_file(tmp_path / "model.onnx"), tmp_path, IMAGES)


def kinds(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def test_int8_gives_nearly_the_same_scores(quantizer: Quantizer) -> None:
    path = quantizer.write(quantizer.folder / "int8.onnx")
    weights = {tensor.name: tensor for tensor in onnx.load(path).graph.initializer}
    assert weights["first_quantized"].data_type == onnx.TensorProto.INT8
    assert list(weights["first_scale"].dims) == [8], "one scale for each output channel"
    exact, found = (run_with(file, 1)(IMAGES) for file in (quantizer.model, path))
    assert 0 < float((found - exact).abs().max()) < 0.1


def test_named_operators_stay_in_float(quantizer: Quantizer) -> None:
    names = ["flatten", "mix", "softmax", "classify"]
    path = quantizer.folder / "int8.onnx"
    assert "QuantizeLinear" not in kinds(quantizer.write(path, without=names))
    alone = kinds(quantizer.write(path, only=["mix"]))["QuantizeLinear"]
    assert 0 < alone < kinds(quantizer.write(path))["QuantizeLinear"]
    exact, found = (run_with(file, 1)(IMAGES) for file in (quantizer.model, path))
    assert not torch.equal(exact, found)


def masked_file(path: Path, how: str, lowest: float) -> Path:
    """Images (B, 1, 4, 4) -> logits of 4 x 4 tokens, of which none sees itself -> (B, 3)."""
    from onnx import TensorProto, helper, numpy_helper

    draw, own = np.random.default_rng(0), np.eye(4, dtype=np.float32)
    values = {
        "key": draw.normal(size=(4, 4)).astype(np.float32),
        "values": draw.normal(size=(4, 3)).astype(np.float32),
        "hidden": np.where(own > 0, np.float32(lowest), np.float32(0)),
        "own": own.astype(bool),
        "lowest": np.float32(lowest),
        "maps": np.array([-1, 4, 4]),
        "same": np.array([0, 4, 4]),
    }
    masked = {"Add": ["logits", "hidden"], "Where": ["own", "lowest", "logits"]}[how]
    nodes = [
        helper.make_node("Reshape", ["images", "maps"], ["tokens"], "cut"),
        helper.make_node("MatMul", ["tokens", "key"], ["logits"], "compare"),
        helper.make_node(how, masked, ["masked"], "hide"),
        helper.make_node("Reshape", ["masked", "same"], ["flat"], "move"),
        helper.make_node("Softmax", ["flat"], ["map"], "softmax"),
        helper.make_node("MatMul", ["map", "values"], ["mixed"], "mix"),
        helper.make_node("Flatten", ["mixed"], ["scores"], "flatten"),
    ]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "masked",
        [helper.make_tensor_value_info("images", floats, ["batch", 1, 4, 4])],
        [helper.make_tensor_value_info("scores", floats, ["batch", 12])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    opsets = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(path))
    return path


@pytest.mark.parametrize(
    ("how", "lowest"), [("Add", float("-inf")), ("Add", -100.0), ("Where", -6e4)]
)
def test_masked_logits_stay_in_float(how: str, lowest: float, tmp_path: Path) -> None:
    """The lowest of them would make the steps of int8 longer than all others are apart."""
    file = masked_file(tmp_path / "model.onnx", how, lowest)
    path = Quantizer(file, tmp_path, IMAGES).write(tmp_path / "int8.onnx")
    exact, found = (run_with(one, 1)(IMAGES) for one in (file, path))
    assert kinds(path)["QuantizeLinear"] > 4, "all else is int8"
    assert 0 < float((found - exact).abs().max()) < 0.1


@pytest.mark.slow
def test_any_network_runs_in_int8_and_stays_as_it_is() -> None:
    drawn = torch.Generator().manual_seed(0)
    layers = [torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(32, 3)).train()
    images = torch.randn(8, 1, 4, 4, generator=drawn)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    found = InInt8(network, IMAGES)(images)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    with torch.no_grad():
        exact = network.eval()(images)
    assert 0 < float((found - exact).abs().max()) < 0.2


@pytest.mark.slow
def test_the_class_token_s_row_of_cska_stays_in_float() -> None:
    """onnxruntime multiplies by no stack of int8 matrices with a scale for each channel."""
    stage = {"token_mixer": "cska", "embed_dim": 8, "num_heads": 2, "mlp_ratio": 1.0}
    network = build_model(
        ModelConfig.model_validate({
            "img_size": 4, "in_chans": 1, "num_classes": 3, "class_token": True,
            "stem": {"kind": "patch", "stride": 2}, "stages": [stage],
        })
    ).eval()  # fmt: skip
    with torch.no_grad():
        exact = network(IMAGES)
    assert 0 < float((InInt8(network, IMAGES)(IMAGES) - exact).abs().max()) < 0.2
