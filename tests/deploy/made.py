"""A small ONNX file with the exporter's notes, and a check with made-up figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vitnas.config.model import ModelConfig
from vitnas.deploy.result import DeployCheck, Form, NetworkCheck, Remedy, Timing
from vitnas.exported.programs import SCOPES

CONFIG = ModelConfig.model_validate(
    {
        "img_size": 4,
        "in_chans": 1,
        "num_classes": 3,
        "stem": {"kind": "patch", "stride": 2},
        "stages": [
            {"token_mixer": "dwconv", "embed_dim": 8, "kernel_size": 3, "mlp_ratio": 2.0},
            {"token_mixer": "mhsa", "embed_dim": 8, "head_dim": 8, "mlp_ratio": 2.0},
        ],
    }
)
BLOCK = "stages.1.blocks.0"


def small_file(path: Path) -> Path:
    """Images (B, 1, 4, 4) -> flat -> one matrix, a softmax and another matrix -> (B, 3)."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)
    weights = {"first": (16, 8), "second": (8, 3)}
    tensors = [
        numpy_helper.from_array(draw.normal(size=shape).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    nodes = [
        helper.make_node("Flatten", ["images"], ["flat"], "flatten"),
        helper.make_node("MatMul", ["flat", "first"], ["mixed"], "mix"),
        helper.make_node("Softmax", ["mixed"], ["shares"], "softmax"),
        helper.make_node("MatMul", ["shares", "second"], ["scores"], "classify"),
    ]
    scopes = {
        "mix": ["", "stages.0", "stages.0.blocks.0", "stages.0.blocks.0.mixer"],
        "softmax": ["", "stages.1", BLOCK, f"{BLOCK}.mixer", "softmax"],
        "classify": ["", "head", "head.classifier", "linear"],
    }
    for node in nodes:
        if node.name in scopes:
            node.metadata_props.add(key=SCOPES, value=str(scopes[node.name]))
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 4, 4])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3])],
        tensors,
    )
    opsets = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(path))
    return path


def checked(trial: int | None = 7, lost: float = 0.5, **fields: Any) -> NetworkCheck:
    """A network that is twice as fast in onnxruntime and loses `lost` points with int8."""
    forms = {
        "float": Form(90.0, 170_000),
        "int8": Form(90.0 - lost, 60_000, lost, 0.25, 2.0),
        "fp16": Form(90.0, 90_000),
    }
    ms = {"pytorch": 2.0, "onnx": 1.0, "int8": 4.0}
    values: dict[str, Any] = {
        "name": "net" if trial is None else f"trial {trial}",
        "trial": trial,
        "line": "1x dwconv 8 > 1x mhsa 8 h1",
        "flops": 12_000,
        "num_params": 3_000,
        "forms": forms,
        "timings": tuple(Timing(batch, threads, ms) for threads in (1, 2) for batch in (1, 32)),
        "changed": {"dwconv": 0.4, "mhsa": 1.25},
        "refused": {"XNNPACK": {"expand": 4}, "CoreML": {}, "TensorRT": {}},
        "operators": {"XNNPACK": 40, "CoreML": 30, "TensorRT": 30},
    }
    return NetworkCheck(**(values | fields))


def a_check(*networks: NetworkCheck) -> DeployCheck:
    facts = {"versions": {"torch": "2"}, "onnxruntime": "1", "hardware": {"cpu": "X"}, "threads": 2}
    return DeployCheck(
        "results/digits",
        "test images of digits",
        360,
        256,
        512,
        networks or (checked(),),
        "mhsa loses more with int8 than dwconv.",
        ("the classes stand in another order, and are matched by name",),
        facts,
    )


REMEDY = Remedy(
    ("mhsa", "norms"), 12, Form(89.8, 80_000, 0.2, 0.1, 1.0), {"": 9.0, "mhsa": 3.0, "norms": 5.0}
)
