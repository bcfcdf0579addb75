"""How a candidate is trained, without torch: the `proxy` part of a file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vitnas.config.data import Augment, facts_of
from vitnas.config.parts import Frozen

Optimizer = Literal["adamw", "lamb", "sgd", "muon"]


class ProxyConfig(Frozen):
    """The short training that scores a candidate: linear warm-up, cosine to zero.

    The defaults suit `digits`; larger images want larger batches (see the files in `space/`).
    """

    epochs: Annotated[int, Field(ge=1, le=10_000)] = Field(
        10, description="passes over the training images"
    )
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = Field(
        32,
        description="the most images in one step. The batches of an epoch differ by one image at "
        "most, so that none is very small",
    )
    optimizer: Optimizer = Field(
        "adamw",
        description="`muon` moves matrices by orthogonal steps, and all else as `adamw` does: one "
        "rate then suits networks of many shapes; `lamb` is timm's, `sgd` has Nesterov momentum "
        "0.9",
    )
    lr: Annotated[float, Field(gt=0.0, le=1.0)] = Field(6e-3, description="peak learning rate")
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.05, description="the optimizer's, on matrices and kernels only"
    )
    warmup_epochs: Annotated[float, Field(ge=0.0, le=10_000.0)] = Field(
        1.0,
        description="epochs, or parts of one, over which the rate rises; at most half of the "
        "training",
    )
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.1, description="probability taken from the true class"
    )
    grad_clip: Annotated[float, Field(ge=0.0, le=1e6)] = Field(
        1.0, description="largest global norm of the gradient; 0: no clipping"
    )
    augment: Augment = Field(
        "auto",
        description="`shift` moves by up to an eighth of the side and fills with zeros, "
        "`shift_flip` mirrors too, `crop_flip` is a random resized crop and mirrors; `auto`: what "
        "suits the data in a few epochs, `shift_flip` for CIFAR, `crop_flip` for image folders, "
        "nothing for `digits`, `fashion_mnist` and the data sets of other packages",
    )
    train_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        1.0, description="share of the training images that is used, the same ones in every trial"
    )
    eval_batch_size: Annotated[int, Field(ge=1, le=65_536)] = Field(
        512, description="images scored at a time; does not change the result beyond rounding"
    )

    def augment_for(self, data: str) -> Augment:
        """What `augment` means on these images; never `auto`."""
        return facts_of(data).augment if self.augment == "auto" else self.augment
