"""Shifted patches in the place of timm's: what SKA's ViT for small images begins with."""

from __future__ import annotations

from typing import Any

from timm.layers import PatchEmbed
from torch import Tensor, nn

from vitnas.nn.layers.stem import Shifts
from vitnas.nn.layers.tokens import to_tokens


class ShiftedPatches(PatchEmbed):  # type: ignore[misc]
    """Images `(B, C, H, W)` -> tokens `(B, N, embed_dim)`: the stem `shifted` of a model file.

    Patches of five images, which are the image and copies moved by one pixel to each side; then a
    norm over a patch's numbers, and a linear layer.

    Source: Lee et al., "Vision Transformer for Small-Size Datasets", in vit-pytorch's form.

    Args:
        img_size, patch_size: in pixels; `patch_size` is one number.
        in_chans, embed_dim: channels C; channels of a token.
        **options: as of timm's `PatchEmbed`.

    Raises:
        ValueError: the patch is not square, or does not divide the image.
    """

    def __init__(
        self, img_size: Any, patch_size: Any, in_chans: int, embed_dim: int, **options: Any
    ) -> None:
        super().__init__(img_size, patch_size, in_chans, embed_dim, **options)
        down, across = self.patch_size
        if down != across or any(side % down for side in self.img_size):
            raise ValueError(f"patches of {down}x{across} px do not cut {self.img_size} px")
        numbers = 5 * in_chans * down * down
        self.shift = nn.Sequential(Shifts(), nn.PixelUnshuffle(down))
        self.norm, self.proj = nn.LayerNorm(numbers), nn.Linear(numbers, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[2:] == self.img_size, f"images have {tuple(x.shape[2:])} px"
        out: Tensor = self.proj(self.norm(to_tokens(self.shift(x))))
        return out
