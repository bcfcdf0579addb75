"""What a search finds before it trains: images, device, and the worker that trains on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING

from vitnas.config.baseline import Baseline, PricedBaseline
from vitnas.config.costs import COSTS, measured_with
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.cost.survey import median_network
from vitnas.data.telling import SILENT, Teller
from vitnas.engine.backends.resources import Resources
from vitnas.engine.backends.worker import Worker, device_name, measured_name
from vitnas.engine.batch.rates import USUAL_CLIMB, pilot
from vitnas.errors import ConfigError, printable
from vitnas.exported.programs import without_onnx
from vitnas.sessions import Data

if TYPE_CHECKING:
    from vitnas.data.elsewhere import Sender
    from vitnas.training.distill import Teacher
    from vitnas.training.images import Images


@dataclass(frozen=True)
class Findings:
    """What is known before the first training.

    Attributes:
        data: the images.
        device: name of what trains.
        notices: lines about the images, for the user.
        measured_on: name of what costs are measured on; empty where none is.
        training_seconds: estimated time to train a median network; None where it is not known.
        baselines: the reference networks that the space is compared with.
        baseline_seconds: estimated time to train all of them; None where it is not known.
    """

    data: Data
    device: str
    notices: tuple[str, ...] = ()
    measured_on: str = ""
    training_seconds: float | None = None
    baselines: tuple[PricedBaseline, ...] = ()
    baseline_seconds: float | None = None


def prepare_worker(
    space: SearchSpace,
    resources: Resources,
    most_baselines: int = 0,
    before: Worker | None = None,
    sender: Sender | None = None,
    teller: Teller = SILENT,
) -> tuple[Findings, Worker]:
    """Read the images of a space: what is found, and the worker that trains on them.

    Args:
        space: what is searched.
        resources: what trainings run on.
        most_baselines: see `vitnas.baselines.sizes.line_up`.
        before: an earlier worker; what it has read of the same data is not read again.
        sender: hands this machine's decoded images out to workers on others; None: there are none.
        teller: told what is read where that takes long.

    Raises:
        DataError: they are missing or unreadable.
        ConfigError: too few are left to train on.
        DeviceError: trainings run on this machine alone, and torch can use no CUDA device of it.
    """
    from vitnas.training.device import check_cuda

    if resources.gpus and sender is None:
        check_cuda(f"--gpus-per-trial {resources.gpus:g}:")
    images = _images(space, before, teller)
    some = next(iter(images.values()))
    _check_fits(space, images[space.example.image_hw])
    teachers = _teachers(space, images)
    worker = Worker(
        proxy=space.config.proxy,
        images=images,
        device=resources.device,
        threads=resources.threads,
        gpu_share=resources.memory_share,
        measures=measured_with(space.config.measured),
        data=space.config.data,
        teachers=teachers,
        int8=space.config.objectives.is_int8,
    )
    baselines, omitted = _baselines(space, most_baselines)
    findings = Findings(
        data=_data(images),
        device=device_name(resources.device),
        notices=(*some.notices, *omitted),
        measured_on=measured_name(resources.device, worker.measures),
        training_seconds=_seconds_of_training(space, worker),
        baselines=baselines,
        baseline_seconds=_seconds_of_baselines(baselines, worker),
    )
    return findings, worker if sender is None else worker.sent(sender)


def check_onnx(space: SearchSpace) -> None:
    """Make sure that onnxruntime is there where an objective or a limit needs it; reads no image.

    Raises:
        ConfigError: packages are missing; names them and the command.
    """
    config = space.config
    needed = [f"objectives.{config.objectives.quality}"] if config.objectives.is_int8 else []
    for name in config.measured:
        if COSTS[name].by_onnx:
            part = "objectives" if name in config.objectives.costs else "limits"
            needed.append(f"{part}.{name}")
    if needed and (missing := without_onnx()):
        raise ConfigError(missing, address=needed[0], file=space.file)


def _baselines(space: SearchSpace, most: int) -> tuple[tuple[PricedBaseline, ...], tuple[str, ...]]:
    """What a space is compared with, and lines where something is left out; see `line_up`."""
    if not most:
        return (), ()
    from vitnas.baselines.sizes import line_up  # timm's blocks, which take long to import

    lineup = line_up(space, most)
    return lineup.members, lineup.notices


def _images(
    space: SearchSpace, before: Worker | None, teller: Teller
) -> dict[tuple[int, int], Images]:
    """The space's images by (H, W): those that `before` holds, and the others from their files."""
    from vitnas.training.data import load_sizes

    data, fraction = space.config.data, space.config.proxy.train_fraction
    held = {} if before is None or before.data != data else before.images
    sizes = space.image_sizes()
    known = {s: held[s] for s in sizes if s in held and held[s].fraction >= fraction}
    new = [size for size in sizes if size not in known]
    try:
        read = load_sizes(data, new, fraction, teller) if new else {}
    except ConfigError as error:  # of `data.name`, or of the proxy's fields
        prefix = "" if error.address.startswith("data.") else "proxy"
        raise error.at(file=space.file, prefix=prefix) from None
    return {size: (known | read)[size] for size in sizes}


