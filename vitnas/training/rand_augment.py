"""timm's RandAugment on a batch of bytes on its device, an operation at a time for all its images.

timm draws: policies, choices and strengths are its own, image by image. Only the arithmetic on
pixels is here; timm's is Pillow's, on one image. There is one difference in what is drawn: images
are moved bilinearly, and with timm half of them bicubically.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample, pad

_GREY = 128
"""What is seen beyond the edges, as with timm."""
_LARGEST = 10.0
"""timm's largest magnitude where a policy has none."""


class RandAugment:
    """A policy of timm's by its name, e.g. `rand-m9-mstd0.5-inc1`.

    Randomness: the global generators of Python and NumPy.
    """

    def __init__(self, policy: str) -> None:
        from timm.data.auto_augment import rand_augment_transform

        self._policy: Any = rand_augment_transform(policy, {"img_mean": (_GREY,) * 3})
        leave_bits(self._policy)

    def __call__(self, x: Tensor) -> Tensor:
        """(B, C, H, W) uint8 -> the same shape and type."""
        x = x.clone()
        drawn = [self._draw() for _ in range(len(x))]
        for layer in range(self._policy.num_layers):
            found: dict[str, dict[int, float]] = defaultdict(dict)
            for image, chosen in enumerate(drawn):
                if (step := chosen[layer]) is not None:
                    found[step[0]][image] = step[1]
            for name, levels in found.items():
                index = torch.tensor(list(levels), device=x.device)
                level = torch.tensor(list(levels.values()), device=x.device)[:, None, None, None]
                x[index] = _OPS[name](x[index].float(), level).to(torch.uint8)
        return x

    def _draw(self) -> list[tuple[str, float] | None]:
        """For one image and each layer: the operation and its strength, or None."""
        policy = self._policy
        weights = policy.choice_weights
        chosen = np.random.choice(
            len(policy.ops), policy.num_layers, replace=weights is None, p=weights
        )
        return [_strength(policy.ops[number]) for number in chosen]


def leave_bits(policy: Any) -> None:
    """Keep one bit or more in timm's posterize: it asks for none at full strength, which Pillow
    refuses."""
    for op in policy.ops:
        if op.name.startswith("Posterize"):
            op.level_fn = partial(_one_bit_or_more, op.level_fn)


def _one_bit_or_more(bits_at: Callable[..., tuple[int]], level: float, hparams: Any) -> tuple[int]:
    return (max(1, *bits_at(level, hparams)),)


def _strength(op: Any) -> tuple[str, float] | None:
    """What timm's `AugmentOp` draws before it looks at the image."""
    if op.prob < 1.0 and random.random() > op.prob:
        return None
    magnitude = op.magnitude
    if op.magnitude_std == float("inf"):
        magnitude = random.uniform(0, magnitude)
    elif op.magnitude_std > 0:
        magnitude = random.gauss(magnitude, op.magnitude_std)
    magnitude = max(0.0, min(magnitude, op.magnitude_max or _LARGEST))
    arguments = () if op.level_fn is None else op.level_fn(magnitude, op.hparams)
    return op.name, float(arguments[0]) if arguments else 0.0


# Operations: images (b, C, H, W) float32 of whole numbers 0 to 255, and a strength (b, 1, 1, 1)


