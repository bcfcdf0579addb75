"""The facts of a run besides its trials: sessions, data, proxy training.

They are stored as JSON. A field that another version of vitnas did not write is None, and further
fields are kept (`told`). A value of a wrong type is an error.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Amount = Annotated[float, Field(ge=0.0)]
Text = Annotated[str, Field(max_length=100_000)]  # the bound also refuses half a surrogate pair


class Facts(BaseModel):
    """Facts of one kind, as stored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)

    def told(self) -> dict[str, Any]:
        """What is stored, as plain values, and nothing that is only a default."""
        return self.model_dump(exclude_unset=True)


class Normalisation(Facts):
    """How pixels from 0 to 1 become a network's input: mean and deviation of each channel."""

    mean: list[float]
    std: list[float]


class Data(Facts):
    """What was trained and scored on.

    Attributes:
        name: of the data set.
        num_classes: its classes.
        classes: their names, in the order of their numbers; None where they are only numbered.
        mean, std: of each channel of the training images; None where each size has its own.
        by_size: these, by `16x32` (H x W in pixels), where there are several sizes.
        fingerprint: of the images (see `vitnas.data.source.DataSource`).
        num_train_images, num_val_images, num_test_images: images of each split. With several folds
            (see `DataConfig`), the first is of one fold, and the second of all folds together.
    """

    name: Text | None = None
    num_classes: Count | None = None
    classes: list[Text] | None = None
    mean: list[float] | None = None
    std: list[float] | None = None
    by_size: dict[Text, Normalisation] | None = None
    fingerprint: dict[Text, Any] | None = None
    num_train_images: Count | None = None
    num_val_images: Count | None = None
    num_test_images: Count | None = None

    def normalisation(self, image_hw: tuple[int, int]) -> Normalisation | None:
        """Of images of this size, (H, W) in pixels; None where it is not told."""
        if self.mean and self.std:
            return Normalisation(mean=self.mean, std=self.std)
        height, width = image_hw
        return (self.by_size or {}).get(f"{height}x{width}")


class Proxy(Facts):
    """The short training that scores a candidate; its other fields are those of `ProxyConfig`.

    Attributes:
        epochs: of a training that is not stopped.
    """

    epochs: Count | None = None


class Hardware(Facts):
    """The machine that the driver ran on.

    Attributes:
        cpu: the processor's name.
        cores: its logical cores.
        memory_gb: in 10^9 bytes.
    """

    cpu: Text | None = None
    cores: Count | None = None
    memory_gb: Amount | None = None


class Pruner(Facts):
    """Who stopped trainings early, with its options.

    Attributes:
        name: `none`, `curve`, `front` or `both`.
    """

    name: Text | None = None


class Session(Facts):
    """One call of the search.

    Attributes:
        started: when, in ISO 8601.
        command: the command line.
        versions: of Python and of the packages that matter, by name.
        hardware: the driver's machine.
        git_revision: of the checkout, with `+` when files differ from it.
        backend, sampler, pruner: who trained, who proposed, who stopped early.
        prune: stands for the pruner in the oldest runs.
        workers: trainings at a time.
        gpus_per_trial: GPUs, or the share of one, that each had; 0 on the CPU.
        device: where a worker trained.
        keep_weights: up to which size the weights of other networks than those that may be on the
            front were kept, e.g. `500MB`.
        ended_by: why the session ended before all trials had; None when it did not.
        baselines_done: whether all trainings of its baselines have ended, those at further
            learning rates and with other seeds included; None before they begin.
    """

    started: Text | None = None
    command: Text | None = None
    versions: dict[Text, Text | None] = {}
    hardware: Hardware = Hardware()
    git_revision: Text | None = None
    backend: Text | None = None
    sampler: Text | None = None
    pruner: Pruner | None = None
    prune: bool | None = None
    workers: Count | None = None
    gpus_per_trial: Amount | None = None
    device: Text | None = None
    keep_weights: Text | None = None
    ended_by: Text | None = None
    baselines_done: bool | None = None


class Environment(Facts):
    """What a run's results depend on besides the code.

    Attributes:
        sessions: first to last.
        seed: of the run.
        data: what was trained and scored on.
        proxy: how.
        tuned: what was found by tuning it before the first trial; None where it was not tuned.
    """

    sessions: list[Session] = []
    seed: int | None = None
    data: Data = Data()
    proxy: Proxy = Proxy()
    tuned: Text | None = None

    @property
    def last(self) -> Session:
        """The last session; one that tells nothing where there is none."""
        return self.sessions[-1] if self.sessions else Session()
