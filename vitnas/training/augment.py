"""Changing a batch of images at random, on their device and without a loop over images.

Every function takes and returns bytes. Its only source of randomness is the generator that it is
given, except for RandAugment's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from vitnas.config.data import Augment
from vitnas.config.recipe import Recipe
from vitnas.training.colors import brightness, contrast, saturation

SHIFT = 1 / 8
"""Farthest shift as a share of the side: 1 px of 8, 3 of 28, 4 of 32."""
CROP_ASPECT = 4 / 3
"""The most that a crop is stretched in width or in height."""


Augmentation = Callable[[Tensor, Generator], Tensor]


def augmentation_of(recipe: Recipe, data: str) -> Augmentation:
    """Everything that a recipe does to batches of these images: (B, C, H, W) uint8 and a generator
    -> the same.

    `augment` first, then `rand_augment` (which draws from the global generators of Python and
    NumPy), then `color_jitter`.
    """
    kind, scale = recipe.augment_for(data), recipe.crop_scale
    policy: Callable[[Tensor], Tensor] | None = None
    if recipe.rand_augment:
        from vitnas.training.rand_augment import (
            RandAugment,  # torchvision, which takes long to import
        )

        policy = RandAugment(recipe.rand_augment)

    def augmented(x: Tensor, generator: Generator) -> Tensor:
        x = augment_batch(kind, x, generator, scale)
        return color_jitter(x if policy is None else policy(x), recipe.color_jitter, generator)

    return augmented


def dealt(number: int, copies: int, generator: Generator) -> Tensor:
    """The order of `number` images in an epoch, (number,) int64: `number` times the copy (from 0),
    plus the image.

    Without copies every image comes once. With k copies an epoch has as many images, which are a
    k-th of the different ones, each k times in a row (repeated augmentation, as in DeiT).

    Args:
        generator: on the device of the result.
    """
    order = torch.randperm(number, generator=generator, device=generator.device)
    if copies == 1:
        return order
    copy = torch.arange(number, device=generator.device) % copies
    return order.repeat_interleave(copies)[:number] + number * copy


def augment_batch(kind: Augment, x: Tensor, generator: Generator, crop_scale: float) -> Tensor:
    """Apply one named augmentation.

    Args:
        kind: `none`, `shift`, `shift_flip` or `crop_flip`; `auto` must have been resolved.
        x: (B, C, H, W) uint8.
        generator: on the device of `x`; the only source of randomness.
        crop_scale: of `crop_flip`, as in a recipe.

    Returns:
        (B, C, H, W) uint8.
    """
    if kind == "crop_flip":
        x = random_crop(x, crop_scale, generator)
    if kind in ("shift", "shift_flip"):
        x = random_shift(x, generator)
    return random_flip(x, generator) if kind in ("shift_flip", "crop_flip") else x


def random_flip(x: Tensor, generator: Generator) -> Tensor:
    """Mirror each image left to right with probability 1/2; (B, C, H, W) of any type."""
    mirrored = torch.rand(len(x), 1, 1, 1, generator=generator, device=x.device) < 0.5
    return torch.where(mirrored, x.flip(-1), x)


def random_shift(x: Tensor, generator: Generator, share: float = SHIFT) -> Tensor:
    """Move each image by whole pixels and fill with zeros; (B, C, H, W) of any type.

    Args:
        share: largest shift as a share of the side, rounded down but at least one pixel. All
            shifts up to it are equally likely; both axes are drawn independently.
    """
    batch, _, height, width = x.shape
    reach_y, reach_x = max(1, int(height * share)), max(1, int(width * share))
    padded = pad(x, (reach_x, reach_x, reach_y, reach_y))

    def starts(reach: int, side: int) -> Tensor:
        start = torch.randint(2 * reach + 1, (batch, 1), generator=generator, device=x.device)
        return start + torch.arange(side, device=x.device)

    rows, columns = starts(reach_y, height), starts(reach_x, width)
    image = torch.arange(batch, device=x.device)[:, None, None]
    moved = padded.permute(0, 2, 3, 1)[image, rows[:, :, None], columns[:, None, :]]
    return moved.permute(0, 3, 1, 2)


def random_crop(x: Tensor, smallest: float, generator: Generator) -> Tensor:
    """A random part of each image, scaled back to full size; (B, C, H, W) uint8.

    The area is drawn evenly, the aspect log-uniform and up to `CROP_ASPECT`, both and the place so
    that the crop is inside the image. Bilinear.

    Args:
        smallest: share of the image's area that a crop has at least, in (0, 1].
    """
    draws = torch.rand(len(x), 4, generator=generator, device=x.device)
    area = smallest + (1 - smallest) * draws[:, 0]
    most = (1 / area).clamp(max=CROP_ASPECT)  # a longer crop of this area leaves the image
    aspect = most ** (2 * draws[:, 1] - 1)
    across, down = (area * aspect).sqrt(), (area / aspect).sqrt()
    theta = torch.zeros(len(x), 2, 3, device=x.device)
    theta[:, 0, 0], theta[:, 1, 1] = across, down
    theta[:, 0, 2] = (1 - across) * (2 * draws[:, 2] - 1)
    theta[:, 1, 2] = (1 - down) * (2 * draws[:, 3] - 1)
    grid = affine_grid(theta, list(x.shape), align_corners=False)
    cropped = grid_sample(x.float(), grid, padding_mode="border", align_corners=False)
    return cropped.round_().clamp_(0, 255).to(x.dtype)


def color_jitter(x: Tensor, most: float, generator: Generator) -> Tensor:
    """Brightness, contrast and saturation of each image, in this order, each by a factor that is
    evenly drawn from 1 - `most` to 1 + `most`; (B, C, H, W) uint8. 0: nothing is drawn."""
    if not most:
        return x
    draws = torch.rand(3, len(x), 1, 1, 1, generator=generator, device=x.device)
    changed = x.float()
    for change, draw in zip((brightness, contrast, saturation), draws, strict=True):
        changed = change(changed, 1 + most * (2 * draw - 1)).round()
    return changed.to(x.dtype)
