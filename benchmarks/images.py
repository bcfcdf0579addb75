"""What the cache of decoded images costs and saves: building, a second start, memory, epochs.

Images of Fashion-MNIST (or made-up ones) are turned, resized and written as PNG and JPEG into many
class folders. Listing them and decoding them by processes that are there already and write nothing
is compared with a first start, which lists, starts processes, decodes, sums and writes; a fresh
process opens the cache, and a worker takes over what it found; 2 and 4 processes train on it
together; and epochs on it are compared with epochs on images in memory.

`--open FOLDER [SHARE]` opens a folder of your own (the share of the training images that are used),
and `--take FOLDER` then starts a worker on it; the cache is that of `$VITNAS_IMAGE_CACHE`.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from common import Figures, conclude, is_quick, rounded, seconds_of, show
from PIL import Image

from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.cores import cores
from vitnas.data.decode import fitted, read_rgb
from vitnas.data.listing import list_folder

if TYPE_CHECKING:
    from vitnas.training.images import Images

T = TypeVar("T")

SIDE, BATCH = 32, 256
MB = 1e6


def originals() -> np.ndarray:
    """Grey images (n, 28, 28): those of Fashion-MNIST where they are, else made-up blots."""
    from vitnas.data.fashion_mnist import read
    from vitnas.errors import DataError

    try:
        return read(DataConfig(name="fashion_mnist"), (28, 28)).train[0][:].numpy()[:, 0]
    except DataError:
        coarse = np.random.default_rng(0).integers(0, 256, (2000, 7, 7), dtype=np.uint8)
        return coarse.repeat(4, axis=1).repeat(4, axis=2)


def write_some(root: Path, images: np.ndarray, numbers: range, classes: int) -> None:
    """Image `number` belongs to the class `number` modulo `classes`."""
    for number in numbers:
        side = 36 + number % 29
        image = Image.fromarray(images[number % len(images)]).rotate(90 * (number // 3 % 4))
        image = image.resize((side, side), Image.Resampling.BICUBIC).convert("RGB")
        suffix = ("png", "jpg")[number % 2]
        image.save(root / "train" / f"c{number % classes:04}" / f"{number:06}.{suffix}")


def write_images(root: Path, number: int, classes: int) -> None:
    from joblib import Parallel, delayed

    for label in range(classes):
        (root / "train" / f"c{label:04}").mkdir(parents=True)
    images = originals()
    parts = [range(start, min(start + 2000, number)) for start in range(0, number, 2000)]
    Parallel(n_jobs=cores())(delayed(write_some)(root, images, part, classes) for part in parts)


def decode(paths: list[Path]) -> int:
    """What the cores do for each image, without keeping it."""
    return sum(fitted(read_rgb(path), (SIDE, SIDE)).shape[0] for path in paths)


def decoding_seconds(paths: list[Path]) -> float:
    """Of all images on all cores, in processes that are already there."""
    from joblib import Parallel, delayed

    parts = [paths[start : start + 500] for start in range(0, len(paths), 500)]
    work = Parallel(n_jobs=cores(), batch_size=1)
    work(delayed(decode)(paths[:10]) for _ in range(2 * cores()))
    return seconds_of(lambda: work(delayed(decode)(part) for part in parts))


def in_process(task: str, root: Path, home: str) -> subprocess.Popen[str]:
    """This file in a process of its own, which does a task of `TASKS` and prints JSON."""
    environment = {**os.environ, "VITNAS_IMAGE_CACHE": home}
    command = [sys.executable, __file__, f"--{task}", str(root)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def said(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        sys.exit(f"{process.args}: ended with {process.wait()}")
    found: dict[str, float] = json.loads(line)
    return found


def done(process: subprocess.Popen[str]) -> dict[str, float]:
    found = said(process)
    process.communicate("\n")
    return found


def open_images(root: Path, share: str = "1") -> None:
    """Open the images, and tell how long it took once torch was there."""
    from vitnas.training.data import load_data

    data = DataConfig(name="imagefolder", root=str(root), val_fraction=0.05)
    images = timed(lambda: load_data(data, SIDE, float(share)))
    (root / "images.pickle").write_bytes(pickle.dumps(images))


def take_images(root: Path) -> None:
    """What a worker does with the images that another process has opened."""
    from vitnas.training.images import Images

    assert Images  # imported before the clock runs, as torch is
    content = (root / "images.pickle").read_bytes()
    timed(lambda: pickle.loads(content))


def timed(work: Callable[[], T]) -> T:
    """What `work` gives; its time is printed."""
    started, worked = time.perf_counter(), time.process_time()
    found = work()
    passed = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - worked}
    print(json.dumps(passed), flush=True)
    return found


def train_worker(root: Path) -> None:
    """Read every image as a training does, tell the memory, and stay until told to go."""
    work_on(pickle.loads((root / "images.pickle").read_bytes()))


def train_on_few(root: Path) -> None:
    """The same on so few images that they take no memory."""
    import torch

    images = pickle.loads((root / "images.pickle").read_bytes())
    few = torch.arange(2 * BATCH)
    work_on(replace(images, train=images.train.of(few), val=images.val.of(few[:50])).in_memory())


def work_on(images: Images) -> None:
    import torch

    from vitnas.training.proxy import ProxyTraining

    torch.set_num_threads(1)
    training = ProxyTraining(network(images.num_classes), ProxyConfig(batch_size=BATCH), images, 0)
    for step, batch in enumerate(training._batches(1)):
        if step < 2:
            training._step(batch, 1e-3)
    print(json.dumps({"ready": 1}), flush=True)
    sys.stdin.readline()
    print(json.dumps({"pss": proportional_memory()}), flush=True)
    sys.stdin.readline()


def proportional_memory() -> int:
    """Bytes of this process; pages that k processes share count for a kth."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def together(task: str, root: Path, home: str, number: int) -> float:
    """Memory of so many workers at the same time, in bytes."""
    workers = [in_process(task, root, home) for _ in range(number)]
    for worker in workers:
        said(worker)
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    total = sum(said(worker)["pss"] for worker in workers)
    for worker in workers:
        worker.communicate("\n")
    return total