def _teachers(
    space: SearchSpace, images: Mapping[tuple[int, int], Images]
) -> dict[tuple[int, int], Teacher]:
    """The proxy's teacher for each size of image; nothing where it has none.

    Raises:
        ConfigError: it is not there, or for other images.
        DataError: its weights cannot be read.
    """
    from vitnas.training.device import resolve_device
    from vitnas.training.distill import load_teacher

    distill, cpu = space.config.proxy.distill, resolve_device("cpu")
    if distill.teacher is None:
        return {}
    try:
        return {size: load_teacher(distill, each, cpu) for size, each in images.items()}
    except ConfigError as error:
        raise error.at(file=space.file, prefix="proxy") from None


def _seconds_of_training(space: SearchSpace, worker: Worker) -> float | None:
    """Estimated for a median network; None on a GPU, and where the space has no median."""
    median = median_network(space) if worker.device == "cpu" else None
    return None if median is None else _seconds_of(median, worker)


def _seconds_of(subject: ModelConfig | Baseline, worker: Worker) -> float | None:
    from vitnas.training.timing import seconds_of_training

    images, teacher = worker.images[subject.image_hw], worker.teachers.get(subject.image_hw)
    return seconds_of_training(subject, worker.proxy, images, worker.threads, teacher)


def _seconds_of_baselines(members: Sequence[PricedBaseline], worker: Worker) -> float | None:
    """Estimated from the smallest and the largest of each family; None on a GPU.

    With the rates that are tried: by one member of each family, and by all of two families, the one
    that decides the comparison and the next best. The first family most often is one of them; the
    other counts with the mean of the families that are left.
    """
    from vitnas.training.timing import seconds_between

    def timed(member: PricedBaseline) -> tuple[int, float] | None:
        seconds = _seconds_of(member.baseline, worker)
        return None if seconds is None else (member.flops, seconds)

    if worker.device != "cpu":
        return None
    total = 0.0
    climbs: list[float] = []  # of all members of a family but its pilot
    for _, group in groupby(members, key=lambda member: member.baseline.family):
        family = list(group)
        first, last = timed(family[0]), timed(family[-1])
        if first is None or last is None:
            return None
        seconds = {one: seconds_between(one.flops, (first, last)) for one in family}
        total += sum(seconds.values()) + USUAL_CLIMB * seconds.pop(pilot(family))
        climbs.append(USUAL_CLIMB * sum(seconds.values()))
    return total + sum(climbs[:1]) + (fmean(climbs[1:]) if len(climbs) > 1 else 0.0)


def _check_fits(space: SearchSpace, images: Images) -> None:
    """Refuse a space for other images, where they had to be read to know.

    Raises:
        ConfigError: the number of classes or of channels differs.
    """
    try:
        images.check_fits(space.example)
    except ConfigError as error:
        raise error.at(file=space.file, prefix="model") from None


def _data(by_size: Mapping[tuple[int, int], Images]) -> Data:
    """What was trained and scored on.

    Raises:
        DataError: there are too few images for so many folds.
    """
    images = next(iter(by_size.values()))
    facts = {
        "name": images.name,
        "num_classes": images.num_classes,
        "classes": [printable(name) for name in images.names] or None,
        "num_train_images": len(images.train),
        "num_val_images": sum(len(images.fold(number).val) for number in range(images.folds)),
        "num_test_images": len(images.test()) if images.has_test else 0,
        "fingerprint": dict(images.fingerprint),
        "skipped": list(images.skipped),
    }
    told = {f"{h}x{w}": _normalisation(each) for (h, w), each in by_size.items()}
    facts |= {"by_size": told} if len(told) > 1 else _normalisation(images)
    return Data.model_validate({name: told for name, told in facts.items() if told is not None})


def _normalisation(images: Images) -> dict[str, list[float]]:
    values = {"mean": images.mean, "std": images.std}
    return {name: [round(value, 6) for value in each] for name, each in values.items()}
