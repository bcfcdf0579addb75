"""Which images a training held out of those that train. A network's folder keeps it, so that images
that have trained it are not taken for held-out ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from vitnas.config.data import DataConfig
from vitnas.config.files import exists, validate
from vitnas.config.parts import Frozen
from vitnas.exported.hub import HUB_FILE, read_hub

HELD_OUT = "held_out"
"""Its name in config.json."""


class HeldOut(Frozen):
    """How a training has split its images.

    Attributes:
        val_fraction: share of each class that was held out, 0 to 0.5; 0 = other images scored.
        split_seed: of the draw.
    """

    model_config = ConfigDict(extra="ignore")

    val_fraction: Annotated[float, Field(ge=0.0, le=0.5)]
    split_seed: Annotated[int, Field(ge=0)]

    def remark(self, data: DataConfig, *, of_all_classes: bool = True) -> str:
        """A line where the training has seen some of what `data` holds out, if the images are the
        same; else empty. Of one draw a smaller share is a part of a larger one.

        Args:
            data: with `val_fraction` and `split_seed`.
            of_all_classes: whether the images are of all classes of the network: the draw of a
                class depends on those before it.
        """
        is_part = data.split_seed == self.split_seed and data.val_fraction <= self.val_fraction
        if is_part and of_all_classes:
            return ""
        ours, asked = _share(self.val_fraction, self.split_seed), _share(*_split(data))
        some = "" if of_all_classes else " of some of its classes"
        return (
            f"the network's training held out {ours}, and these images are {asked}{some}: if it "
            "is of the same images, it has trained on some of these, and top-1 is too high"
        )


def held_out_of(tree: DataConfig | Mapping[str, Any]) -> HeldOut | None:
    """How images of this configuration are split; None where it does not say."""
    found = tree.model_dump() if isinstance(tree, DataConfig) else tree
    known = {name: found.get(name) for name in HeldOut.model_fields}
    return None if None in known.values() else HeldOut.model_validate(known)


def read_held_out(folder: Path) -> HeldOut | None:
    """How the training of a folder's network split its images; None where it does not say.

    Raises:
        DataError: config.json cannot be read, or is not JSON.
        ConfigError: a value in it is wrong.
    """
    path = folder / HUB_FILE
    found = read_hub(path).get(HELD_OUT) if exists(path) else None
    return None if found is None else validate(HeldOut, found, file=path)


def _split(data: DataConfig) -> tuple[float, int]:
    return data.val_fraction, data.split_seed


def _share(fraction: float, seed: int) -> str:
    return f"{100 * fraction:g} % (split_seed {seed})" if fraction else "none of its images"
