"""Checks that images have the size for which a network was built."""

from __future__ import annotations

import torch
from torch import Tensor

from vitnas.errors import VitnasError


class InputSizeError(VitnasError, ValueError):
    """Images of another size, or with other channels, than the network was built for."""


def check_images(images: Tensor, channels: int, height: int, width: int) -> None:
    """Compare `(B, C, H, W)` with the size that a network needs.

    In a trace nothing is compared: there sizes are tensors, and a comparison would cause a warning.

    Raises:
        InputSizeError: they differ; the error names both sizes.
    """
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return
    if images.ndim != 4:
        rule = f"images must be (B, {channels}, {height}, {width}), with an axis for the batch"
        raise InputSizeError(f"{rule}; these have {images.ndim} axes")
    found_channels, found_height, found_width = images.shape[1:]
    if (found_height, found_width) != (height, width):
        raise InputSizeError(
            f"this network is built for images of {height}x{width} and was given "
            f"{found_height}x{found_width}: build it with img_size "
            f"[{found_height}, {found_width}], resize() it to that, or resize the images"
        )
    if found_channels != channels:
        raise InputSizeError(
            f"this network is built for images with {channels} channels (in_chans) "
            f"and was given {found_channels}"
        )
