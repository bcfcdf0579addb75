"""onnxruntime on the CPU: it runs .onnx files, and says how long a network takes in it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitnas.cost.device import latency_ms
from vitnas.exported.programs import write_onnx


def session_of(path: Path, threads: int, *, without: Sequence[str] = (), **options: Any) -> Any:
    """onnxruntime's session of a file on the CPU; errors are the library's own.

    Args:
        path: the file.
        threads: of the CPU.
        without: names of onnxruntime's optimizers that it leaves out.
        **options: more fields of `onnxruntime.SessionOptions`.
    """
    import onnxruntime

    asked = onnxruntime.SessionOptions()
    asked.intra_op_num_threads = threads
    asked.log_severity_level = 4  # errors come as exceptions
    for name, value in options.items():
        setattr(asked, name, value)
    how: dict[str, Any] = {"disabled_optimizers": list(without)} if without else {}
    return onnxruntime.InferenceSession(str(path), asked, ["CPUExecutionProvider"], **how)


def ask_with(session: Any) -> Callable[[Tensor], Tensor]:
    """A function that runs a session: images (B, C, H, W) float32 -> scores (B, classes)."""
    name = session.get_inputs()[0].name
    return lambda images: torch.from_numpy(session.run(None, {name: images.numpy()})[0])


def run_with(path: Path, threads: int) -> Callable[[Tensor], Tensor]:
    """A function that runs a file: images (B, C, H, W) float32 -> scores (B, classes)."""
    return ask_with(session_of(path, threads))


def latency_onnx_ms(model: nn.Module, images: Tensor) -> float:
    """Milliseconds of a pass in onnxruntime on the CPU with one thread, the median of many.

    Timed as `vitnas.cost.device.latency_ms` is. The network is exported first, which takes seconds.

    Raises:
        VitnasError: PyTorch cannot export it.
    """
    with tempfile.TemporaryDirectory(prefix="vitnas.") as place:
        path = Path(place) / "model.onnx"
        write_onnx(model, images.shape[1:], path)
        return latency_ms(run_with(path, 1), images.cpu())
