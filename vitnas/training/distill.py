"""Distillation: a network learns from a teacher's probabilities instead of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax

from vitnas.config.files import exists, is_file
from vitnas.config.recipe import DistillConfig, Recipe
from vitnas.environment import only_errors_of
from vitnas.errors import ConfigError, DataError, nearest_name, printable
from vitnas.exported.folder import WEIGHTS_FILE
from vitnas.exported.hub import stated_pixels
from vitnas.exported.read import load
from vitnas.training.device import autocast
from vitnas.training.images import Images
from vitnas.training.score import batch_on
from vitnas.training.split import Split

_MOST_BYTES = 1 << 30
_Stated = tuple[nn.Module, Mapping[str, Any]]
"""A network, with `mean` and `std` of its pixels from 0 to 1 where they are known."""


def soft_cross_entropy(student: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """-mean over images of the sum over classes of P_teacher log P_student.

    Source: SReT, Eq. 17; labels are not used. Its minimum is the mean entropy of the teacher's
    probabilities, reached where the student's are equal. The difference from it is the
    Kullback-Leibler divergence, so its gradient is that of DeiT's soft distillation times a
    constant: DeiT divides by images *and classes*. This factor, a thousand for ImageNet, makes
    DeiT's value "extremely small". SReT's footnote 7 blames the logarithm of the teacher's
    probabilities, but `kl_div(log_target=True)` undoes it.

    Args:
        student, teacher: logits `(B, classes)`; no gradient flows to the teacher's.
        temperature: what both are divided by, > 0.
    """
    wanted = (teacher.detach() / temperature).softmax(dim=1)
    return -(wanted * log_softmax(student / temperature, dim=1)).sum(dim=1).mean()


def hard_cross_entropy(student: Tensor, teacher: Tensor) -> Tensor:
    """The cross entropy of the class that the teacher thinks most likely.

    Source: DeiT, Eq. 3, whose other half is that of the label.

    Args:
        student, teacher: logits `(B, classes)`; no gradient flows to the teacher's.
    """
    return cross_entropy(student, teacher.argmax(dim=1))


class Teacher:
    """A trained network that is only evaluated: in eval mode, without gradients.

    Args:
        model: images `(B, C, H, W)` -> logits; moved to `device`.
        device: where it is evaluated.
        scale, shift: `(C, 1, 1)`, from the student's normalised pixels to the teacher's.
    """

    def __init__(
        self,
        model: nn.Module,
        device: torch.device,
        scale: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> None:
        self.model = model.to(device).eval().requires_grad_(False)
        self.device = device
        self._scale = None if scale is None else scale.to(device)
        self._shift = None if shift is None else shift.to(device)

    def to(self, device: torch.device) -> Teacher:
        """The same teacher on `device`; its network is moved in place."""
        return Teacher(self.model, device, self._scale, self._shift)

    def __call__(self, x: Tensor) -> Tensor:
        """Logits `(B, classes)` in float32."""
        if self._scale is not None and self._shift is not None:
            x = x * self._scale + self._shift
        with torch.no_grad(), autocast(self.device):
            logits: Tensor = self.model(x)
        return logits.float()


def taught(images: Images, recipe: Recipe, teacher: Teacher | None) -> Images:
    """The images with what the teacher says of each, once for all epochs and networks.

    Images that a recipe changes, or so many that the answers take more than a gigabyte, are
    returned as they are: the teacher is asked in each step. So are images that have the answers.

    Args:
        teacher: on the device of the images; None: the recipe has none.
    """
    size = 4 * (len(images.train) + len(images.val)) * images.num_classes
    if teacher is None or not recipe.keeps_images(images.name) or size > _MOST_BYTES:
        return images
    if images.train.taught is not None:
        return images
    most = recipe.eval_batch_size
    train = _answered(images.train, teacher, most)
    val = _answered(images.val, teacher, most) if images.folds > 1 else images.val
    return replace(images, train=train, val=val)


def _answered(split: Split, teacher: Teacher, most: int) -> Split:
    """What is not there (see `Rows`) gets zeros."""
    found: Tensor | None = None
    size = batch_on(split.y.device, most, split)
    for index in split.there(torch.arange(len(split), device=split.y.device)).split(size):
        logits = teacher(split.normalise(split.pixels[index]))
        if found is None:
            found = logits.new_zeros(len(split), logits.shape[1])
        found[index] = logits
    return replace(split, taught=found)


def load_teacher(config: DistillConfig, images: Images, device: torch.device) -> Teacher:
    """The teacher that a recipe names, checked against the images.

    It sees the pixels with the mean and deviation that it was trained with, as config.json of an
    exported folder or timm says; as the student does where nothing says it.

    Raises:
        ConfigError: no such teacher, or one for other classes or another image size.
        DataError: its weights cannot be read or fetched.
    """
    assert config.teacher is not None
    is_ours = exists(Path(config.teacher, WEIGHTS_FILE))
    model, stated = _exported(config) if is_ours else _timm_model(config, images)
    teacher = Teacher(model, device, *_renormalise(stated, images))
    _check_fits(teacher.model, config.teacher, images)
    return teacher


def _exported(config: DistillConfig) -> _Stated:
    if config.weights is not None:
        rule = "an exported folder has its own weights"
        raise ConfigError(rule, address="distill.weights", value=config.weights)
    folder = Path(str(config.teacher))
    model: Any = load(folder)
    return model, stated_pixels(folder, model)


def _timm_model(config: DistillConfig, images: Images) -> _Stated:
    import timm

    name = str(config.teacher)
    if not timm.is_model(name.split(".")[0]):
        nearest = nearest_name(name, timm.list_models())
        rule = "is neither an exported folder nor a model of timm"
        raise ConfigError(rule, address="distill.teacher", value=name, nearest=nearest)
    options: dict[str, Any] = {"pretrained": True}
    if config.weights is None:  # before anything is fetched
        _check_classes(_declared_classes(name), name, images)
    if config.weights is not None:
        if not is_file(config.weights):
            raise DataError(f"teacher {name}: {config.weights}: no such file")
        fresh = {"num_classes": images.num_classes, "in_chans": images.in_chans}
        options = {"checkpoint_path": config.weights, **fresh}
    try:
        with only_errors_of("huggingface_hub"):  # which logs each of its retries
            model: Any = timm.create_model(name, **options)
    except Exception as error:  # the hub, pickle, safetensors and timm each raise their own errors
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        where = config.weights or "its weights"
        hint = "" if config.weights else "; name a file with them in distill.weights"
        raise DataError(
            f"teacher {name}: {where} cannot be loaded: {problem[:200]}{hint}"
        ) from None
    return model, getattr(model, "pretrained_cfg", None) or {}


def _declared_classes(name: str) -> int | None:
    """Of timm's own weights; None where it has none, or not these."""
    import timm

    try:
        told = timm.get_pretrained_cfg(name)
    except RuntimeError:  # an unknown tag, of which loading says more
        return None
    classes: int | None = told.num_classes if told is not None and told.has_weights else None
    return classes


