"""Networks in onnxruntime: that they run, and how long a pass takes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vitnas.errors import VitnasError
from vitnas.exported.runtime import latency_onnx_ms

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


class _Odd(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images if float(images.sum()) > 0 else -images


@pytest.mark.slow
def test_more_work_takes_longer() -> None:
    """Four hundred times the multiply-adds: no noise of a busy machine hides that."""
    small, large = (nn.Sequential(nn.Conv2d(1, n, 3), nn.Conv2d(n, n, 3)) for n in (4, 80))
    images = torch.zeros(1, 1, 32, 32)
    assert 0 < latency_onnx_ms(small, images) < latency_onnx_ms(large, images)
    assert small.training, "it is left as it is"


def test_what_cannot_be_exported_is_one_line() -> None:
    with pytest.raises(VitnasError, match=r"^PyTorch cannot export it: [^\n]*$"):
        latency_onnx_ms(_Odd(), torch.zeros(1, 1, 4, 4))
