"""timm's RandAugment on a batch of bytes on its device.

timm draws: policies, choices and strengths are its own, image by image. torchvision computes the
pixels, where timm has Pillow. One thing is drawn otherwise: images are moved bilinearly, and with
timm half of them bicubically.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

from vitnas.training.colors import brightness, contrast, saturation

_BILINEAR = InterpolationMode.BILINEAR
_GREY = 128
"""What is seen beyond the edges, as with timm."""
_REACH = 6
"""Pixels to each side of a blur: three times timm's largest radius."""
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
                level = torch.tensor(list(levels.values()))[:, None, None, None]
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


# Operations: images (b, C, H, W) float32 of whole numbers 0 to 255, and a strength (b, 1, 1, 1).
# The strengths lie on the host: torchvision reads them one by one, and a card would wait for that.


# torchvision takes images of one channel or of three, so it is given single channels. None of its
# operations here mixes channels.


def _whole(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """An operation of torchvision without a strength."""
    return lambda x, _: change(x.to(torch.uint8).flatten(0, 1)[:, None]).view_as(x).float()


def _each(change: Callable[[Tensor, float], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """An operation of torchvision, which takes one strength for all images that it is given."""

    def operation(x: Tensor, level: Tensor) -> Tensor:
        images, levels = x.to(torch.uint8)[:, :, None], level.flatten().tolist()
        changed = [change(image, one) for image, one in zip(images, levels, strict=True)]
        return torch.stack(changed).view_as(x).float()

    return operation


def _moved(
    x: Tensor,
    *,
    shear: tuple[float, float] = (0.0, 0.0),
    translate: tuple[float, float] = (0.0, 0.0),
) -> Tensor:
    """Sheared by tangents from the upper left corner, or moved by shares of the sides."""
    height, width = x.shape[-2:]
    down, across = translate[1] * height, translate[0] * width
    degrees = [math.degrees(math.atan(tangent)) for tangent in shear]
    moved: Tensor = F.affine(
        x, 0.0, [across, down], 1.0, degrees, _BILINEAR, fill=[_GREY], center=[0.0, 0.0]
    )
    return moved


def _add_below_the_middle(x: Tensor, more: Tensor) -> Tensor:
    return torch.where(x < 128, (x + more.to(x.device)).clamp_max(255), x)


def _solarize(x: Tensor, level: Tensor) -> Tensor:
    """From `level` on values are turned over. It may be 256, which torchvision refuses."""
    return torch.where(x < level.to(x.device), x, 255 - x)


def _blur(x: Tensor, radius: float) -> Tensor:
    """Beyond the edges the outermost pixels repeat, as with Pillow."""
    wide = F.pad(x, [_REACH] * 4, padding_mode="edge")
    sigma = max(radius, 1e-3)
    blurred: Tensor = F.gaussian_blur(wide, [2 * _REACH + 1] * 2, [sigma, sigma])
    return blurred[..., _REACH:-_REACH, _REACH:-_REACH]


_CHANGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Posterize": _each(lambda x, bits: F.posterize(x, min(8, int(bits)))),
    "Solarize": _solarize,
    "Color": saturation,
    "Contrast": contrast,
    "Brightness": brightness,
    "Sharpness": _each(F.adjust_sharpness),
}
_OPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **_CHANGES,
    **{f"{name}Increasing": change for name, change in _CHANGES.items()},
    "AutoContrast": _whole(F.autocontrast),
    "Equalize": _whole(F.equalize),
    "Invert": _whole(F.invert),
    "SolarizeAdd": _add_below_the_middle,
    "Desaturate": lambda x, level: saturation(x, (1 - level).clamp(0, 1)),
    "GaussianBlur": _each(_blur),
    "Rotate": _each(lambda x, degrees: F.rotate(x, degrees, _BILINEAR, fill=[_GREY])),
    "ShearX": _each(lambda x, tangent: _moved(x, shear=(tangent, 0.0))),
    "ShearY": _each(lambda x, tangent: _moved(x, shear=(0.0, tangent))),
    "TranslateXRel": _each(lambda x, share: _moved(x, translate=(-share, 0.0))),
    "TranslateYRel": _each(lambda x, share: _moved(x, translate=(0.0, -share))),
}
