"""How many images of a batch score fastest on a CPU core, and what memory that takes.

Networks evenly over the log FLOPs of three spaces score made-up images in batches of several sizes,
which take turns. A figure is the least processor time of several rounds. The memory is what the
process has at most while it scores once, beyond what it had before. The sizes that vitnas takes are
compared with 512, which a recipe allows.
"""

from __future__ import annotations

import ctypes
from functools import partial
from math import exp, log
from statistics import geometric_mean

import torch
from common import conclude, is_quick, peak_growth, rounded, show
from epochs import processor_seconds
from torch import nn

from vitnas.config.design import Design
from vitnas.config.space import load_space
from vitnas.cost.survey import networks_within
from vitnas.memory import keep_freed_memory
from vitnas.training.proxy import fresh_model
from vitnas.training.score import batch_on
from vitnas.training.split import Split

SPACES = ("digits", "fashion_32", "images_64")
SIZES = (16, 32, 64, 128, 256, 512)
IMAGES = {"digits": 4096, "fashion_32": 2048, "images_64": 1024}


def spread(name: str, number: int) -> list[tuple[int, Design]]:
    """So many networks of a space with their FLOPs, the cheapest and the dearest among them."""
    drawn = networks_within(load_space(name), 300)
    found = sorted(((cost.flops, config) for config, cost in drawn), key=lambda one: one[0])
    low, high = (log(found[end][0]) for end in (0, -1))
    wanted = [exp(low + (high - low) * place / max(1, number - 1)) for place in range(number)]
    return [min(found, key=lambda one: abs(log(one[0] / flops))) for flops in wanted]


def made_up(design: Design, number: int) -> Split:
    shape = (number, design.in_chans, *design.image_hw)
    random = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, shape, generator=random, dtype=torch.uint8)
    y = torch.arange(number) % design.num_classes
    mean, std = (torch.full((design.in_chans, 1, 1), value) for value in (127.5, 74.0))
    return Split(pixels, y, mean, std)


def classify(model: nn.Module, split: Split, size: int) -> None:
    """What `vitnas.training.score` does for each batch, of any size."""
    model.eval()
    with torch.no_grad():
        for x, _ in split.batches(size):
            model(split.normalise(x)).argmax(dim=1)


def peak_mb(model: nn.Module, split: Split, size: int) -> float:
    """Of one scoring, beyond what the process has before."""
    ctypes.CDLL(None).malloc_trim(0)
    return peak_growth(partial(classify, model, split, size)) / 1e6


def measure(design: Design, number: int, rounds: int) -> dict[int, tuple[float, float]]:
    """Microseconds an image and MB, for each size of a batch."""
    model, split = fresh_model(design, 0, torch.device("cpu")), made_up(design, number)
    memory = {size: peak_mb(model, split, size) for size in SIZES}
    taken: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(rounds):
        for size, each in taken.items():
            each.append(processor_seconds(partial(classify, model, split, size)))
    return {size: (1e6 * min(each) / number, memory[size]) for size, each in taken.items()}


def main() -> None:
    quick = is_quick(__doc__)
    torch.set_num_threads(1)
    keep_freed_memory()
    rows, figures = [], dict[str, float]()
    for name in SPACES:
        number = IMAGES[name] // (8 if quick else 1)
        faster, memory = [], []
        for flops, design in spread(name, 1 if quick else 6):
            found = measure(design, number, 1 if quick else 5)
            rows.append((name, f"{flops:,}", *(f"{us:.0f}; {mb:.0f}" for us, mb in found.values())))
            ours = found[batch_on(torch.device("cpu"), SIZES[-1], made_up(design, 1))]
            faster.append(found[SIZES[-1]][0] / ours[0])
            memory.append((ours[1], found[SIZES[-1]][1]))
        figures[f"faster_{name}"] = rounded(geometric_mean(faster))
        figures[f"mb_{name}"] = rounded(max(ours for ours, _ in memory))
        figures[f"mb_of_512_{name}"] = rounded(max(most for _, most in memory))
    show(("space", "FLOPs", *(f"{size}: us; MB" for size in SIZES)), rows)
    targets = {f"faster_{name}": {"min": 0.95} for name in SPACES}
    conclude("scoring", quick, figures, targets)


if __name__ == "__main__":
    main()
