"""A network as the backbone of a segmentation: discs, squares and triangles on stripes.

Writes 400 training and 100 test images with a mask each, trains a four-stage hybrid
(`features_only=True`: levels at strides 2, 4, 8 and 16) with a small decoder from scratch, and
prints mean intersection over union (mIoU) beside two answers that need no network: ground
everywhere, and a classifier that sees one pixel's colour. Then backbone and decoder take images of
96 x 64 pixels through `resize`, without any further training. See docs/dense.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from common import Figures, conclude, folder_in_memory, is_quick, show
from PIL import Image, ImageDraw
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

import vitnas

CLASSES = ("ground", "disc", "square", "triangle")
SIDE, WIDER, RATE = 64, (64, 96), 4e-3
STAGES: list[dict[str, Any]] = [
    {"token_mixer": "dwconv", "depth": 1, "embed_dim": 16, "kernel_size": 5, "mlp_ratio": 2.0},
    {"token_mixer": "dwconv", "depth": 1, "embed_dim": 32, "kernel_size": 5, "mlp_ratio": 2.0},
    {"token_mixer": "cska", "depth": 1, "embed_dim": 48, "head_dim": 16, "mlp_ratio": 2.0},
    {"token_mixer": "mhsa", "depth": 2, "embed_dim": 64, "head_dim": 16, "mlp_ratio": 2.0},
]


class Segmenter(nn.Module):
    """A backbone's levels, each brought to 32 channels and to the finest grid, added and judged.

    Shape: `(B, 3, H, W)` -> logits `(B, classes, H, W)`.
    """

    def __init__(self, backbone: Any, classes: int = len(CLASSES), width: int = 32) -> None:
        super().__init__()
        self.backbone = backbone
        self.lateral = nn.ModuleList(
            nn.Conv2d(c, width, 1) for c in backbone.feature_info.channels()
        )
        self.judge = nn.Sequential(
            nn.BatchNorm2d(width), nn.GELU(), nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width), nn.GELU(), nn.Conv2d(width, classes, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        levels = [to(level) for to, level in zip(self.lateral, self.backbone(x), strict=True)]
        finest = levels[0].shape[-2:]
        total = sum(interpolate(one, finest, mode="bilinear") for one in levels)
        return interpolate(self.judge(total), x.shape[-2:], mode="bilinear")


def scene(number: int, size: tuple[int, int]) -> tuple[Image.Image, Image.Image]:
    """An image of (height, width) pixels with one to three shapes in any colours, and its mask."""
    random = np.random.default_rng(number)
    height, width = size
    down, right = np.mgrid[:height, :width]
    angle, colours = random.uniform(0, np.pi), random.integers(0, 256, (2, 3))
    second = (down * np.sin(angle) + right * np.cos(angle)) // random.integers(4, 12) % 2 == 0
    image = Image.fromarray(np.where(second[..., None], *colours).astype(np.uint8))
    mask = Image.new("L", (width, height))
    for _ in range(random.integers(1, 4)):
        kind, side = int(random.integers(1, len(CLASSES))), int(random.integers(16, 33))
        x, y = int(random.integers(0, width - side)), int(random.integers(0, height - side))
        colour = tuple(random.integers(0, 256, 3).tolist())
        for picture, ink in ((image, colour), (mask, kind)):
            _draw(ImageDraw.Draw(picture), kind, (x, y, x + side, y + side), ink)
    return image, mask


def _draw(pen: Any, kind: int, box: tuple[int, int, int, int], ink: Any) -> None:
    left, top, right, bottom = box
    if CLASSES[kind] == "disc":
        pen.ellipse(box, fill=ink)
    elif CLASSES[kind] == "square":
        pen.rectangle(box, fill=ink)
    else:
        pen.polygon([(left, bottom), (right, bottom), ((left + right) // 2, top)], fill=ink)


def write_images(folder: Path, first: int, count: int, size: tuple[int, int]) -> None:
    """`folder/<number>.png`, and beside each `<number>_mask.png` with the number of its class."""
    folder.mkdir()
    for number in range(first, first + count):
        image, mask = scene(number, size)
        image.save(folder / f"{number:05}.png")
        mask.save(folder / f"{number:05}_mask.png")


def read_images(folder: Path) -> tuple[Tensor, Tensor]:
    """Images `(n, 3, H, W)` from -1 to 1 and masks `(n, H, W)` of a folder."""
    masks = sorted(folder.glob("*_mask.png"))
    images = [np.asarray(Image.open(m.with_name(m.name.replace("_mask", "")))) for m in masks]
    x = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 127.5 - 1
    return x, torch.from_numpy(np.stack([np.asarray(Image.open(m)) for m in masks])).long()


def train(model: nn.Module, x: Tensor, y: Tensor, epochs: int, batch: int = 16) -> None:
    """AdamW with one cycle of the rate; half of the batches are mirrored."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.05)
    steps = epochs * -(-len(x) // batch)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    model.train()
    for chosen in (part for _ in range(epochs) for part in torch.randperm(len(x)).split(batch)):
        images, masks = x[chosen], y[chosen]
        if torch.rand(()) < 0.5:
            images, masks = images.flip(-1), masks.flip(-1)
        optimizer.zero_grad()
        cross_entropy(model(images), masks).backward()
        optimizer.step()
        rate.step()
    model.eval()


@torch.inference_mode()
def miou(answer: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> float:
    """Mean over classes of intersection over union, in percent, over all pixels of all images."""
    said = torch.cat([answer(part) for part in x.split(50)])
    counts = torch.bincount((y * len(CLASSES) + said).flatten(), minlength=len(CLASSES) ** 2)
    table = counts.reshape(len(CLASSES), -1).double()
    both = table.diagonal()
    return float(100 * (both / (table.sum(0) + table.sum(1) - both).clamp_min(1)).mean())


def main() -> None:
    quick = is_quick(__doc__)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    number, epochs = (32, 1) if quick else (400, 20)
    with folder_in_memory() as temporary:
        root = Path(temporary)
        sizes = {"train": (SIDE, SIDE), "test": (SIDE, SIDE), "wider": WIDER}
        for place, (name, size) in enumerate(sizes.items()):
            count = number if name == "train" else max(8, number // 4)
            write_images(root / name, 100_000 * place, count, size)
        data = {name: read_images(root / name) for name in sizes}
    options = {"img_size": SIDE, "stem": {"kind": "conv", "stride": 2}, "stages": STAGES}
    model = Segmenter(timm.create_model("vitnas", features_only=True, **options))
    colour = nn.Sequential(nn.Conv2d(3, 64, 1), nn.GELU(), nn.Conv2d(64, len(CLASSES), 1))
    train(model, *data["train"], epochs)
    train(colour, *data["train"], epochs)
    test = data["test"]
    found = {
        "ground": miou(lambda x: torch.zeros_like(x[:, 0]).long(), *test),
        "colour": miou(lambda x: colour(x).argmax(1), *test),
        "network": miou(lambda x: model(x).argmax(1), *test),
    }
    model.backbone.model.resize(WIDER)
    found["resized"] = miou(lambda x: model(x).argmax(1), *data["wider"])
    told = {
        "ground": "ground everywhere",
        "colour": "each pixel by its colour",
        "network": f"the network, {SIDE} x {SIDE} px",
        "resized": f"the network, resized to {WIDER[1]} x {WIDER[0]} px",
    }
    show(
        ("test images", "mIoU, %"), [(told[name], f"{value:.1f}") for name, value in found.items()]
    )
    figures: Figures = {f"miou_{name}": round(value, 2) for name, value in found.items()}
    figures["above_colour"] = round(found["network"] - found["colour"], 2)
    figures["strides"] = " ".join(map(str, model.backbone.feature_info.reduction()))
    figures["vitnas"] = vitnas.__version__
    conclude("dense", quick, figures, {"above_colour": {"min": -100.0 if quick else 10.0}})


if __name__ == "__main__":
    main()