def grey(x: Tensor) -> Tensor:
    """(b, C, H, W) -> (b, 1, H, W): the luma of three channels, the mean of any other number."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True).round()
    weights = torch.tensor((0.299, 0.587, 0.114), device=x.device)[:, None, None]
    return (x * weights).sum(1, keepdim=True).round()


def blend(base: Tensor, x: Tensor, share: Tensor) -> Tensor:
    """`base` for a share of 0, `x` for 1, and further away for more; 0 to 255."""
    return (base + share * (x - base)).clamp(0, 255)


def contrast(x: Tensor, share: Tensor) -> Tensor:
    """Towards the mean of the grey image, or away from it."""
    return blend(grey(x).mean((2, 3), keepdim=True).round(), x, share)


def saturation(x: Tensor, share: Tensor) -> Tensor:
    """Towards the grey image, or away from it."""
    return blend(grey(x), x, share)


def brightness(x: Tensor, share: Tensor) -> Tensor:
    """Towards black, or away from it."""
    return blend(torch.zeros_like(x), x, share)


def _sharpness(x: Tensor, share: Tensor) -> Tensor:
    kernel = torch.ones(3, 3, device=x.device)
    kernel[1, 1] = 5
    smooth = x.clone()
    if min(x.shape[2:]) > 2:  # the edges stay as they are
        smooth[..., 1:-1, 1:-1] = _each_channel(x, kernel / 13)
    return blend(smooth.round(), x, share)


def _blur(x: Tensor, radius: Tensor) -> Tensor:
    reach = 6
    steps = torch.arange(-reach, reach + 1, device=x.device)
    weights = torch.exp(-0.5 * (steps / radius.reshape(-1, 1).clamp_min(1e-3)) ** 2)
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(x.shape[1], 0)
    rows = pad(x, (reach,) * 4, mode="replicate").reshape(
        1, -1, *(s + 2 * reach for s in x.shape[2:])
    )
    rows = conv2d(rows, weights[:, None, None, :], groups=len(weights))
    return conv2d(rows, weights[:, None, :, None], groups=len(weights)).reshape(x.shape).round()


def _each_channel(x: Tensor, kernel: Tensor) -> Tensor:
    return conv2d(x.reshape(-1, 1, *x.shape[2:]), kernel[None, None]).reshape(
        *x.shape[:2], x.shape[2] - 2, x.shape[3] - 2
    )


def _stretched(x: Tensor, level: Tensor) -> Tensor:
    """Each channel from 0 to 255 (Pillow's `autocontrast`)."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    wide = ((x - low) * (255 / (high - low).clamp_min(1)) + 1e-3).floor()
    return torch.where(high > low, wide, x)


def _equalized(x: Tensor, level: Tensor) -> Tensor:
    """As many pixels of each value in each channel, as far as that goes (Pillow's `equalize`)."""
    values = x.flatten(2).long()
    counts = torch.zeros(*x.shape[:2], 256, dtype=torch.long, device=x.device)
    counts.scatter_add_(2, values, torch.ones_like(values))
    brightest = counts.gather(2, values.amax(2, keepdim=True))
    step = (values.shape[2] - brightest) // 255
    table = (counts.cumsum(2) - counts + step // 2) // step.clamp_min(1)
    return torch.where(step > 0, table.clamp_max(255).gather(2, values), values).view_as(x).float()


def _posterized(x: Tensor, bits: Tensor) -> Tensor:
    step = 2 ** (8 - bits)
    return x.div(step, rounding_mode="floor") * step


def _solarized(x: Tensor, threshold: Tensor) -> Tensor:
    return torch.where(x < threshold, x, 255 - x)


def _solar_added(x: Tensor, more: Tensor) -> Tensor:
    return torch.where(x < 128, (x + more).clamp_max(255), x)


def _moved(
    matrix: Callable[[Tensor, float], tuple[Any, ...]],
) -> Callable[[Tensor, Tensor], Tensor]:
    """The operation that takes each pixel from where `matrix` (strength, width / height) says: two
    rows, for places from -1 to 1 across and down."""

    def operation(x: Tensor, level: Tensor) -> Tensor:
        level = level.flatten()
        one = torch.ones_like(level)
        numbers = [one * n for n in matrix(level, x.shape[3] / x.shape[2])]
        grid = affine_grid(torch.stack(numbers, 1).reshape(-1, 2, 3), list(x.shape), False)
        return (grid_sample(x - _GREY, grid, align_corners=False) + _GREY).round()

    return operation


def _turn(degrees: Tensor, ratio: float) -> tuple[Any, ...]:
    angle = -degrees.deg2rad()
    return angle.cos(), angle.sin() / ratio, 0, -angle.sin() * ratio, angle.cos(), 0


_CHANGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Posterize": _posterized,
    "Solarize": _solarized,
    "Color": saturation,
    "Contrast": contrast,
    "Brightness": brightness,
    "Sharpness": _sharpness,
}
_OPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **_CHANGES,
    **{f"{name}Increasing": change for name, change in _CHANGES.items()},
    "AutoContrast": _stretched,
    "Equalize": _equalized,
    "Invert": lambda x, level: 255 - x,
    "SolarizeAdd": _solar_added,
    "Desaturate": lambda x, level: saturation(x, (1 - level).clamp(0, 1)),
    "GaussianBlur": _blur,
    "Rotate": _moved(_turn),
    "ShearX": _moved(lambda s, ratio: (1, s / ratio, s / ratio, 0, 1, 0)),
    "ShearY": _moved(lambda s, ratio: (1, 0, 0, s * ratio, 1, s * ratio)),
    "TranslateXRel": _moved(lambda share, ratio: (1, 0, 2 * share, 0, 1, 0)),
    "TranslateYRel": _moved(lambda share, ratio: (1, 0, 0, 0, 1, 2 * share)),
}
