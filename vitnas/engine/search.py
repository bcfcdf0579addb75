"""A search from the space to the scored front: folder, study, data, back end, test scores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vitnas.config.files import exists, write_text
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.engine import study
from vitnas.engine.controller import Controller, Listener
from vitnas.engine.environment import session_facts
from vitnas.engine.pruning import FrontRankPruner, default_rungs
from vitnas.engine.samplers import SamplerName
from vitnas.engine.steering import Steering
from vitnas.engine.weights import FrontWeights
from vitnas.errors import ConfigError, DeviceError, RunError
from vitnas.records import Run

if TYPE_CHECKING:
    from vitnas.engine.worker import Worker
    from vitnas.training.data import Images

    BySize = dict[tuple[int, int], Images]


@dataclass(frozen=True)
class SearchOptions:
    """How a space is searched; not what is searched.

    Attributes:
        trials: trainings to start and end in the run, earlier sessions included.
        workers: trainings at a time; None = one a core, or one a GPU share.
        gpus_per_trial: GPUs, or a share of one, for each training; None = 1 where there is CUDA,
            else 0.
        seed: of the run. With one worker the whole study follows from it.
        backend: `tune` (Ray Tune, any number of workers) or `serial` (in this process).
        ray_address: of a running cluster; None starts Ray on this machine.
        sampler: who proposes networks.
        prune: whether trials may be stopped early.
    """

    trials: int = 24
    workers: int | None = None
    gpus_per_trial: float | None = None
    seed: int = 0
    backend: Literal["tune", "serial"] = "tune"
    ray_address: str | None = None
    sampler: SamplerName = "tpe"
    prune: bool = True


def run_search(
    space: SearchSpace,
    out: str | Path,
    options: SearchOptions,
    listener: Listener | None = None,
) -> Run:
    """Search `space` until `options.trials` trainings have ended; goes on where a run stopped.

    Args:
        space: what is searched.
        out: the results folder; made if it is not there.
        options: how.
        listener: called with `start`, `epoch` or `end` and the trial; for displays.

    Returns:
        The run as stored, its front scored on the test split.

    Raises:
        RunError: the folder cannot be used, or holds a run of another space or seed.
        DeviceError: a GPU was asked for and there is none.
        DataError: the images are missing or unreadable.
    """
    path = Path(out)
    _check_folder(path)
    _check_contents(path)
    fixed = {"space": space.to_tree(), "seed": options.seed}
    if (path / study.FILE_NAME).exists():
        study.RunStore(path, fixed).close()  # refuse another space before reading any image
    options = _settle(options)
    images = _load_images(space)
    _connect(options)
    _make_folder(path)
    with _locked(path), study.writable(path):
        store = study.RunStore(path, fixed)
        try:
            _describe(store, space, options, images)
            controller = _controller(store, space, options, listener)
            _train(path, controller, _worker(space, options, images), options)
            _score_front(store, space, images, path)
        finally:
            store.close()
    return study.read_run(path)


def _check_folder(path: Path) -> None:
    """Refuse a folder that could not be written to, before anything is."""
    try:
        if path.exists() and not path.is_dir():
            raise RunError(f"{path}: is a file; --out names a folder")
    except OSError as error:
        raise RunError(f"{path}: cannot be made ({(error.strerror or '').lower()})") from None
    there = next(parent for parent in (path, *path.absolute().parents) if exists(parent))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise RunError(f"{path}: cannot be written to ({there} is not a writable folder)")


def _check_contents(path: Path) -> None:
    """Refuse a folder of something else, where a run's files would replace others."""
    if not path.is_dir() or (path / study.FILE_NAME).exists():
        return
    strange = sorted(item.name for item in path.iterdir() if not item.name.startswith("."))
    if strange:
        raise RunError(
            f"{path}: holds '{strange[0]}' and no {study.FILE_NAME}, so it is not a run; give a "
            "new or an empty folder"
        )


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be made ({(error.strerror or '').lower()})") from None


def _connect(options: SearchOptions) -> None:
    """Reach the cluster that was named before anything is written."""
    if options.backend == "tune" and options.ray_address is not None:
        from vitnas.engine.tune import connect

        connect(options.ray_address, options.gpus_per_trial or 0.0)


def _settle(options: SearchOptions) -> SearchOptions:
    """Fill in what depends on the machine."""
    from dataclasses import replace

    import torch

    gpus = options.gpus_per_trial
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if gpus is None:
        gpus = 1.0 if there else 0.0
    if gpus and not there and options.ray_address is None:
        raise DeviceError(f"--gpus-per-trial {gpus:g}: this machine has no CUDA device")
    workers = options.workers
    if options.backend == "serial":
        workers = 1
    elif workers is None:
        workers = max(1, int(there / gpus)) if gpus and there else _cores()
    return replace(options, gpus_per_trial=gpus, workers=workers)


