"""What the log, the checkpoints and two trackers of a long training cost, in processor time.

Two networks train on made-up images, each twice: by the bare loop, and with a checkpoint, a line in
log.jsonl, a row in log.csv and TensorBoard's events after each epoch. Both take turns, an epoch at
a time, on one thread. A figure is what an epoch with all of it takes more than a bare one, in
percent of the bare one; each is the least of several, since what else runs makes an epoch longer,
never shorter. Files are in memory where there is /dev/shm: waiting for a disk is no processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from common import conclude, folder_in_memory, is_quick, rounded, show
from steps import BATCH, NETWORKS, tree_of

if TYPE_CHECKING:
    from vitnas.training.data import Images

NAMES = ("80k", "2M")
IMAGES, EPOCHS = 2880, 8
"""As many images as `fashion_32` trains on."""
TARGET = {"max": 3.0}


def measure(name: str, images: int, epochs: int) -> tuple[float, float, int]:
    """Processor seconds of a bare epoch and of one with everything, and parameters."""
    import torch

    from vitnas.config.model import ModelConfig
    from vitnas.config.recipe import Recipe
    from vitnas.cost.closed_form import closed_form
    from vitnas.training.final import FinalTraining
    from vitnas.training.proxy import fresh_model
    from vitnas.training.tracking import Tracked, tracking
    from vitnas.training.train import logged_epochs

    torch.set_num_threads(1)
    side, stages = NETWORKS[name]
    config = ModelConfig.model_validate(tree_of(side, stages))
    recipe = Recipe(epochs=epochs, batch_size=BATCH)
    made_up = _made_up(side, images)
    bare, logged = (
        FinalTraining(fresh_model(config, 0, torch.device("cpu")), recipe, made_up, seed=0)
        for _ in range(2)
    )
    times: list[list[float]] = [[], []]
    with folder_in_memory() as folder:
        work, subject = Path(folder), Tracked(Path(folder), name, {}, is_new=True)
        with tracking(["csv", "tensorboard"], subject, []) as tracked:
            plain, whole = iter(bare), logged_epochs(logged, {}, [], work)
            for _ in range(epochs):
                times[0].append(_spent(lambda: next(plain)))
                times[1].append(_spent(lambda: tracked(next(whole))))
    return min(times[0]), min(times[1]), closed_form(config).num_params


def _made_up(side: int, number: int) -> Images:
    import torch

    from vitnas.training.data import Images
    from vitnas.training.split import Split

    torch.manual_seed(0)
    pixels = torch.randint(256, (number, 3, side, side), dtype=torch.uint8)
    flat = torch.full((3, 1, 1), 128.0), torch.full((3, 1, 1), 64.0)
    split = Split(pixels, torch.arange(number) % 10, *flat)
    few = Split(pixels[:100], split.y[:100], *flat)
    return Images("fashion_mnist", split, few, tuple(map(str, range(10))))


def _spent(call: Callable[[], object]) -> float:
    """Processor seconds of a call, in all threads."""
    started = time.process_time()
    call()
    return time.process_time() - started


def main() -> None:
    quick = is_quick(__doc__)
    images, epochs = (320, 2) if quick else (IMAGES, EPOCHS)
    figures, rows = {}, []
    for name in NAMES:
        bare, whole, params = measure(name, images, epochs)
        share = 100 * (whole / bare - 1)
        figures |= {f"{name}_more_percent": rounded(share), f"{name}_bare_s": rounded(bare)}
        rows.append((name, f"{params:,}", f"{bare:.2f}", f"{whole:.2f}", f"{share:+.2f} %"))
    show(("network", "parameters", "bare epoch, s", "with all, s", "more"), rows)
    conclude("checkpoints", quick, figures, {f"{name}_more_percent": TARGET for name in NAMES})


if __name__ == "__main__":
    main()
