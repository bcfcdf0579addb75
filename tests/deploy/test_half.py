"""fp16 files, made and run by onnxruntime itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.deploy.made import small_file
from vitnas.deploy.half import computes_in_half, write_half
from vitnas.exported.runtime import run_with

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
IMAGES = torch.randn(64, 1, 4, 4, generator=torch.Generator().manual_seed(0))


def test_fp16_takes_and_gives_float32(tmp_path: Path) -> None:
    model = small_file(tmp_path / "model.onnx")
    path = write_half(model, tmp_path / "fp16.onnx")
    tensors = onnx.load(path).graph.initializer
    assert {tensor.data_type for tensor in tensors} == {onnx.TensorProto.FLOAT16}
    exact, found = (run_with(file, 1)(IMAGES) for file in (model, path))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, rtol=1e-2, atol=1e-2)
    assert computes_in_half(path, tmp_path) in (True, False)
    assert computes_in_half(model, tmp_path), "it has nothing to convert"
