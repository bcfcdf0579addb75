"""An exported folder checked in a fresh process that knows neither vitnas nor timm."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vitnas.errors import RunError, shorten

if TYPE_CHECKING:
    from torch import Tensor

    from vitnas.nn.model import HybridTransformer

TOLERANCES = {"model.py": 1e-5, "model.pt2": 1e-4, "model.onnx": 1e-4}
"""Largest difference of a score, in units of the largest score."""

NUMBER = 16
"""Images that the files are compared on."""

_SCRIPT = Path(__file__).with_name("fresh.py")
_TIME_OUT_S = 1800


@dataclass(frozen=True)
class Check:
    """What the check found.

    Attributes:
        differences: of each file, the largest difference of a score.
        images: which images were shown.
    """

    differences: dict[str, float]
    images: str


def check_files(
    folder: Path, network: HybridTransformer, images: Tensor | None, name: str
) -> Check:
    """Compare the files in `folder` with the scores of `network`, in a fresh process.

    Args:
        folder: holds some of the files that `TOLERANCES` names, and what they read.
        network: in eval mode on the CPU.
        images: normalised images (n, C, H, W), or None for random ones.
        name: of the folder as the user knows it, for errors.

    Raises:
        RunError: a file gives other scores, or cannot be run.
    """
    import torch

    shown, what = _shown(network, images)
    with torch.inference_mode():
        expected = network(shown)
    with tempfile.TemporaryDirectory() as place:
        given = Path(place) / "scores.pt"
        torch.save((shown, expected.clone()), given)
        found = _run(folder, given, name)
    for file, (difference, same) in found.items():
        if not difference <= TOLERANCES[file] or same < 1:
            rule = f"its scores differ by {difference:.1e} from the network's on {what}"
            raise RunError(f"{name}: {file} was not written: {rule}; nothing was kept")
    return Check({file: difference for file, (difference, _) in found.items()}, what)


def _shown(network: HybridTransformer, images: Tensor | None) -> tuple[Tensor, str]:
    import torch

    if images is not None:
        some = images[:NUMBER].float().cpu()
        return some, f"{len(some)} images that score candidates"
    shape = (NUMBER, network.in_chans, *network.image_hw)
    random = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    return random, f"{NUMBER} random images"


def _run(folder: Path, given: Path, name: str) -> dict[str, tuple[float, float]]:
    command = [sys.executable, str(_SCRIPT), str(folder), str(given)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIME_OUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{name}: the check of its files took more than half an hour") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"{name}: its files cannot be run without vitnas: {shorten(last)}")
    found: dict[str, tuple[float, float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
