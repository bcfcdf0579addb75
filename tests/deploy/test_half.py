"""fp16 files, made and run by onnxruntime itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.deploy.made import small_file
from vitnas.config.model import ModelConfig
from vitnas.deploy.half import computes_in_half, run_half, write_half
from vitnas.exported.programs import write_onnx
from vitnas.exported.runtime import run_with
from vitnas.nn.model import build_model

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
IMAGES = torch.randn(64, 1, 4, 4, generator=torch.Generator().manual_seed(0))


def test_fp16_takes_and_gives_float32(tmp_path: Path) -> None:
    model = small_file(tmp_path / "model.onnx")
    path = write_half(model, tmp_path / "fp16.onnx")
    tensors = onnx.load(path).graph.initializer
    assert {tensor.data_type for tensor in tensors} == {onnx.TensorProto.FLOAT16}
    exact, found = (run(IMAGES) for run in (run_with(model, 1), run_half(path, 1)))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, rtol=1e-2, atol=1e-2)
    assert computes_in_half(path, tmp_path) in (True, False)
    assert computes_in_half(model, tmp_path), "it has nothing to convert"


@pytest.mark.slow
def test_fp16_of_a_network_in_groups_runs(tmp_path: Path) -> None:
    """With all its optimizers onnxruntime ends the process here."""
    stage = {"token_mixer": "mhsa", "embed_dim": 8, "num_heads": 2, "groups": [2, 1]}
    stem = {"kind": "patch", "stride": 2}
    sizes = {"img_size": 4, "in_chans": 1, "num_classes": 3, "stem": stem}
    network = build_model(ModelConfig.model_validate({**sizes, "stages": [stage]})).eval()
    write_onnx(network, (1, 4, 4), tmp_path / "model.onnx")
    path = write_half(tmp_path / "model.onnx", tmp_path / "fp16.onnx")
    with torch.inference_mode():
        expected = network(IMAGES)
    torch.testing.assert_close(run_half(path, 1)(IMAGES), expected, rtol=1e-2, atol=1e-2)
    assert computes_in_half(path, tmp_path) in (True, False)
