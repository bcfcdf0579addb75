"""Runs for the tests, made of explicit records; `invented_run` is for looks and for speed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitnas.config.baseline import Baseline
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.records import Outcome, TrialRecord
from vitnas.run import Run
from vitnas.sessions import Environment

ENVIRONMENT: dict[str, Any] = {
    "sessions": [
        {
            "started": "2025-03-04T09:12:33+00:00",
            "command": "vitnas search space/hybrid_cifar.yaml --trials 200 --seed 3",
            "versions": {"python": "3.11.7", "vitnas": "0.1.0", "torch": "2.6.0", "ray": "2.44.0"},
            "hardware": {"cpu": "AMD EPYC 9354", "cores": 16, "memory_gb": 128.0},
            "git_revision": "40a507c81f2e",
            "backend": "tune",
            "workers": 4,
            "device": "NVIDIA H100",
        }
    ],
    "seed": 3,
    "data": {
        "name": "cifar10",
        "num_train_images": 45000,
        "num_val_images": 5000,
        "num_test_images": 10000,
        "num_classes": 10,
    },
    "proxy": {"epochs": 12, "batch_size": 512, "lr": 0.001},
}
SPACE = {
    "name": "hybrid_cifar",
    "objectives": {"top1": "maximize", "flops": "minimize"},
    "limits": {"flops": {"max": 300_000_000}, "num_params": {"max": 8_000_000}},
}


def reference(family: str = "vgg", width: int = 8) -> Baseline:
    """A baseline for the images of `ENVIRONMENT`."""
    return Baseline(family=family, width=width, image_hw=(32, 32), in_chans=3, num_classes=10)


def tree(*mixers: str, depth: int = 1) -> dict[str, Any]:
    """A small valid network with one stage a mixer."""
    stages = [
        {"token_mixer": mixer, "depth": depth, "embed_dim": 32 << index}
        for index, mixer in enumerate(mixers or ("dwconv", "mhsa"))
    ]
    return {
        "name": "network",
        "img_size": 32,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2},
        "stages": stages,
    }


def trial(
    number: int, top1: float | None = 50.0, flops: int = 1_000_000, **more: Any
) -> TrialRecord:
    """A complete trial of three epochs, or what `more` says."""
    curve = () if top1 is None else (top1 / 2, top1 * 0.8, top1)
    fields: dict[str, Any] = {
        "number": number,
        "outcome": Outcome.COMPLETE,
        "config": tree(),
        "key": f"{number:012x}",
        "flops": flops,
        "num_params": 40_000,
        "curve": curve,
        "seconds": 12.5,
        "seed": 7,
        "device": "cpu",
    }
    return TrialRecord(**{**fields, **more})


def run_of(path: Path, *trials: TrialRecord, **more: Any) -> Run:
    """A run of these trials, with everything known about it."""
    fields: dict[str, Any] = {
        "name": "hybrid_cifar",
        "space": SPACE,
        "environment": ENVIRONMENT,
        "num_trials": len(trials),
    }
    fields |= more
    fields["environment"] = Environment.model_validate(fields["environment"])
    return Run(path=path, trials=trials, **fields)


def invented_run(path: Path, number: int, seed: int = 0) -> Run:
    """A run with the shape of a real one; its numbers are invented."""
    draw = random.Random(seed)
    trials = [_invented_trial(index, draw) for index in range(number)]
    front = {member.number for member in run_of(path, *trials).front}
    scored = [
        replace(t, test_top1=(t.top1 or 0) + draw.gauss(-0.4, 0.5)) if t.number in front else t
        for t in trials
    ]
    return run_of(path, *scored, num_trials=number)


def _invented_trial(number: int, draw: random.Random) -> TrialRecord:
    stages = _invented_stages(draw)
    runs = sum(s["depth"] * len(s.get("groups", (1,))) for s in stages)
    flops = int(9e6 * runs ** draw.uniform(1.0, 1.5))
    mixers = [s["token_mixer"] for s in stages]
    quality = 8 * (flops / 1e8) ** 0.5 + 2.5 * (mixers[0] == "dwconv") + 2 * (mixers[-1] == "mhsa")
    final = 93 - 32 * 0.86**quality + draw.gauss(0, 1.2)
    curve = [final - (final - 25) * 0.66 ** (e + draw.gauss(0, 0.08)) for e in range(1, 13)]
    outcome = Outcome.COMPLETE
    more: dict[str, Any] = {}
    kind = draw.random()
    if flops > 3e8 or kind < 0.05:
        outcome, curve = Outcome.REFUSED, []
        more = {"error": f"{flops:,} FLOPs are above the limit of 300,000,000"}
    elif kind < 0.09 and number:
        outcome, curve, more = Outcome.DUPLICATE, [], {"duplicate_of": number // 2}
    elif kind < 0.11:
        outcome, curve, more = Outcome.DIVERGED, curve[:2], {"error": "loss is nan in epoch 3"}
    elif kind < 0.12:
        outcome, curve, more = Outcome.OOM, [], {"error": "CUDA out of memory at batch size 512"}
    elif kind < 0.125:
        outcome, curve, more = Outcome.FAILED, [], {"error": "worker lost three times"}
    elif draw.random() < 0.62 - (final - 75) / 20:
        outcome, curve = Outcome.STOPPED, curve[: draw.choice([2, 5])]
    return TrialRecord(
        number=number,
        outcome=outcome,
        config=_whole_tree(stages, draw),
        key=f"{draw.getrandbits(48):012x}",
        flops=flops,
        num_params=int(flops / 40),
        curve=tuple(curve),
        seconds=len(curve) * flops / 1e7 if curve else None,
        seed=draw.getrandbits(31),
        params={f"stages.{i}.depth": s["depth"] for i, s in enumerate(stages)},
        device="NVIDIA H100",
        **more,
    )


def _invented_stages(draw: random.Random) -> list[dict[str, Any]]:
    stages = []
    for index in range(3):
        mixer = draw.choice(["dwconv", "ska", "cska", "mhsa", "mhsa", "pool"])
        stage = {"token_mixer": mixer, "depth": draw.randint(1, 3), "embed_dim": 64 << index}
        if mixer == "mhsa" and draw.random() < 0.5:
            stage |= {"groups": [4, 1], "nll_ratio": 1.0}
        stages.append(stage)
    return stages


def _whole_tree(stages: list[dict[str, Any]], draw: random.Random) -> dict[str, Any]:
    config = {**tree(), "stages": stages}
    if any(stage["token_mixer"] in ("mhsa", "ska") for stage in stages):
        config["broad"] = {"gamma": draw.choice([0.0, 0.2, 0.4])}
    return validate(ModelConfig, config).to_tree()
