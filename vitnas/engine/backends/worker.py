"""Running one job on a device: what both back ends execute, in this process or in another."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vitnas.config.baseline import Baseline
from vitnas.config.costs import COSTS
from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.engine.backends.gate import DeviceGate
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.decide.job import EpochDone, Failure, Job, Measured, Message
from vitnas.errors import MemoryLimitError
from vitnas.records import Outcome

if TYPE_CHECKING:
    from torch import nn

    from vitnas.data.elsewhere import Sender
    from vitnas.training.distill import Teacher
    from vitnas.training.folds import Folds
    from vitnas.training.images import Images
    from vitnas.training.proxy import EpochResult, Training


@dataclass(frozen=True)
class Trained:
    """A network and its weights.

    Attributes:
        config: the network.
        weights: safetensors.
        file: their file, for errors.
    """

    config: ModelConfig
    weights: bytes = field(repr=False)
    file: str


@dataclass(frozen=True)
class Worker:
    """Everything but the job that a training needs.

    Attributes:
        proxy: the short training.
        images: data by (H, W) in pixels, on any device; moved to `device` once.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        threads: CPU threads of torch; None leaves them as they are.
        gpu_share: share of the device's memory that may be used, 0 to 1.
        measures: costs of a network that are measured before its first epoch. Workers that measure
            pause between epochs for each other's measurements.
        data: the configuration by which the images were read; None if it is not needed.
        teachers: the proxy's teacher by (H, W), where it has one.
        int8: whether a trained network is scored in int8 (see `vitnas.training.proxy.Training`).
    """

    proxy: ProxyConfig
    images: Mapping[tuple[int, int], Images]
    device: str = "auto"
    threads: int | None = None
    gpu_share: float = 1.0
    measures: tuple[str, ...] = ()
    data: DataConfig | None = None
    teachers: Mapping[tuple[int, int], Teacher] = field(default_factory=dict)
    int8: bool = False

    def settle(self) -> Worker:
        """The same worker with data and teachers on its device; once per process."""
        import torch

        from vitnas.training.device import resolve_device
        from vitnas.training.distill import taught

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        device = resolve_device(self.device)
        for each in self.images.values():
            each.fetch()
        images = {s: images.to(device, self.gpu_share) for s, images in self.images.items()}
        teachers = {size: teacher.to(device) for size, teacher in self.teachers.items()}
        images = {s: taught(each, self.proxy, teachers.get(s)) for s, each in images.items()}
        return replace(self, images=images, teachers=teachers, device=str(device))

    def sent(self, by: Sender) -> Worker:
        """The same worker for other machines, which fetch the images on disk from this one."""
        images = {size: images.sent(by) for size, images in self.images.items()}
        return replace(self, images=images)

    def run(self, job: Job) -> Iterator[Message]:
        """Train `job` from the start. The caller stops it by asking for no more messages.

        The result depends only on the job, never on earlier jobs of this process.
        """
        from vitnas.nn.weights import weights_bytes

        started = time.monotonic()
        device = device_name(self.device)
        try:
            self._cap_memory(1.0 if job.alone else self.gpu_share)
            training = self._training(job.config, self.proxy, job.seed, int8=self.int8)
            if self.measures and not job.again:
                yield self._measure(training, job.config)
                started = time.monotonic()  # waiting for others is not the network's fault
            for result in self._paused(training):
                is_last = result.epoch == self.proxy.epochs
                weights = weights_bytes(training.scored()) if is_last else None
                seconds = time.monotonic() - started
                in_float = result.float_top1
                yield EpochDone(result.epoch, result.top1, seconds, device, weights, in_float)
        except Exception as error:  # a bug, too, is this trial's outcome and not the search's end
            seconds = time.monotonic() - started
            yield Failure(_outcome(error), summary(error), seconds, device)

    def answer(self, request: Request) -> Answer:
        """Do one training of a batch. Depends only on the request, as `run` on its job."""
        started, device = time.monotonic(), device_name(self.device)
        done: list[EpochResult] = []
        facts: dict[str, Any] = {"outcome": Outcome.COMPLETE}
        try:
            self._cap_memory(self.gpu_share)
            folds = 1 if request.zero_cost else None  # the first fold's network is scored
            what = request.subject, request.proxy, request.seed
            training = self._training(*what, folds, request.int8, request.some_classes)
            if request.zero_cost:
                facts["scores"] = _scores(training)
            else:
                done.extend(training)
            if request.test:
                facts["test_top1"] = self._test_score(training)
        except Exception as error:
            facts = {"outcome": _outcome(error), "error": summary(error)}
        return Answer(
            curve=tuple(epoch.top1 for epoch in done),
            losses=tuple(epoch.loss for epoch in done),
            log_likelihoods=tuple(epoch.log_likelihood for epoch in done),
            seconds=time.monotonic() - started,
            device=device,
            **facts,
        )

    def _training(
        self,
        subject: ModelConfig | Baseline,
        proxy: ProxyConfig,
        seed: int,
        folds: int | None = None,
        int8: bool = False,
        some_classes: bool = False,
    ) -> Training | Folds:
        """The training of a network on all folds, or on the first so many; on images of all
        classes, or of as many as the network has."""
        from vitnas.training.subject import training_of

        images = self.images[subject.image_hw]
        teacher = self.teachers.get(subject.image_hw) if proxy.distill.teacher else None
        images = images if folds is None else replace(images, folds=folds)
        if some_classes:
            images = images.with_classes(subject.num_classes, proxy.train_fraction)
            proxy = proxy.model_copy(update={"train_fraction": 1.0})
        return training_of(subject, proxy, images, seed, self.device, teacher, int8)

    def _test_score(self, training: Training | Folds) -> float | None:
        """Top-1 in percent on the test images, of the first fold's network as for candidates; None
        where there are none."""
        from vitnas.training.score import evaluate

        images = training.images
        if not images.has_test:
            return None
        return evaluate(training.counted(), images.test(), training.proxy.eval_batch_size)

    def _measure(self, training: Training | Folds, config: ModelConfig) -> Measured:
        """What forward passes cost, in the precision that scores, with the device for itself."""
        from vitnas.cost.device import measure
        from vitnas.training.device import autocast

        shape = (config.in_chans, *config.image_hw)
        with self._gate().alone(), autocast(training.device):
            kinds = [COSTS[name] for name in self.measures]
            costs = measure(training.model, shape, training.device, kinds)
        return Measured(costs, measured_name(self.device, self.measures))

    def _paused(self, training: Training | Folds) -> Iterator[EpochResult]:
        """The training, an epoch at a time, none during another worker's measurement."""
        gate, epochs = self._gate() if self.measures else None, iter(training)
        while True:
            with nullcontext() if gate is None else gate.shared():
                result = next(epochs, None)
            if result is None:
                return
            yield result

    def _gate(self) -> DeviceGate:
        import torch

        device = torch.device(self.device)
        if device.type != "cuda":
            return DeviceGate(device.type)
        return DeviceGate(f"cuda-{torch.cuda.get_device_properties(device).uuid}")

    def score(self, networks: Sequence[Trained]) -> list[float]:
        """Top-1 of each network in percent on the test split.

        Raises:
            DataError: weights are damaged, with their file.
        """
        from vitnas.nn.weights import network_with
        from vitnas.training.proxy import in_int8
        from vitnas.training.score import evaluate

        scores = []
        for network in networks:
            model: nn.Module = network_with(network.config, network.weights, network.file)
            images = self.images[network.config.image_hw]
            if self.int8:
                part = self.proxy.train_fraction, images.split_seed
                model = in_int8(model, images.train.subset(*part))
            else:
                model.to(self.device)
            scores.append(evaluate(model, images.test(), self.proxy.eval_batch_size))
        return scores

    def _cap_memory(self, share: float) -> None:
        """Give this process a share of its CUDA device's memory; nothing elsewhere."""
        import torch

        device = torch.device(self.device)
        if device.type == "cuda":
            torch.cuda.set_per_process_memory_fraction(share, device.index)


