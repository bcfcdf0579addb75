"""What the log, the checkpoints and two trackers of a long training cost, in processor time.

Two networks train on made-up images on one thread, with a checkpoint, a line in log.jsonl, a row in
log.csv and TensorBoard's events after each epoch. A figure is the processor time of all of these
in percent of the epoch's without them: both medians of one training, because two trainings that
take turns differ by more than that on a busy machine. Files are in memory where there is /dev/shm:
waiting for a disk is no processor time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from common import conclude, folder_in_memory, is_quick, rounded, show
from steps import BATCH, NETWORKS

if TYPE_CHECKING:
    from vitnas.training.images import Images

NAMES = ("80k", "2M")
IMAGES, EPOCHS = 2880, 8
"""As many images as `fashion_32` trains on."""
TARGET = {"max": 3.0}


def measure(name: str, images: int, epochs: int) -> tuple[float, float, int]:
    """Processor seconds of a bare epoch and of what comes on top of it, and parameters."""
    import torch

    from vitnas.config.model import ModelConfig
    from vitnas.config.recipe import Recipe
    from vitnas.cost.closed_form import closed_form
    from vitnas.training.final import FinalTraining
    from vitnas.training.proxy import EpochResult, fresh_model
    from vitnas.training.tracking import Tracked, tracking
    from vitnas.training.train import logged_epochs

    class Timed(FinalTraining):
        def epochs(self, first: int = 1) -> Iterator[EpochResult]:
            each = super().epochs(first)
            for _ in range(epochs):
                started = time.process_time()
                result = next(each)
                bare.append(time.process_time() - started)
                yield result

    torch.set_num_threads(1)
    config = ModelConfig.model_validate(NETWORKS[name])
    recipe = Recipe(epochs=epochs, batch_size=BATCH)
    model = fresh_model(config, 0, torch.device("cpu"))
    training = Timed(model, recipe, _made_up(config.image_hw[0], images), seed=0)
    bare: list[float] = []
    whole: list[float] = []
    with folder_in_memory() as folder:
        work, subject = Path(folder), Tracked(Path(folder), name, {}, is_new=True)
        with tracking(["csv", "tensorboard"], subject, []) as tracked:
            logged = logged_epochs(training, {}, [], work)
            for _ in range(epochs):
                started = time.process_time()
                tracked(next(logged))
                whole.append(time.process_time() - started)
    more = [each - own for each, own in zip(whole, bare, strict=True)]
    return statistics.median(bare), statistics.median(more), closed_form(config).num_params


def _made_up(side: int, number: int) -> Images:
    import torch

    from vitnas.training.images import Images
    from vitnas.training.split import Split

    torch.manual_seed(0)
    pixels = torch.randint(256, (number, 3, side, side), dtype=torch.uint8)
    flat = torch.full((3, 1, 1), 128.0), torch.full((3, 1, 1), 64.0)
    split = Split(pixels, torch.arange(number) % 10, *flat)
    few = Split(pixels[:100], split.y[:100], *flat)
    return Images("fashion_mnist", split, few, tuple(map(str, range(10))))


def main() -> None:
    quick = is_quick(__doc__)
    images, epochs = (320, 2) if quick else (IMAGES, EPOCHS)
    figures, rows = {}, []
    for name in NAMES:
        bare, more, params = measure(name, images, epochs)
        share = 100 * more / bare
        figures |= {f"{name}_more_percent": rounded(share), f"{name}_bare_s": rounded(bare)}
        rows.append((name, f"{params:,}", f"{bare:.2f}", f"{1e3 * more:.1f}", f"{share:.2f}"))
    show(("network", "parameters", "bare epoch, s", "more, ms", "more, %"), rows)
    conclude("checkpoints", quick, figures, {f"{name}_more_percent": TARGET for name in NAMES})


if __name__ == "__main__":
    main()
