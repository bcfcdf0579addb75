"""What is measured, each figure in a process of its own.

    python -m vitnas.gpucheck.figures NAME [--dry]

The last line printed is a JSON object. A dry run takes the CPU and little of everything: it shows
that the code runs, and its figures mean nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.cost.closed_form import closed_form
from vitnas.nn.model import build_model
from vitnas.training.data import Images
from vitnas.training.proxy import ProxyTraining, fresh_model
from vitnas.training.split import Split

Found = Mapping[str, float]


class Extent(NamedTuple):
    """How much is done.

    Attributes:
        images, epochs, batch: of the proxy training.
        width: channels of the first stage of its network.
        trials: of the search.
        together: networks that share the card.
        device: where.
    """

    images: int
    epochs: int
    batch: int
    width: int
    trials: int
    together: int
    device: str


FULL = Extent(50_000, 10, 512, 48, 24, 4, "cuda")
DRY = Extent(64, 2, 32, 8, 2, 2, "cpu")


def hybrid(width: int) -> ModelConfig:
    """Three stages of convolutions, static keys and sliced attention; 47 MFLOPs for 48 channels."""
    tree = {
        "name": "hybrid",
        "img_size": 32,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2},
        "norm": "batchnorm",
        "head": {"norm": "none"},
        "downsample": "separable",
        "stages": [
            {"token_mixer": "mbconv", "depth": 2, "embed_dim": width, "expansion": 2.0},
            {"token_mixer": "cska", "depth": 2, "embed_dim": 2 * width, "num_heads": 4},
            {
                "token_mixer": "mhsa",
                "depth": 2,
                "embed_dim": 4 * width,
                "num_heads": 4,
                "groups": [4, 1],
                "mlp_ratio": 2.0,
            },
        ],
        "broad": {"gamma": 0.4},
    }
    return validate(ModelConfig, tree, file="the network of the check")


def made_up(number: int) -> Images:
    """Random images of ten classes, 3 x 32 x 32, a tenth of them to score."""
    draw = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (number, 3, 32, 32), dtype=torch.uint8, generator=draw)
    labels = torch.arange(number) % 10
    middle, spread = torch.full((3, 1, 1), 127.5), torch.full((3, 1, 1), 73.9)
    cut = max(2, number // 10)
    whole = Split(pixels, labels, middle, spread)
    train, val = whole.of(torch.arange(cut, number)), whole.of(torch.arange(cut))
    return Images("made-up images", train, val, classes=tuple("abcdefghij"))


def agreement(size: Extent) -> Found:
    """The largest difference between logits of the device and of the CPU, in float32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    model = build_model(hybrid(size.width)).eval()
    with torch.no_grad():
        here = model(images)
        there = model.to(size.device)(images.to(size.device)).cpu()
    return {"difference": float((here - there).abs().max() / here.abs().max())}


def proxy(size: Extent) -> Found:
    """One proxy training of the hybrid on images in memory."""
    config = hybrid(size.width)
    recipe = ProxyConfig(epochs=size.epochs, batch_size=size.batch)
    fresh_model(config, 0, torch.device(size.device))  # the first use of a card takes seconds
    training = ProxyTraining(config, recipe, made_up(size.images), 0, size.device)
    started = time.perf_counter()
    ends = [time.perf_counter() for _ in training]
    seconds = ends[-1] - started
    steady = (ends[-1] - ends[0]) / (len(ends) - 1)
    found = {
        "mflops": closed_form(config).flops / 1e6,
        "seconds": seconds,
        "images_per_second": 0.9 * size.images / steady,
    }
    if size.device != "cpu":
        found["memory_mb"] = torch.cuda.max_memory_allocated() / 1e6
    return found


def digits(size: Extent) -> Found:
    """A search of the space `digits` without baselines, from start to report."""
    from vitnas import api

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        api.search(
            "digits",
            Path(folder) / "run",
            progress=False,
            trials=size.trials,
            baselines=False,
            backend="serial" if size.device == "cpu" else "tune",
            gpus_per_trial=0.0 if size.device == "cpu" else 1 / size.together,
        )
        return {"trials": size.trials, "seconds": time.perf_counter() - started}


def shared(size: Extent) -> Found:
    """Different processes on one card: their throughput together as a multiple of one alone."""
    alone = _at_once(1, size)
    together = _at_once(size.together, size)
    return {"networks": size.together, "ratio": size.together * alone / together}


def _at_once(number: int, size: Extent) -> float:
    """Mean seconds of a proxy training while `number` of them run."""
    command = [sys.executable, "-m", __spec__.name, "proxy", *(["--dry"] if size is DRY else [])]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(number)]
    said = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    seconds = [float(json.loads(text.splitlines()[-1])["seconds"]) for text in said]
    return sum(seconds) / number


FIGURES: Mapping[str, Callable[[Extent], Found]] = {
    "agreement": agreement,
    "proxy": proxy,
    "digits": digits,
    "shared": shared,
}

if __name__ == "__main__":
    name, *options = sys.argv[1:]
    print(json.dumps(FIGURES[name](DRY if "--dry" in options else FULL)))
