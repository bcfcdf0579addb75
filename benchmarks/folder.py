"""A stranger's folder: the README's search of somebody's own images, against baselines.

Writes 2,400 training and 5,000 test images of 64 px into class folders: articles of Fashion-MNIST,
each in two colours of its own, a dark ground and a light cloth. Then it searches the space that the
README prints under "Your own data", in 60 trials. `--seed` is of the search; the images are always
the same. `--epochs` and `--lr` change the recipe of the space. `--seed-configs none` starts without
the networks that the space names, which are the front of `--scenes`. `--replicates 2` trains what
decides the comparison with the baselines twice more. `--scenes` takes other articles and a harder
task: each article is turned, has a size and a place of its own, and lies on coloured stripes.
`--scenes digits` has scikit-learn's handwritten digits in place of the articles: 900 of them for
training and 897 others for the test, in several scenes each. Of `images_64` only the classifier was
chosen with them in view. `--tune` lets the search tune its recipe first, as `vitnas search` does
with a folder; else all networks have the space's. A quick run takes the digits, and no baselines.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml
from common import (
    ROOT,
    Figures,
    add_replicates,
    ahead_of_baselines,
    conclude,
    folder_in_memory,
    fresh_process,
    quick_parser,
)
from PIL import Image

from vitnas.config.data import DataConfig
from vitnas.engine.store.study import read_run

Bytes = npt.NDArray[np.uint8]
SIDE, TRIALS = 64, 60
PER_CLASS = {"train": 240, "test": 500}
QUICK_PER_CLASS = {"train": 20, "test": 5}


def grey_images(digits: bool) -> dict[str, tuple[Bytes, Bytes]]:
    """Images (n, height, width) and labels (n,) of both parts, from digits or articles."""
    if digits:
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        images = (pixels.reshape(-1, 8, 8) * 15.9).astype(np.uint8)
        return {"train": (images[:900], labels[:900]), "test": (images[900:], labels[900:])}
    from vitnas.data.fashion_mnist import read

    source = read(DataConfig(name="fashion_mnist"), (28, 28))
    parts = {"train": source.train, "test": source.test}
    return {
        name: (images[:].numpy()[:, 0], labels.numpy()) for name, (images, labels) in parts.items()
    }


def tinted(grey: Bytes, number: int) -> Image.Image:
    """One image in two random colours, of `SIDE` pixels."""
    random = np.random.default_rng(number)
    ground, cloth = random.integers(0, 128, 3), random.integers(128, 256, 3)
    large = Image.fromarray(grey).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    share = np.asarray(large)[..., None] / 255
    return Image.fromarray((ground + share * (cloth - ground)).round().astype(np.uint8))


def stripes(random: np.random.Generator) -> Image.Image:
    """Two random colours in turns, 3 to 16 pixels each, in a random direction."""
    down, right = np.mgrid[:SIDE, :SIDE]
    angle, width = random.uniform(0, np.pi), random.integers(3, 17)
    second = (down * np.sin(angle) + right * np.cos(angle)) // width % 2 == 0
    first_colour, second_colour = random.integers(0, 256, (2, 3))
    pixels = np.where(second[..., None], second_colour, first_colour)
    return Image.fromarray(pixels.astype(np.uint8))


def scene(grey: Bytes, number: int) -> Image.Image:
    """One image in one random colour on stripes: 32 to 60 pixels, turned by up to 30 degrees."""
    random = np.random.default_rng([number, 1])
    side, angle = int(random.integers(32, 61)), random.uniform(-30, 30)
    place = random.integers(0, SIDE - side + 1, 2)
    how = Image.Resampling.BILINEAR
    article = Image.fromarray(grey).resize((side, side), how).rotate(angle, how)
    shade = np.asarray(article)[..., None] / 255 * random.integers(96, 256, 3)
    ground = stripes(random)
    mask = article.point(lambda value: min(255, value * 8))
    ground.paste(Image.fromarray(shade.astype(np.uint8)), tuple(place.tolist()), mask)
    return ground


def write_images(root: Path, quick: bool, scenes: str | None = None) -> None:
    """`root/train/<class>/<number>.png` and the same in `test`.

    The first articles of each class; in scenes of articles, the last ones. There are fewer digits
    than scenes, so each is in several.
    """
    per_class, draw = QUICK_PER_CLASS if quick else PER_CLASS, scene if scenes else tinted
    for part, (images, labels) in grey_images(quick or scenes == "digits").items():
        for label in range(10):
            folder = root / part / f"class{label}"
            folder.mkdir(parents=True)
            n = per_class[part]
            of_class = np.flatnonzero(labels == label)
            chosen = of_class[-n:] if scenes == "articles" else of_class[:n]
            for copy, number in enumerate(np.resize(chosen, n).tolist()):
                name = number + len(labels) * (copy // len(chosen))
                draw(images[number], name).save(folder / f"{name:05}.png")


def own_space(root: Path, proxy: Mapping[str, Any]) -> dict[str, Any]:
    """The README's space for somebody's own images, made this folder's, with fields of a recipe."""
    readme = (ROOT / "README.md").read_text()
    (text,) = re.findall(r"```yaml\n(name: my_space\n.*?)```", readme, flags=re.DOTALL)
    space: dict[str, Any] = yaml.safe_load(text)
    space["data"]["root"] = str(root)
    space["proxy"] = dict(proxy)
    space["model"] |= {"img_size": SIDE, "num_classes": 10}
    return space


