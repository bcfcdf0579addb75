"""The training that scores a candidate, an epoch at a time, so that it can be stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor, nn

from vitnas.config.design import Design
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.exported.design import build_design
from vitnas.exported.quantized import CALIBRATION, InInt8
from vitnas.memory import keep_freed_memory
from vitnas.seeds import derive_seed
from vitnas.training.augment import augmentation_of, dealt
from vitnas.training.device import autocast, own_all_randomness, own_randomness, resolve_device
from vitnas.training.distill import Teacher, load_teacher, taught
from vitnas.training.images import Images
from vitnas.training.objective import Batch, Objective
from vitnas.training.optim import learning_rate
from vitnas.training.ranks import ALONE, Ranks
from vitnas.training.score import Score, check_finite, score, tally
from vitnas.training.split import Split
from vitnas.training.statistics import measure_statistics
from vitnas.training.step import TrainingStep

_FEWEST, _MOST = 256, 1024  # images that measure BatchNorm: an eighth of an epoch's, within these
_STEPS_PER_CHECK = 32  # noting the loss costs a copy, and waits for other processes


@dataclass(frozen=True)
class EpochResult:
    """What one epoch gave.

    Attributes:
        epoch: counted from 1.
        top1: percent of the scoring split, 0 to 100.
        loss: mean training loss over the epoch, label smoothing included.
        seconds: wall time of the epoch, scoring included.
        log_likelihood: of the scoring split; see `Score`.
        float_top1: where `top1` is that of the network in int8: that of the network as it is.
    """

    epoch: int
    top1: float
    loss: float
    seconds: float
    log_likelihood: float
    float_top1: float | None = None


class Training:
    """Train a network; iterate over it to get an `EpochResult` an epoch.

    The result depends only on the first weights, the recipe and the seed. Order of images,
    augmentation, mixing, dropout and drop-path have seeds of their own in each epoch. The global
    random states of Python, NumPy and torch are unchanged whenever an epoch has ended. On the CPU,
    with the same number of threads, the curve is the same to the bit. On CUDA it has been so
    whenever it was looked at, and nothing makes sure of it. BatchNorm's statistics are measured
    before each scoring, see `measure_statistics`.

    Args:
        model: the network; moved to `device` in place.
        proxy: how it is trained; `drop_path_rate` is left to who builds the network.
        images: what it is trained and scored on; moved to `device` if they are elsewhere.
        seed: any integer; the same one gives the same curve.
        device: `auto`, `cpu`, `cuda`, `cuda:1`. bfloat16 autocast on CUDA, float32 on the CPU.
        teacher: the one that the recipe names, where it is loaded already.
        int8: whether the last epoch scores the network in int8 (see `InInt8`), calibrated on images
            that train it. Earlier epochs score it as it is.
        ranks: the processes that train this network together.

    Attributes:
        model: the network, as the last epoch left it.
        images: as given, on `device`.

    Raises:
        DeviceError: `device` is not on this machine.
        ConfigError, DataError: as of `load_teacher`.
    """

    def __init__(
        self,
        model: nn.Module,
        proxy: Recipe,
        images: Images,
        seed: int,
        device: str | torch.device = "cpu",
        teacher: Teacher | None = None,
        int8: bool = False,
        ranks: Ranks = ALONE,
    ) -> None:
        self.proxy, self.seed, self.int8, self._ranks = proxy, seed, int8, ranks
        self.device = resolve_device(device)
        self.model = model.to(self.device)
        if proxy.grad_checkpointing and hasattr(self.model, "set_grad_checkpointing"):
            self.model.set_grad_checkpointing()  # type: ignore[operator]
        if proxy.train_fraction > images.fraction:
            raise ValueError(f"only {images.fraction:g} of the training images were read")
        self.images = images.to(self.device)
        if proxy.distill.teacher is not None and teacher is None:
            teacher = load_teacher(proxy.distill, self.images, self.device)
        whole = taught(self.images, proxy, teacher).train
        self._train = whole.subset(proxy.train_fraction, images.split_seed)
        self._curve = images_of_curve(self.images, proxy)
        self._steps = count_batches(len(self._train), proxy.batch_size)
        classes = images.num_classes
        self._objective = Objective(proxy, self.model, classes, self.device, teacher)
        self._step = TrainingStep(self.model, proxy, self._objective, self.device, ranks)

    def __iter__(self) -> Iterator[EpochResult]:
        return self.epochs()

    def epochs(self, first: int = 1) -> Iterator[EpochResult]:
        """Train from epoch `first` to the end, giving control back after every epoch; once.

        Raises:
            Diverged: as soon as the loss or a logit is not finite.
            torch.OutOfMemoryError: the device's memory is exhausted.
        """
        if self.device.type == "cpu":
            keep_freed_memory()
        self._step.done = (first - 1) * self._steps
        for epoch in range(first, self.proxy.epochs + 1):
            started = time.perf_counter()
            with own_all_randomness(self._seed(self._ranks.own("epoch"), epoch), self.device):
                loss = self._train_epoch(epoch)
                self._measure_statistics(epoch)
                found, in_float = self._score(epoch)
            seconds = time.perf_counter() - started
            yield EpochResult(epoch, found.top1, loss, seconds, found.log_likelihood, in_float)

    def _measure_statistics(self, epoch: int) -> None:
        """Measure BatchNorm in the network that is scored, by the first batches of the epoch."""
        recipe = self.proxy
        images = min(max(_FEWEST, self._steps * recipe.batch_size // 8), _MOST)
        batches = islice(self._batches(epoch), math.ceil(images / recipe.batch_size))
        parts = (part for batch in batches for part in batch.parts(recipe.micro_batch_size))
        with autocast(self.device):
            measure_statistics(self.scored(), (self._objective.mixed(part).x for part in parts))
        self._ranks.level(self.scored())

    def _score(self, epoch: int) -> tuple[Score, float | None]:
        """The score after `epoch`, on the images that score then; where it is one in int8, also
        top-1 in float."""
        is_last, size = epoch == self.proxy.epochs, self.proxy.eval_batch_size
        which = slice(self._ranks.rank, None, self._ranks.size)
        split = self.images.val if is_last else self._curve
        found = Score.of(self._ranks.sum(tally(self.scored(), split, size, which)))
        if not (self.int8 and is_last):
            return found, None
        return score(self.counted(), split, size), found.top1

    def _train_epoch(self, epoch: int) -> float:
        """One pass over the training images; the mean loss."""
        is_cheap = self.device.type == "cpu" and self._ranks.size == 1
        what = f"loss in epoch {epoch}"
        noted: Callable[[], float] = float  # nothing yet: 0
        total, seen = torch.zeros((), device=self.device), 0
        self.model.train()
        self._objective.begin(self.proxy.in_epoch(epoch))
        for number, batch in enumerate(self._batches(epoch)):
            total += self._step(batch, self._rate((epoch - 1) * self._steps + number))
            seen += len(batch.y)
            if is_cheap:
                check_finite(float(total), what)
            elif number % _STEPS_PER_CHECK == 0:
                check_finite(noted(), what)
                noted = _note(self._ranks.sum(total))
        total, images = self._ranks.sum(torch.stack([total, total.new_tensor(seen)]))
        return check_finite(float(total), what) / int(images)

    def _rate(self, step: int) -> float:
        """The learning rate of one step, counted from 0 over the whole training."""
        return learning_rate(self.proxy, step, self._steps)

    def call_steps(self) -> None:
        """Call each step, also where it would be captured and replayed (see `TrainingStep`)."""
        self._step.call()

    def scored(self) -> nn.Module:
        """The network whose accuracy counts: the trained one, or its moving average."""
        average: nn.Module = self.model if self._step.ema is None else self._step.ema.module
        return average

    def counted(self) -> nn.Module:
        """`scored`, in int8 where that counts."""
        return in_int8(self.scored(), self._train) if self.int8 else self.scored()

    def _batches(self, epoch: int) -> Iterator[Batch]:
        """Augmented and normalised images with their classes, as they are `dealt`; of each step
        this process's share."""
        order = self._generator("order", epoch)
        augmenting = self._generator(self._ranks.own("augment"), epoch)
        recipe = self.proxy.in_epoch(epoch)
        augment = augmentation_of(recipe, self.images.name)
        numbers = dealt(len(self._train), recipe.repeated_augmentation, order)
        steps = (numbers % len(self._train)).tensor_split(self._steps)
        parts = [self._ranks.share(step) for step in steps]
        # at once: the host waits for the device
        wanted = torch.cat(parts).to(self._train.numbers_device).split([len(one) for one in parts])
        for step, index, pixels in zip(steps, parts, self._train.pixels_of(wanted), strict=True):
            x = self._train.normalise(augment(pixels, augmenting))
            weight = self._ranks.weight(len(index), len(step))
            yield Batch(x, self._train.y[index], self._known(index), weight)

    def _known(self, index: Tensor) -> Tensor | None:
        """What the teacher says of these images, if they are shown as it saw them."""
        known = self._train.taught if self.proxy.keeps_images(self.images.name) else None
        return None if known is None else known[index]

    def _generator(self, purpose: str, epoch: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(self._seed(purpose, epoch))

    def _seed(self, purpose: str, epoch: int) -> int:
        return derive_seed(self.seed, purpose, epoch)


class ProxyTraining(Training):
    """Train one candidate from weights that come from the seed, too.

    Args:
        model_config: the candidate; it gets the recipe's drop-path rate.
        proxy, images, seed, device, teacher, int8: as for `Training`.

    Raises:
        ConfigError: the network's classes, channels or image size are not those of `images`.
        DeviceError: `device` is not on this machine.
    """

    def __init__(
        self,
        model_config: ModelConfig,
        proxy: Recipe,
        images: Images,
        seed: int,
        device: str | torch.device = "cpu",
        teacher: Teacher | None = None,
        int8: bool = False,
    ) -> None:
        images.check_fits(model_config)
        if proxy.drop_path_rate is not None:
            changes = {"drop_path_rate": proxy.drop_path_rate}
            model_config = model_config.model_copy(update=changes)
        model = fresh_model(model_config, seed, resolve_device(device))
        super().__init__(model, proxy, images, seed, device, teacher, int8)


def fresh_model(design: Design, seed: int, device: torch.device) -> nn.Module:
    """The network with the first weights that `seed` gives, whatever was drawn before."""
    return seeded(lambda: build_design(design), seed, device)


def seeded(build: Callable[[], nn.Module], seed: int, device: str | torch.device) -> nn.Module:
    """The network that `build` makes, with first weights from `seed`, on `device`."""
    device = resolve_device(device)
    with own_randomness(derive_seed(seed, "init"), device):
        return build().to(device)


def in_int8(network: nn.Module, train: Split) -> nn.Module:
    """The network in int8 on the CPU, calibrated on `CALIBRATION` images of `train` at most."""
    some = train.some(CALIBRATION)
    return InInt8(network, some.normalise(some.x))


def images_of_curve(images: Images, proxy: Recipe) -> Split:
    """What scores every epoch but the last: `curve_fraction` of the scoring images, of each class
    the same share; all of them where that is not one image."""
    part = images.val.subset(proxy.curve_fraction, images.split_seed)
    return part if len(part) else images.val


def count_batches(number: int, batch_size: int) -> int:
    """Batches that `number` images are dealt into: `batch_size` at most, and two at least.

    If both are impossible, there are batches of three: batch norm needs more than one image.
    """
    batches = max(1, math.ceil(number / batch_size))
    return batches if number // batches >= 2 else max(1, number // 2)


def _note(value: Tensor) -> Callable[[], float]:
    """What reads the number that `value` is now. On CUDA it comes to the host by itself: whoever
    reads it some steps later waits for nothing that was asked of the device since."""
    if not value.is_cuda:
        number = float(value)
        return lambda: number
    host, done = value.to("cpu", non_blocking=True), torch.cuda.Event()
    done.record(torch.cuda.current_stream(value.device))

    def read() -> float:
        done.synchronize()
        return float(host)

    return read
