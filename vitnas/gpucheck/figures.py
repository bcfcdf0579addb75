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
from torch import Tensor

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.cost.closed_form import closed_form
from vitnas.nn.model import build_model
from vitnas.records import Outcome
from vitnas.training.data import Images
from vitnas.training.proxy import EpochResult, ProxyTraining, fresh_model
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
    """So many random images of ten classes, 3 x 32 x 32, that train, and a tenth more to score."""
    draw = torch.Generator().manual_seed(0)
    cut = max(2, number // 10)
    pixels = torch.randint(0, 256, (cut + number, 3, 32, 32), dtype=torch.uint8, generator=draw)
    labels = torch.arange(cut + number) % 10
    middle, spread = torch.full((3, 1, 1), 127.5), torch.full((3, 1, 1), 73.9)
    whole = Split(pixels, labels, middle, spread)
    train, val = whole.of(torch.arange(cut, cut + number)), whole.of(torch.arange(cut))
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


def repeated(size: Extent) -> Found:
    """The largest difference between two curves of one trial: alone, and beside another one."""
    config, few = hybrid(size.width), made_up(min(size.images, 10 * size.batch))
    recipe = ProxyConfig(epochs=2, batch_size=size.batch)

    def training(seed: int) -> ProxyTraining:
        return ProxyTraining(config, recipe, few, seed, size.device)

    def values(result: EpochResult) -> Tensor:
        return torch.tensor([result.top1, result.loss, result.log_likelihood]).double()

    alone = [values(result) for result in training(0)]
    beside = [values(result) for result, _ in zip(training(0), training(1), strict=True)]
    return {"difference": float((torch.stack(alone) - torch.stack(beside)).abs().max())}


def proxy(size: Extent) -> Found:
    """One proxy training of the hybrid on images in memory; where `--wait` is given, from a line on
    the input on."""
    config = hybrid(size.width)
    recipe = ProxyConfig(epochs=size.epochs, batch_size=size.batch)
    fresh_model(config, 0, torch.device(size.device))  # the first use of a card takes seconds
    training = ProxyTraining(config, recipe, made_up(size.images), 0, size.device)
    if "--wait" in sys.argv:
        print("ready", flush=True)
        sys.stdin.readline()
    started = time.perf_counter()
    ends = [time.perf_counter() for _ in training]
    seconds = ends[-1] - started
    steady = (ends[-1] - ends[0]) / (len(ends) - 1)
    found = {
        "mflops": closed_form(config).flops / 1e6,
        "seconds": seconds,
        "images_per_second": size.images / steady,
    }
    if size.device != "cpu":
        found["memory_mb"] = torch.cuda.max_memory_allocated() / 1e6
    return found


def digits(size: Extent) -> Found:
    """A search of the space `digits` without baselines, from start to report."""
    from vitnas import api

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run = api.search(
            "digits",
            Path(folder) / "run",
            progress=False,
            trials=size.trials,
            baselines=False,
            backend="serial" if size.device == "cpu" else "tune",
            gpus_per_trial=0.0 if size.device == "cpu" else 1 / size.together,
        )
        seconds = time.perf_counter() - started
    failed = [trial.error for trial in run.trials if trial.outcome in _FAILED]
    if failed:  # such a search is fast
        raise RuntimeError(f"{len(failed)} trials failed: {failed[0]}")
    return {"trials": size.trials, "seconds": seconds}


_FAILED = (Outcome.FAILED, Outcome.OOM, Outcome.TIMEOUT)


def shared(size: Extent) -> Found:
    """Different processes on one card: their throughput together as a multiple of one alone."""
    alone = _at_once(1, size)
    together = _at_once(size.together, size)
    return {"networks": size.together, "ratio": size.together * alone / together}


def _at_once(number: int, size: Extent) -> float:
    """Seconds of so many proxy trainings that begin together, until the last one ends."""
    options = ["--wait", *(["--dry"] if size is DRY else [])]
    command = [sys.executable, "-m", __spec__.name, "proxy", *options]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) for _ in range(number)]
    for process in running:  # starting takes as long as a short training
        assert process.stdout is not None
        process.stdout.readline()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return max(float(json.loads(text.splitlines()[-1])["seconds"]) for text in said)


FIGURES: Mapping[str, Callable[[Extent], Found]] = {
    "agreement": agreement,
    "repeated": repeated,
    "proxy": proxy,
    "digits": digits,
    "shared": shared,
}

if __name__ == "__main__":
    name, *options = sys.argv[1:]
    print(json.dumps(FIGURES[name](DRY if "--dry" in options else FULL)))