def network(num_classes: int) -> ModelConfig:
    """About 2 M multiply-adds: small, so that reading weighs."""
    stages = [
        {"token_mixer": "dwconv", "embed_dim": width, "kernel_size": 3, "mlp_ratio": 2.0}
        for width in (16, 32)
    ]
    stem = {"kind": "conv", "stride": 4}
    shape = {"img_size": SIDE, "in_chans": 3, "num_classes": num_classes}
    return ModelConfig.model_validate({**shape, "stem": stem, "stages": stages})


def epochs(root: Path, repeats: int, share: float) -> list[tuple[float, float]]:
    """Seconds of an epoch on the cache and of one in memory, in turns; on a share of the images."""
    import torch

    from vitnas.training.proxy import ProxyTraining

    torch.set_num_threads(1)
    cached = pickle.loads((root / "images.pickle").read_bytes())
    pairs = []
    for seed in range(repeats):
        kinds = [cached, cached.in_memory()] if seed % 2 else [cached.in_memory(), cached]
        seconds = {}
        for images in kinds:
            proxy = ProxyConfig(epochs=1, batch_size=BATCH, train_fraction=min(1.0, share))
            (result,) = ProxyTraining(network(images.num_classes), proxy, images, seed)
            seconds[images is cached] = result.seconds
        pairs.append((seconds[True], seconds[False]))
    return pairs


def listing_seconds(root: Path) -> float:
    data = DataConfig(name="imagefolder", root=str(root))
    return seconds_of(lambda: list_folder(data))


def measure(root: Path, home: str, number: int, quick: bool) -> Figures:
    listing = listing_seconds(root) / number
    paths = sorted((root / "train").glob("*/*"))[:: 1 if quick else 5]
    before = decoding_seconds(paths)
    built = done(in_process("open", root, home))["seconds"] / number
    bare = statistics.mean([before, decoding_seconds(paths)]) / len(paths)
    second = [done(in_process("open", root, home)) for _ in range(3)]
    taken = [done(in_process("take", root, home)) for _ in range(3)]
    size = number * 3 * SIDE * SIDE
    memory = {k: together("worker", root, home, k) for k in (2, 4)}
    base = {k: together("few", root, home, k) for k in (2, 4)}
    beyond = {k: (memory[k] - base[k] - size) / k / MB for k in memory}
    os.environ["VITNAS_IMAGE_CACHE"] = home
    pairs = epochs(root, 2 if quick else 5, 20_000 / number)
    return {
        "images": number,
        "pixels of all, MB": rounded(size / MB),
        "listed a second": rounded(1 / listing),
        "decoded a second by the bare cores": rounded(1 / bare),
        "decoded a second into the cache, first start in all": rounded(1 / built),
        "share of the speed of listing and bare decoding": rounded((listing + bare) / built),
        "second start, s": rounded(statistics.median(one["seconds"] for one in second)),
        "second start, CPU s": rounded(statistics.median(one["cpu"] for one in second)),
        "a worker's start from there, s": rounded(statistics.median(o["seconds"] for o in taken)),
        "a worker's start from there, CPU s": rounded(statistics.median(o["cpu"] for o in taken)),
        "a worker on few images, MB": rounded(base[4] / 4 / MB),
        "2 workers, MB each beyond that and one copy": rounded(beyond[2]),
        "4 workers, MB each beyond that and one copy": rounded(beyond[4]),
        "epoch on the cache, s": rounded(statistics.median(pair[0] for pair in pairs)),
        "epoch speed against memory": rounded(statistics.median(b / a for a, b in pairs)),
    }


TASKS: dict[str, Callable[..., Any]] = {
    "--open": open_images,
    "--take": take_images,
    "--worker": train_worker,
    "--few": train_on_few,
}


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] in TASKS:
        TASKS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
        return
    quick = is_quick(__doc__)
    number, classes = (2_000, 20) if quick else (200_000, 1_000)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "data"
        write_images(root, number, classes)
        print(f"{number:,} images are written into {classes:,} class folders")
        figures = measure(root, str(Path(folder) / "cache"), number, quick)
    show(["figure", ""], [[name, str(value)] for name, value in figures.items()])
    targets = {
        "share of the speed of listing and bare decoding": {"min": 0.9},
        "second start, s": {"max": 2.0},
        "2 workers, MB each beyond that and one copy": {"max": 400.0},
        "4 workers, MB each beyond that and one copy": {"max": 400.0},
        "epoch speed against memory": {"min": 0.95},
    }
    conclude("images", quick, figures, targets)


if __name__ == "__main__":
    main()