def add_scenes(parser: argparse.ArgumentParser) -> None:
    """Add `--scenes [articles|digits]`."""
    parser.add_argument(
        "--scenes",
        nargs="?",
        const="articles",
        choices=("articles", "digits"),
        help="the harder images, of articles unless digits are asked for",
    )


def options(asked: argparse.Namespace) -> Iterator[str]:
    """What the search is told."""
    yield from ("--seed", str(asked.seed), "--trials", str(3 if asked.quick else asked.trials))
    yield from ("--replicates", str(asked.replicates), "--seed-configs", asked.seed_configs)
    if not asked.tune:
        yield "--no-tune"
    if asked.quick:
        yield from ("--no-baselines", "--backend", "serial")


def search(folder: Path, proxy: Mapping[str, Any], *asked: str) -> dict[str, float]:
    """Search the images of a folder, and read what came of it."""
    space, run = folder / "my_space.yaml", folder / "run"
    space.write_text(yaml.safe_dump(own_space(folder / "images", proxy), sort_keys=False))
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    command = (str(ROOT / "search.py"), str(space), "--out", str(run))
    seconds, done = fresh_process(*command, *asked)
    print(done.stdout)
    found = read_run(run)
    best = max(trial.mean_test_top1 or 0.0 for trial in found.front)
    front = {"front_members": len(found.front), "best_test_top1": round(best, 2)}
    return {
        "seconds": round(seconds, 1),
        "complete": len(found.complete),
        **front,
        **ahead_of_baselines(run),
    }


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the search")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of the search")
    add_replicates(parser)
    parser.add_argument("--to", type=Path, help="keep images and run in this new folder")
    add_scenes(parser)
    parser.add_argument("--seed-configs", default="own", help="of the search: own or none")
    parser.add_argument("--lr", type=float, help="learning rate of all networks")
    parser.add_argument("--epochs", type=int, help="of each training")
    parser.add_argument("--tune", action="store_true", help="tune the recipe first")
    asked = parser.parse_args()
    given = {"epochs": 1 if asked.quick else asked.epochs, "lr": asked.lr}
    proxy = {name: value for name, value in given.items() if value is not None}
    with folder_in_memory() as temporary:
        folder = asked.to or Path(temporary)
        write_images(folder / "images", asked.quick, asked.scenes)
        figures: Figures = {
            "seed": asked.seed,
            "images": f"scenes of {asked.scenes}" if asked.scenes else "plain",
            **search(folder, proxy, *options(asked)),
        }
    bounds = {"ahead_points": {"min": 1.0}, "ahead_share": {"min": 0.8}}
    conclude("folder", asked.quick, figures, {"complete": {"min": 1}} if asked.quick else bounds)


if __name__ == "__main__":
    main()