def _cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load_images(space: SearchSpace) -> BySize:
    from vitnas.training.data import load_data

    by_size = {size: load_data(space.config.data, size) for size in space.image_sizes()}
    images, fraction = next(iter(by_size.values())), space.config.proxy.train_fraction
    if len(images.train.subset(fraction, images.split_seed)) < 2:
        rule = f"leaves less than two of {len(images.train)} training images"
        raise ConfigError(rule, address="proxy.train_fraction", value=fraction, file=space.file)
    return by_size


def _worker(space: SearchSpace, options: SearchOptions, images: BySize) -> Worker:
    from vitnas.engine.worker import Worker

    # One thread a training on the CPU: a result must not depend on how many run beside it.
    threads = 1
    if options.gpus_per_trial:
        threads = max(1, _cores() // (options.workers or 1))
    return Worker(
        proxy=space.config.proxy,
        images=images,
        device="cuda" if options.gpus_per_trial else "cpu",
        threads=threads,
        gpu_share=min(1.0, options.gpus_per_trial or 1.0),
    )


def _controller(
    store: study.RunStore, space: SearchSpace, options: SearchOptions, listener: Listener | None
) -> Controller:
    epochs = space.config.proxy.epochs
    rungs = default_rungs(epochs) if options.prune else ()
    return Controller(
        store,
        space,
        num_trials=options.trials,
        epochs=epochs,
        seed=options.seed,
        sampler=options.sampler,
        pruner=FrontRankPruner(rungs) if rungs else None,
        listener=listener,
    )


def _train(path: Path, controller: Controller, worker: Worker, options: SearchOptions) -> None:
    steering = Steering(controller, FrontWeights(path))
    if controller.num_ended >= options.trials:
        return
    if options.backend == "serial":
        from vitnas.engine.serial import run_serial

        run_serial(steering, worker)
    else:
        from vitnas.engine.tune import run_tune

        run_tune(
            steering,
            worker,
            workers=options.workers or 1,
            gpus_per_trial=options.gpus_per_trial or 0.0,
            scratch=path / ".tune",
            address=options.ray_address,
        )


def _describe(
    store: study.RunStore, space: SearchSpace, options: SearchOptions, images: BySize
) -> None:
    """Write down what this session is, in the study and beside it."""
    environment = store.attrs.get("environment", {"sessions": []})
    facts = session_facts(
        backend=options.backend,
        workers=options.workers,
        gpus_per_trial=options.gpus_per_trial,
        sampler=options.sampler,
        prune=options.prune,
        device=_device_name(options),
    )
    environment = {
        "sessions": [*environment["sessions"], facts],
        "seed": options.seed,
        "data": _data_facts(images),
        "proxy": space.config.proxy.model_dump(mode="json"),
    }
    store.set("environment", environment)
    store.set("num_trials", options.trials)
    write_text(store.path / "environment.json", json.dumps(environment, indent=2) + "\n")
    write_text(store.path / "space.yaml", space.text)


def _data_facts(by_size: BySize) -> dict[str, Any]:
    images = next(iter(by_size.values()))
    facts = {
        "name": images.name,
        "num_classes": images.num_classes,
        "mean": [round(value, 6) for value in images.mean],
        "std": [round(value, 6) for value in images.std],
        "num_train_images": len(images.train),
        "num_val_images": len(images.val),
        "num_test_images": len(images.test()) if images.has_test else 0,
    }
    if len(by_size) > 1:  # each size has its own
        del facts["mean"], facts["std"]
    return facts


def _device_name(options: SearchOptions) -> str:
    import torch

    if options.gpus_per_trial and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return "cuda" if options.gpus_per_trial else "cpu"


def _score_front(store: study.RunStore, space: SearchSpace, by_size: BySize, path: Path) -> None:
    """Score the members of the final front once on the test split, and nobody else ever."""
    from vitnas.config.files import validate
    from vitnas.nn.model import build_model
    from vitnas.training.proxy import evaluate
    from vitnas.training.weights import load_weights

    if not next(iter(by_size.values())).has_test:
        return
    tested = store.attrs.get("test_top1", {})
    weights = FrontWeights(path)
    for trial in study.read_run(path).front:
        content = weights.get(trial.number)
        if str(trial.number) in tested or content is None:
            continue
        config = validate(ModelConfig, dict(trial.config))
        model = build_model(config)
        load_weights(model, content)
        split = by_size[config.image_hw].test()
        top1 = evaluate(model, split, space.config.proxy.eval_batch_size)
        store.describe_ended(trial.number, "test_top1", round(top1, 4))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One driver a run."""
    from filelock import FileLock, Timeout

    lock = FileLock(path / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunError(f"{path}: another search is writing to this run") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be written to ({error.strerror})") from None
    try:
        yield
    finally:
        lock.release()
