"""Images read from their folders while the network trains, with timm's augmentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from vitnas.config.data import DataConfig
from vitnas.config.recipe import Recipe
from vitnas.data.decode import BrokenImage, fitted, read_rgb, without_warnings
from vitnas.data.imagefolder import check_folder, labels_of, read_stored
from vitnas.data.imageset import ImageFile
from vitnas.data.source import DataSource, ImageHW, Labelled, split_by_class
from vitnas.data.telling import SILENT, Teller
from vitnas.seeds import derive_seed
from vitnas.training.augment import augmentation_of, color_jitter, dealt
from vitnas.training.data import images_of, used_images
from vitnas.training.device import own_all_randomness
from vitnas.training.images import Images
from vitnas.training.ranks import ALONE, Ranks

_SAMPLE = 2048  # images that mean and deviation are taken from


@dataclass(frozen=True)
class Files:
    """The training images of an image folder, by path.

    Attributes:
        data: the folder.
        files: one an image.
        image_hw: (H, W) in pixels that they are brought to.
    """

    data: DataConfig
    files: list[ImageFile]
    image_hw: ImageHW

    def __len__(self) -> int:
        return len(self.files)

    def batches(
        self,
        recipe: Recipe,
        steps: int,
        order: torch.Generator,
        seed: int,
        workers: int,
        ranks: Ranks = ALONE,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Every image once, in `steps` batches: (B, C, H, W) uint8 and classes, on the CPU; of each
        the share of this one of the `ranks`.

        Repeated augmentation deals as `dealt` says. What is drawn for an image depends on `seed`,
        its number and the number of its copy, not on `workers`.
        """
        numbers = dealt(len(self), recipe.repeated_augmentation, order)
        loader: DataLoader[Labelled | BrokenImage] = DataLoader(
            _Augmented(self, _augmentation(recipe, self.image_hw), seed),
            batch_sampler=[ranks.share(step).tolist() for step in numbers.tensor_split(steps)],
            num_workers=workers,
            collate_fn=_together,
            generator=order,  # else it draws from the global one
            pin_memory=torch.cuda.is_available(),
        )
        for batch in loader:
            if isinstance(batch, BrokenImage):
                raise batch
            yield batch

    def augment(self, recipe: Recipe, x: Tensor, generator: torch.Generator) -> Tensor:
        """What is left to do on a batch of bytes on its device, by `augment_batch`."""
        if _augments_files(recipe):
            return color_jitter(x, recipe.color_jitter, generator)
        return augmentation_of(recipe, "imagefolder")(x, generator)


def open_folder(
    data: DataConfig, image_hw: ImageHW, fraction: float = 1.0, teller: Teller = SILENT
) -> tuple[Images, Files]:
    """The scoring images, which do not change, and the training images as paths.

    The split is that of `load_data`. Mean and deviation are those of at most 2,048 training
    images, which `Images.train` holds and nothing else uses.

    Every file that is used is opened once before the training, so that all broken ones are named at
    once.

    Args:
        fraction: share of the training images, of each class alike, that is used.
        teller: told what is decoded before the training, where that takes long.

    Raises:
        DataError: as for `load_data`.
        ConfigError: as for `load_data`.
    """
    checked = check_folder(data, partial(used_images, data, fraction))
    folder, labels = checked.folder, labels_of(checked.folder.train)
    train, val = split_by_class(labels, data.val_fraction, data.split_seed)
    if fraction < 1:
        _, kept = split_by_class(labels[train], fraction, data.split_seed)
        train = train[kept]
    train, val = train[checked.sound[train]], val[checked.sound[val]]
    number = min(len(train), _SAMPLE)
    some = train[torch.arange(number) * len(train) // max(1, number)]  # evenly: it is by class

    def read(part: Tensor) -> Labelled:
        chosen = [folder.train[index] for index in part.tolist()]
        return read_stored(folder.root, chosen, image_hw, teller)

    def whole(files: list[ImageFile] | None) -> Labelled | None:
        return read_stored(folder.root, files, image_hw, teller) if files else None

    sample, own, test = read(some), whole(folder.val), whole(folder.test)
    source = DataSource(sample, test, folder.classes, checked.fingerprint, checked.skipped, own)
    images = images_of(data, sample, read(val) if own is None else own, source)
    return images, Files(data, [folder.train[index] for index in train.tolist()], image_hw)


class _Augmented(Dataset[Labelled | BrokenImage]):
    """Images as they are trained on; picklable, so that loaders can be processes."""

    def __init__(self, files: Files, augmentation: Callable[[Any], Any] | None, seed: int) -> None:
        self.files, self.augmentation, self.seed = files, augmentation, seed

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Labelled | BrokenImage:
        file = self.files.files[index % len(self)]
        number = torch.tensor(file.number)
        try:
            with without_warnings():
                image = read_rgb(Path(file.path))
        except BrokenImage as error:
            return error  # raised by a process of the loader, it would become a text of many lines
        if self.augmentation is None:
            return torch.from_numpy(fitted(image, self.files.image_hw)), number
        with own_all_randomness(derive_seed(self.seed, index), torch.device("cpu")):
            return torch.as_tensor(self.augmentation(image)), number


def _together(items: list[Labelled | BrokenImage]) -> Labelled | BrokenImage:
    """A batch; what is wrong with an image in its place if one cannot be read."""
    broken = next((item for item in items if isinstance(item, BrokenImage)), None)
    if broken is not None:
        return broken
    batch: list[Tensor] = default_collate(items)
    return batch[0], batch[1]


def _augmentation(recipe: Recipe, image_hw: ImageHW) -> Callable[[Any], Any] | None:
    """timm's random resized crop, mirror and RandAugment; None where batches are augmented."""
    if not _augments_files(recipe):
        return None
    from timm.data import create_transform
    from timm.data.auto_augment import RandAugment

    from vitnas.training.rand_augment import leave_bits

    transform: Any = create_transform(
        input_size=(3, *image_hw),
        is_training=True,
        scale=(recipe.crop_scale, 1.0),
        auto_augment=recipe.rand_augment,
        color_jitter=0.0,  # on the device
        interpolation="random",
        use_prefetcher=True,  # bytes out, to be normalised on the device
    )
    for step in transform.transforms:
        if isinstance(step, RandAugment):
            leave_bits(step)
    augmentation: Callable[[Any], Any] = transform
    return augmentation


def _augments_files(recipe: Recipe) -> bool:
    return recipe.augment_for("imagefolder") == "crop_flip"
