"""What a search finds before it trains: images, device, and the worker that trains on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vitnas.config.costs import measured_with
from vitnas.config.space import SearchSpace
from vitnas.cost.survey import median_network
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.worker import Worker, device_name, measured_name
from vitnas.errors import ConfigError

if TYPE_CHECKING:
    from vitnas.training.data import Images


def prepare_worker(space: SearchSpace, resources: Resources) -> tuple[dict[str, Any], Worker]:
    """Read the images of a space: what is known of them and of this machine's device, how many
    seconds a training of a median network takes about (on the CPU), and the worker that trains.

    Raises:
        DataError: they are missing or unreadable.
        ConfigError: too few are left to train on.
        DeviceError: this machine lacks the device.
    """
    import torch

    from vitnas.training.data import check_enough, load_data
    from vitnas.training.timing import seconds_of_training

    images = {size: load_data(space.config.data, size) for size in space.image_sizes()}
    some, fraction = next(iter(images.values())), space.config.proxy.train_fraction
    left = len(some.train.subset(fraction, some.split_seed))
    try:
        check_enough(left, len(some.train), fraction, "proxy.train_fraction")
    except ConfigError as error:
        raise error.at(file=space.file) from None
    _check_fits(space, some)
    worker = Worker(
        proxy=space.config.proxy,
        images=images,
        device=resources.device,
        threads=resources.threads,
        gpu_share=resources.memory_share,
        measures=measured_with(space.config.measured),
    )
    name = device_name(resources.device) if torch.cuda.is_available() else resources.device
    facts: dict[str, Any] = {
        "data": data_facts(images),
        "device": name,
        "notices": some.notices,
    }
    median = median_network(space) if resources.device == "cpu" else None
    if median is not None:
        facts["training_seconds"] = seconds_of_training(
            median, space.config.proxy, images[median.image_hw], resources.threads
        )
    if worker.measures:
        facts["measured_on"] = measured_name(resources.device)
    return facts, worker


def _check_fits(space: SearchSpace, images: Images) -> None:
    """Refuse a space for other images, where they had to be read to know.

    Raises:
        ConfigError: the number of classes or of channels differs.
    """
    fitted = {"img_size": images.image_hw}  # there is a copy of the images for every size
    try:
        images.check_fits(space.example.model_copy(update=fitted))
    except ConfigError as error:
        raise error.at(file=space.file, prefix="model") from None


def data_facts(by_size: Mapping[tuple[int, int], Images]) -> dict[str, Any]:
    """What was trained and scored on; without mean and deviation where each size has its own."""
    images = next(iter(by_size.values()))
    facts = {
        "name": images.name,
        "num_classes": images.num_classes,
        "mean": [round(value, 6) for value in images.mean],
        "std": [round(value, 6) for value in images.std],
        "num_train_images": len(images.train),
        "num_val_images": len(images.val),
        "num_test_images": len(images.test()) if images.has_test else 0,
        "fingerprint": dict(images.fingerprint),
        "skipped": list(images.skipped),
    }
    if len(by_size) > 1:
        del facts["mean"], facts["std"]
    return facts
