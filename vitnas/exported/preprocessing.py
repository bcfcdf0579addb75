"""How an image becomes the input of a network: the values of a training's own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Interpolation = Literal["bicubic", "bilinear", "lanczos"]
Fit = Literal["cover", "stretch"]
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocessing:
    """From the pixels of an image to the numbers that a network takes.

    Attributes:
        mean, std: of each channel, for pixels from 0 to 1.
        fit: `cover`, scaled to cover the size and cut to the centre; `stretch`, scaled to the size.
        interpolation: Pillow's filter.
        crop: share of the picture's sides that is kept, 0 to 1; the rest is a border.
        remark: a sentence on where the values come from if they are not the training's.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    fit: Fit = "cover"
    interpolation: Interpolation = "bicubic"
    crop: float = 1.0
    remark: str = ""

    @property
    def border(self) -> float:
        """Share of a side that is cut off at each end."""
        return round((1 - self.crop) / 2, 6)

    @property
    def words(self) -> str:
        """A few words for a card and a comment."""
        if self.fit == "stretch":
            return f"scaled to its size ({self.interpolation})"
        kept = "" if self.crop == 1 else f" of {self.crop:g} of it"
        return f"scaled to cover its size and cut to the centre{kept} ({self.interpolation})"


def trained_on(data: str, mean: Any, std: Any) -> Preprocessing:
    """As images of the data set `data` are brought to a network's size: see `vitnas.data`."""
    if data == "imagefolder":
        return Preprocessing(tuple(mean), tuple(std))
    return Preprocessing(tuple(mean), tuple(std), "stretch", "bilinear")


def unknown(channels: int) -> Preprocessing:
    """For weights that do not say how they were trained: ImageNet's values, or none for grey."""
    remark = "The weights do not say how images were prepared in training; check these values."
    if channels == 3:
        return Preprocessing(*_IMAGENET, remark=remark)
    return Preprocessing((0.5,) * channels, (0.5,) * channels, remark=remark)


def of_timm(cfg: Mapping[str, Any], channels: int) -> Preprocessing:
    """As timm's weights were trained, by their `pretrained_cfg`; `unknown` where it is silent."""
    mean, std = (tuple(cfg.get(key) or ()) for key in ("mean", "std"))
    if not len(mean) == len(std) == channels:
        return unknown(channels)
    asked = cfg.get("interpolation")
    interpolation: Interpolation = asked if asked in ("bilinear", "lanczos") else "bicubic"
    if cfg.get("crop_mode") == "squash":
        return Preprocessing(mean, std, "stretch", interpolation)
    crop = float(cfg.get("crop_pct") or 1.0)
    return Preprocessing(mean, std, "cover", interpolation, crop if 0 < crop < 1 else 1.0)
