"""The kind of a tensor's numbers. Imports only torch, so a wrong file is an error at once."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from vitnas.errors import DataError, shorten


def kind_of(tensor: Tensor) -> str:
    """The kind of a tensor's numbers in words. Floats of all precisions are one kind."""
    if tensor.is_complex():
        return "complex numbers"
    if tensor.is_floating_point():
        return "floats"
    return "truth values" if tensor.dtype == torch.bool else "whole numbers"


def check_finite(name: str, tensor: Tensor, file: str | Path | None = None) -> None:
    """Raise `DataError` if a number is NaN or infinite."""
    has_point = tensor.is_floating_point() or tensor.is_complex()
    if has_point and not bool(torch.isfinite(tensor).all()):
        where = "weights" if file is None else file
        raise DataError(f"{where}: {shorten(name)} has numbers that are not finite")
