"""An epoch of training against a bare loop over ready batches, and against a DataLoader's loop.

The networks are those of `steps.py`. The bare loop has the same network, optimizer and clipping,
and its batches are normalised floats in memory. The loop that people write reads Pillow images
through torchvision's transforms in a DataLoader with two workers. No image is shifted. The three
take turns; a figure is the least processor time of several epochs, workers included.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable

import torch
from common import Figures, conclude, is_quick, rounded, show
from PIL import Image
from steps import BATCH, NETWORKS, images_of
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.training.images import Images
from vitnas.training.optim import make_optimizer
from vitnas.training.proxy import ProxyTraining, fresh_model

NAMES = ("400k", "2M", "10M")
LEAST_OF_PEOPLES = {"400k": 2.0, "2M": 1.6, "10M": 1.15}
"""How many times faster than the loop that people write an epoch is to be."""


class Pictures(Dataset[tuple[Tensor, int]]):
    """Pillow images with torchvision's transforms."""

    def __init__(self, images: Images) -> None:
        pixels = images.train.x.permute(0, 2, 3, 1).numpy()
        self.pictures = [Image.fromarray(each) for each in pixels]
        self.classes = images.train.y.tolist()
        mean, std = ([0.5] * 3, [0.29] * 3)
        self.transform = transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize(mean, std)]
        )

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.transform(self.pictures[index]), self.classes[index]


def processor_seconds(work: Callable[[], object]) -> float:
    """Of this process and of those that it has started and that have ended."""

    def spent() -> float:
        whole = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whole))

    before = spent()
    work()
    return spent() - before


def loop(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable[tuple[Tensor, Tensor]]
) -> None:
    """An epoch, as one writes it."""
    model.train()
    for x, y in batches:
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(model(x), y, label_smoothing=0.1).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def measure(name: str, steps: int, repeats: int) -> tuple[float, float, float]:
    """Least processor seconds of an epoch: ours, bare, people's."""
    config = ModelConfig.model_validate(NETWORKS[name])
    images = images_of(config.image_hw[0], steps)
    proxy = ProxyConfig(epochs=repeats + 1, batch_size=BATCH, optimizer="muon", augment="none")
    ours = iter(ProxyTraining(config, proxy, images, 0))
    model = fresh_model(config, 0, torch.device("cpu"))
    optimizer = make_optimizer(model, proxy.lr, proxy.weight_decay, "muon")
    ready = [(images.train.normalise(x), y) for x, y in images.train.batches(BATCH)]
    loader = DataLoader(Pictures(images), BATCH, shuffle=True, num_workers=2)
    ways = {
        "ours": lambda: next(ours),
        "bare": lambda: loop(model, optimizer, ready),
        "people's": lambda: loop(model, optimizer, loader),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for repeat in range(repeats + 1):
        for way, work in ways.items():
            seconds = processor_seconds(work)
            if repeat:  # warm by now
                taken[way].append(seconds)
    least = [min(each) for each in taken.values()]
    return least[0], least[1], least[2]


def main() -> None:
    quick = is_quick(__doc__)
    torch.set_num_threads(1)
    figures: Figures = {}
    rows = []
    for name in NAMES[:1] if quick else NAMES:
        ours, bare, peoples = measure(name, 4 if quick else 40, 1 if quick else 6)
        figures[f"of_bare_{name}"] = rounded(bare / ours)
        figures[f"faster_{name}"] = rounded(peoples / ours)
        times = (f"{seconds:.2f}" for seconds in (ours, bare, peoples))
        rows.append((name, *times, f"{bare / ours:.2f}", f"{peoples / ours:.2f}"))
    show(("network", "ours, s", "bare, s", "people's, s", "bare / ours", "people's / ours"), rows)
    bounds = {f"faster_{name}": {"min": least} for name, least in LEAST_OF_PEOPLES.items()}
    bounds |= {f"of_bare_{name}": {"min": 0.95} for name in NAMES}
    measured = {name: bound for name, bound in bounds.items() if name in figures}
    conclude("epochs", quick, figures, measured)


if __name__ == "__main__":
    main()