def _scores(training: Training | Folds) -> dict[str, tuple[float, float]]:
    """The scores of a network at initialisation, on the same images for every network."""
    from vitnas.training.zero_cost import BATCH, zero_cost_scores

    some = training.images.train.some(BATCH, training.images.split_seed)
    return zero_cost_scores(training.model, some.normalise(some.x), some.y)


def _outcome(error: Exception) -> Outcome:
    """What a training that ends in this error has come to."""
    from vitnas.training.device import is_out_of_memory
    from vitnas.training.score import Diverged

    if isinstance(error, Diverged):
        return Outcome.DIVERGED
    is_memory = isinstance(error, MemoryLimitError) or is_out_of_memory(error)
    return Outcome.OOM if is_memory else Outcome.FAILED


def summary(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def measured_name(device: str, measures: Sequence[str]) -> str:
    """The names of what these costs are measured on and valid for: the card's for a CUDA device,
    the processor's for what onnxruntime measures and where there is no card; empty for none."""
    from vitnas.environment import cpu_model

    name = device_name(device)
    on_cpu = {name == "cpu" or COSTS[cost].by_onnx for cost in measures}
    return " and ".join(cpu_model() if cpu else name for cpu in sorted(on_cpu))


def device_name(device: str) -> str:
    """The card's name for a CUDA device of this machine, else `cpu` or `cuda`."""
    import torch

    resolved = torch.device(device)
    is_here = resolved.type == "cuda" and torch.cuda.is_available()
    return torch.cuda.get_device_name(resolved) if is_here else resolved.type