def _renormalise(
    stated: Mapping[str, Any], images: Images
) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """From pixels normalised for the student to pixels normalised for the teacher."""
    mean, std = (torch.tensor(stated.get(key) or ()) for key in ("mean", "std"))
    if len(mean) != images.in_chans or len(std) != images.in_chans:
        return None, None
    ours = torch.tensor(images.mean), torch.tensor(images.std)
    scale, shift = ours[1] / std, (ours[0] - mean) / std
    return scale[:, None, None], shift[:, None, None]


def _check_classes(classes: int | None, name: str, images: Images) -> None:
    if classes is not None and classes != images.num_classes:
        rule = f"has {classes} classes and {images.name} has {images.num_classes}"
        raise ConfigError(rule, address="distill.teacher", value=name)


def _check_names(names: Sequence[str], name: str, images: Images) -> None:
    """Each class by its name, where both have names: its answers are matched by number."""
    ours = [printable(own) for own in images.names]
    for number, (theirs, own) in enumerate(zip(names, ours, strict=False)):
        if theirs != own:
            rule = f"its class {number} is '{theirs}', and of {images.name} '{own}'"
            raise ConfigError(rule, address="distill.teacher", value=name)


def _check_fits(model: nn.Module, name: str, images: Images) -> None:
    """Classes as the teacher says; channels and size by asking it for one image."""
    _check_classes(getattr(model, "num_classes", None), name, images)
    _check_names(getattr(model, "label_names", ()), name, images)
    device = next(model.parameters()).device
    size = (1, images.in_chans, *images.image_hw)
    try:
        with torch.no_grad():
            given = tuple(model(torch.zeros(size, device=device)).shape)
    except Exception as error:  # any error of a foreign network with images that it cannot take
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        rule = f"cannot take these images of {images.in_chans} x {size[2]} x {size[3]}: {problem}"
        raise ConfigError(rule[:300], address="distill.teacher", value=name) from None
    if given != (1, images.num_classes):
        rule = f"answers an image with {given[1:]} numbers and not {images.num_classes} logits"
        raise ConfigError(rule, address="distill.teacher", value=name)
