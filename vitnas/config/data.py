"""What a candidate is trained on, without torch: the `data` part of a file.

What is known of a data set without reading it stands here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from vitnas import plugins
from vitnas.config.findings import RuleError
from vitnas.config.parts import Frozen, as_tuple
from vitnas.errors import ConfigError, nearest_name
from vitnas.words import plural

GROUP = "vitnas.datasets"
"""Where packages announce data sets: a name -> a function that gives training and test images."""
Augment = Literal["auto", "none", "shift", "shift_flip", "crop_flip"]


@dataclass(frozen=True)
class DataFacts:
    """What holds for a data set wherever it lies.

    Attributes:
        num_classes: number of classes, or None where only the images tell.
        in_chans: channels of an image, or None where only the images tell.
        img_size: side of the images as they were published, in pixels, or None.
        root: the folder that is read when none is given, or None.
        augment: what `augment: auto` stands for.
        source: how to get the data, ready to stand in an error message.
        has_recipe: whether recipes were tried on it, so that a search need not tune first.
    """

    num_classes: int | None
    in_chans: int | None
    img_size: int | None
    root: str | None
    augment: Augment
    source: str
    has_recipe: bool = False


DATA_FACTS: dict[str, DataFacts] = {
    "digits": DataFacts(10, 1, 8, None, "none", "comes with scikit-learn", has_recipe=True),
    "fashion_mnist": DataFacts(
        10,
        1,
        28,
        "/usr/share/datasets/fashion-mnist",
        "none",
        "apt install dataset-fashion-mnist, or put the four idx-ubyte files there",
        has_recipe=True,
    ),
    "cifar10": DataFacts(
        10,
        3,
        32,
        "data/cifar-10-batches-bin",
        "shift_flip",
        "unpack cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    "cifar100": DataFacts(
        100,
        3,
        32,
        "data/cifar-100-binary",
        "shift_flip",
        "unpack cifar-100-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    "imagefolder": DataFacts(
        None, 3, None, None, "crop_flip", "lay the images out as train/<class>/<image>"
    ),
}
_FOREIGN = DataFacts(None, None, None, None, "none", "from another package")
TIMM = "timm"
"""The name of data that timm opens; `dataset` says which."""
PACKAGES = {
    "hfds": "datasets",
    "hfids": "datasets",
    "tfds": "tensorflow_datasets",
    "wds": "webdataset",
}
"""What timm needs for the data sets of a prefix."""
_LATER = ("val_split", "classes", "dataset", "splits", "input_key", "target_key")
"""Fields that are told only where they are given: keys made before vitnas had them stay."""
_JUNK = {"__MACOSX", "@eaDir", "lost+found"}


def _in_order(value: Any) -> Any:
    """Names of classes sorted: in which order they are given makes no difference."""
    is_names = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return tuple(sorted(value)) if is_names else value


class DataConfig(Frozen):
    """The images, and which of them score a candidate.

    Images of another size than the network's `img_size` are resized once, when they are read.
    """

    name: Annotated[str, Field(min_length=1, json_schema_extra={"examples": list(DATA_FACTS)})] = (
        Field(
            "digits",
            description="`digits` (scikit-learn's 1,797 images of 8 x 8), `fashion_mnist` (idx "
            "files), `cifar10`, `cifar100` (the binary version), `imagefolder` "
            "(`train/<class>/<image>`), `timm` (see `dataset`), a name that an installed package "
            "announces, or the path `package.module:function` of another package's",
        )
    )
    root: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        None,
        description="the folder that holds the files, relative to where the command runs; null: "
        "the usual place of the data set. `imagefolder` needs one, `digits` has none; another "
        "package's function gets it as its argument",
    )
    dataset: Annotated[str, Field(max_length=4096)] | None = Field(
        None,
        description="for `name: timm`: the data set as `timm.data.create_dataset` calls it: "
        "`torch/cifar10`, `wds/`, `hfds/user/name`, `hfids/...`, `tfds/...`; null: the folder or "
        "tar file `root`",
    )
    splits: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1, max_length=2)] | None,
        BeforeValidator(as_tuple),
    ] = Field(
        None,
        description="for `name: timm`: its splits that train and that test, e.g. "
        "`[train, validation]`, which null stands for; one alone: without test images",
    )
    input_key: str | None = Field(
        None, description="for `name: timm`: the column of the images, where timm asks for it"
    )
    target_key: str | None = Field(
        None, description="for `name: timm`: the column of the labels, where timm asks for it"
    )
    classes: Annotated[
        Annotated[int, Field(ge=2)] | Annotated[tuple[str, ...], Field(min_length=2)] | None,
        BeforeValidator(_in_order),
    ] = Field(
        None,
        description="the classes that are used, by name in any order, or so many of the first ones "
        "in the order of the data; null: all. Of an image folder no others are read",
    )
    val_fraction: Annotated[float, Field(ge=0.0, le=0.5)] = Field(
        0.2,
        description="share of the training images that is held out to score candidates, the same "
        "of each class; never taken from the test images. With `val_split` it is 0",
    )
    val_split: Literal["val", "test"] | None = Field(
        None,
        description="the data's own images that score candidates in place of held-out ones: those "
        "of `val/` or `test/` of an image folder, the `test` images of other data. Then all "
        "training images train, and images that score are not test images as well",
    )
    folds: Annotated[int, Field(ge=1, le=100)] = Field(
        1,
        description="how often each network is trained; each training is scored on another "
        "`val_fraction` of the training images, and the mean counts (k-fold cross-validation). For "
        "a few hundred scoring images, where chance is as large as the networks' differences",
    )
    split_seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        0,
        description="decides which images are held out, and which `train_fraction` keeps; the test "
        "images do not depend on it",
    )

    @model_validator(mode="before")
    @classmethod
    def _own_images_score(cls, tree: Any) -> Any:
        if isinstance(tree, Mapping) and tree.get("val_split") is not None:
            return {"val_fraction": 0.0, **tree}
        return tree

    @model_validator(mode="before")
    @classmethod
    def _names_are_text(cls, tree: Any) -> Any:
        names = tree.get("classes") if isinstance(tree, Mapping) else None
        if isinstance(names, list) and any(type(name) in (int, float, bool) for name in names):
            raise RuleError("names of classes are text: quote each", "classes", names)
        return tree

    @model_serializer(mode="wrap")
    def _given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {
            name: value
            for name, value in dump(self).items()
            if value is not None or name not in _LATER
        }

    @model_validator(mode="after")
    def _name_is_known(self) -> DataConfig:
        if self.name not in DATA_FACTS and self.name != TIMM:
            try:
                plugins.path_of(self.name, GROUP, DATA_FACTS, what="data set")
            except ConfigError as error:
                raise RuleError(error.rule, "name", self.name, error.nearest) from None
        return self

    @model_validator(mode="after")
    def _root_fits(self) -> DataConfig:
        if self.name == "imagefolder" and self.root is None:
            raise RuleError("is required for imagefolder: the folder that holds train/", "root")
        if self.name == "digits" and self.root is not None:
            raise RuleError("digits come with scikit-learn and have no folder", "root", self.root)
        return self

    @model_validator(mode="after")
    def _timm_s_fields_fit(self) -> DataConfig:
        for field in ("dataset", "splits", "input_key", "target_key"):
            value = getattr(self, field)
            if value is not None and self.name != TIMM:
                raise RuleError("is for name: timm", field, value)
        prefix = (self.dataset or "").partition("/")[0].lower()
        if self.name == TIMM and self.root is None and prefix not in ("hfds", "hfids", "tfds"):
            raise RuleError("is required: the folder or tar file", "root")
        if "/" in (self.dataset or "") and prefix not in ("torch", *PACKAGES):
            known = [f"{name}/" for name in ("torch", *PACKAGES)]
            rule = f"must begin with {', '.join(known)}"
            raise RuleError(rule, "dataset", self.dataset, nearest_name(prefix + "/", known))
        return self

    @model_validator(mode="after")
    def _something_scores(self) -> DataConfig:
        if self.val_split is None and not self.val_fraction:
            rule = "leaves no image to score with, unless val_split names the data's own"
            raise RuleError(rule, "val_fraction", 0, "val_split: test")
        if self.val_split is not None and self.val_fraction:
            rule = f"with val_split: {self.val_split} nothing is held out"
            raise RuleError(rule, "val_fraction", self.val_fraction, 0)
        if self.val_split == "val" and self.name != "imagefolder":
            rule = f"{self.name} has train and test images"
            raise RuleError(rule, "val_split", self.val_split, "test")
        return self

    @model_validator(mode="after")
    def _classes_fit(self) -> DataConfig:
        if isinstance(self.classes, tuple):
            twice = [name for name, other in pairwise(self.classes) if name == other]
            if twice:
                raise RuleError(f"'{twice[0]}' stands twice", "classes", self.classes)
        most = self.facts.num_classes
        number = self.classes if isinstance(self.classes, int) else len(self.classes or ())
        if most is not None and number > most:
            rule = f"{self.name} has {plural(most, 'class')}"
            raise RuleError(rule, "classes", self.classes, most)
        return self

    @model_validator(mode="after")
    def _folds_fit(self) -> DataConfig:
        if self.val_split is not None:
            if self.folds > 1:
                rule = f"with val_split: {self.val_split} the same images score in every training"
                raise RuleError(rule, "folds", self.folds, 1)
            return self
        if self.folds > (1 + 1e-9) / self.val_fraction:
            most = int(1 / self.val_fraction + 1e-9)
            rule = f"at most {most} parts of val_fraction {self.val_fraction:g} are apart"
            raise RuleError(rule, "folds", self.folds, most)
        return self

    @property
    def facts(self) -> DataFacts:
        return facts_of(self.name)

    @property
    def is_ours(self) -> bool:
        """Whether vitnas reads it, and not a function of another package."""
        return self.name in DATA_FACTS

    @property
    def folder(self) -> Path | None:
        """The folder that is read; None for `digits`, and where another package knows the place."""
        root = self.root or self.facts.root
        if root is None:
            return None
        path = Path(root)
        try:
            return path.expanduser() if path.parts[:1] == ("~",) else path
        except RuntimeError:  # there is no home folder, so the folder does not exist
            return path

    @property
    def called(self) -> str:
        """What people call the images: by the folder that is given, else by the data set."""
        folder = self.folder if self.root else None
        return (folder.resolve().name if folder else "") or self.name

    def count_classes(self) -> int | None:
        """Number of classes; None where only the images tell, or the folder is not there."""
        if self.classes is not None:
            return self.classes if isinstance(self.classes, int) else len(self.classes)
        if self.name != "imagefolder" or self.folder is None:
            return self.facts.num_classes
        return len(class_names(self.folder / "train")) or None


def facts_of(name: str) -> DataFacts:
    """What holds for the data set of this name; nothing where it is another package's."""
    return DATA_FACTS.get(name, _FOREIGN)


def class_names(folder: Path) -> tuple[str, ...]:
    """Names of the class folders in `folder`, sorted; empty when it cannot be listed."""
    try:
        found = [entry.name for entry in folder.iterdir() if entry.is_dir()]
    except (OSError, ValueError):
        return ()
    return tuple(sorted(name for name in found if not is_junk(name)))


def is_junk(name: str) -> bool:
    """Whether a file or folder of this name is the operating system's, not the data's."""
    return name.startswith(".") or name in _JUNK
