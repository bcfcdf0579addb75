"""How a network is trained for long, without torch: what a recipe file may say.

The papers' recipes are such files, `vitnas/training/recipes/*.yaml`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from vitnas.config.baseline import Baseline
from vitnas.config.data import Augment, facts_of
from vitnas.config.design import Design
from vitnas.config.files import read_yaml, validate
from vitnas.config.findings import RuleError
from vitnas.config.graft_file import GraftFile
from vitnas.config.mixers import names_with
from vitnas.config.model import ModelConfig
from vitnas.config.parts import Frozen, Rate
from vitnas.errors import ConfigError, nearest_name

Optimizer = Literal["adamw", "lamb", "sgd", "muon"]
FOLDER = Path(__file__).parents[1] / "training" / "recipes"
DEFAULT_RECIPE = "small"
_RAND_AUGMENT = (
    r"^rand(-(m\d{1,2}|mmax\d{1,2}|mstd\d{1,3}(\.\d{1,6})?|n\d|p[01](\.\d{1,6})?|inc[01]"
    r"|t(weights|3a|3aw)))*$"
)
"""timm's sections: magnitude, layers, increasing, most, deviation, probability, weighted choice."""
_UNCHANGED = {
    "rand_augment": None,
    "color_jitter": 0.0,
    "random_erasing": 0.0,
    "mixup": 0.0,
    "cutmix": 0.0,
}
"""What leaves images as they are, beside `augment: none`."""


class SimilarityPenaltyConfig(Frozen):
    """loss + weight * sum over l = 0..blocks of the likeness of maps l, l + 1 (DeepViT, Eq. 6)."""

    weight: Annotated[float, Field(ge=0.0, le=1e3)] = Field(
        0.0, description="the paper's lambda, without a value there; 0: no penalty"
    )
    blocks: Annotated[int, Field(ge=0, le=100_000)] = Field(
        4, description="the paper's B; 4, 8 and 12 for ViTs of 16, 24 and 32 blocks"
    )


class DistillConfig(Frozen):
    """Learning from a teacher: its probabilities (SReT, Eq. 17), or labels and its decisions."""

    teacher: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="an exported folder, or the name of a timm model; null: no distillation",
    )
    weights: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="a file with the weights of a timm teacher; null: timm's own, from its hub",
    )
    kind: Literal["soft", "hard"] = Field(
        "soft",
        description="`soft`: the teacher's probabilities and no labels (SReT); `hard`: the mean of "
        "two losses, of the label and of the teacher's most likely class (DeiT, without its token)",
    )
    temperature: Annotated[float, Field(gt=0.0, le=1e3)] = Field(
        1.0, description="of `soft`: what both networks' logits are divided by; 1 in the paper"
    )

    @model_validator(mode="after")
    def _weights_have_a_teacher(self) -> DistillConfig:
        if self.weights is not None and self.teacher is None:
            raise RuleError("needs a teacher: they are its weights", "weights", self.weights)
        if self.kind == "hard" and self.temperature != 1:
            raise RuleError("is of soft distillation", "temperature", self.temperature, 1.0)
        return self


class Recipe(Frozen):
    """How a network is trained: linear warm-up, half a cosine, cool-down.

    `augment` differs in one thing: with `crop_flip` (timm's random resized crop) and `auto`, a long
    training crops images in folders anew from their files.
    """

    epochs: Annotated[int, Field(ge=1, le=10_000)] = Field(
        300, description="passes over the training images"
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
    crop_scale: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.08,
        description="of `crop_flip`: the smallest share of the image's area that a crop keeps; "
        "the largest is all of it",
    )
    train_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        1.0, description="share of the training images that is used, the same ones in every trial"
    )
    curve_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        1.0,
        description="share of the scoring images that score a network after each epoch but the "
        "last, the same ones in every trial; after the last epoch all of them do",
    )
    eval_batch_size: Annotated[int, Field(ge=1, le=65_536)] = Field(
        512,
        description="the most images that are scored at a time, on the CPU fewer large ones; does "
        "not change the result beyond rounding",
    )
    micro_batch_size: Annotated[int, Field(ge=2, le=65_536)] | None = Field(
        None,
        description="the most images in one forward pass; a larger step is cut into parts whose "
        "gradients are added, and needs the memory of one part; batch norm sees a part at a time; "
        "null: a step is one pass",
    )
    grad_checkpointing: bool = Field(
        False,
        description="whether a block keeps its input alone and is computed again for the "
        "gradient: less memory, more time, the same result",
    )
    cooldown_epochs: Annotated[float, Field(ge=0.0, le=10_000.0)] = Field(
        0.0,
        description="how many of the `epochs`, the last ones, have the rate `min_lr`; at most what "
        "is left after the warm-up",
    )
    min_lr: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.0,
        description="where the warm-up starts and the cosine ends; equal to `lr`: the rate is "
        "constant",
    )
    drop_path_rate: Rate | None = Field(
        None, description="replaces the network's; null: the network's"
    )
    rand_augment: Annotated[str, Field(pattern=_RAND_AUGMENT)] | None = Field(
        None,
        description="timm's name of a policy, e.g. `rand-m9-mstd0.5-inc1`; after `augment`",
    )
    color_jitter: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.0,
        description="most by which brightness, contrast and saturation change; as in timm, a "
        "recipe has either this or `rand_augment`",
    )
    repeated_augmentation: Annotated[int, Field(ge=1, le=100)] = Field(
        1,
        description="how often an image comes in a step, each time augmented anew; an epoch then "
        "has as many images, but fewer different ones (3 in DeiT)",
    )
    random_erasing: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.0, description="probability that a box of an image becomes noise"
    )
    mixup: Annotated[float, Field(ge=0.0, le=100.0)] = Field(
        0.0, description="alpha of mixup; 0: off. With `cutmix`, each batch takes one of both"
    )
    cutmix: Annotated[float, Field(ge=0.0, le=100.0)] = Field(
        0.0, description="alpha of CutMix; 0: off"
    )
    no_augment_epochs: Annotated[int, Field(ge=0, le=10_000)] = Field(
        0,
        description="the last epochs, in which a network sees images as it is scored on them: "
        "without `augment`, `rand_augment`, `color_jitter`, `repeated_augmentation`, "
        "`random_erasing`, `mixup` and `cutmix` (as YOLOX)",
    )
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        1.0,
        description="factor on the rate from each layer to the one before it, the head having "
        "`lr`; 1: off",
    )
    ema_decay: Rate = Field(
        0.0,
        description="decay of the moving average of the weights, which is then scored and "
        "exported; it warms up, so that the average forgets the first weights; 0: off",
    )
    similarity_penalty: SimilarityPenaltyConfig = Field(
        SimilarityPenaltyConfig(), description="a penalty on maps that are alike (DeepViT, Eq. 6)"
    )
    distill: DistillConfig = Field(
        DistillConfig(), description="a teacher, instead of the labels or beside them"
    )
    mixed_depth: bool = Field(
        False,
        description="train the network and, with the same weights, the network with one pass "
        "through every block (SReT, Section 5.7); the loss is the mean of both",
    )

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Recipe:
        if self.color_jitter and self.rand_augment is not None:
            rule = f"is left out beside rand_augment {self.rand_augment}: take one of both"
            raise RuleError(rule, "color_jitter", self.color_jitter, 0)
        if self.min_lr > self.lr:
            raise RuleError(f"must not be above lr {self.lr:g}", "min_lr", self.min_lr, self.lr)
        if self.grad_checkpointing and self.similarity_penalty.weight:
            rule = "cannot be with similarity_penalty, which needs the maps that blocks forget"
            raise RuleError(rule, "grad_checkpointing", True, False)
        return self

    def in_epoch(self, epoch: int) -> Recipe:
        """The recipe as it holds in one epoch, counted from 1: augmentation ends before the last
        `no_augment_epochs`."""
        if epoch <= self.epochs - self.no_augment_epochs:
            return self
        return self.model_copy(update={"augment": "none", "repeated_augmentation": 1, **_UNCHANGED})

    def augment_for(self, data: str) -> Augment:
        """What `augment` means on these images; never `auto`."""
        return facts_of(data).augment if self.augment == "auto" else self.augment

    def keeps_images(self, data: str) -> bool:
        """Whether a network sees each of these images in every epoch as it is."""
        changes = any(getattr(self, name) for name in _UNCHANGED)
        return self.augment_for(data) == "none" and not changes


def recipe_names() -> list[str]:
    """The recipes that ship."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_recipe(name: str | Path = DEFAULT_RECIPE) -> Recipe:
    """A shipped recipe by its name, or a recipe file.

    Raises:
        ConfigError: no such recipe, naming the nearest; or file, address, value and rule.
    """
    text = str(name)
    if Path(text).suffix in (".yaml", ".yml") or Path(text).name != text:
        return validate(Recipe, read_yaml(text), file=text)
    known = recipe_names()
    if text not in known:
        rule = f"no such recipe; known are {', '.join(known)}, or give a file"
        nearest = nearest_name(text, known)
        raise ConfigError(rule, address="recipe", value=text, nearest=nearest)
    file = FOLDER / f"{text}.yaml"
    return validate(Recipe, read_yaml(file), file=file)


def check_recipe_fits(recipe: Recipe, config: Design) -> None:
    """Refuse what a recipe asks of a network that cannot have it.

    Which maps a network of timm with grafts has is seen in training. A baseline shares the recipe
    of the networks that it is compared with, and leaves out what it cannot have.

    Raises:
        ConfigError: addressed inside the recipe.
    """
    if isinstance(config, Baseline):
        return
    stages = () if isinstance(config, GraftFile) else config.stages
    if recipe.mixed_depth and all(stage.passes == 1 for stage in stages):
        rule = "mixed depth needs recursion, and every block of this network is passed through once"
        raise ConfigError(rule, address="mixed_depth", value=True, nearest="false")
    penalty = recipe.similarity_penalty
    if isinstance(config, GraftFile):
        return
    if penalty.weight and not comparable_maps(config, penalty.blocks):
        *first, last = names_with("maps")
        names = f"{', '.join(first)} and {last}"
        rule = (
            f"the first {penalty.blocks + 2} attention layers of this network have no two maps of "
            f"equal size that follow each other: {names} with g = 1 have maps"
        )
        address = "similarity_penalty.weight"
        raise ConfigError(rule, address=address, value=penalty.weight, nearest=0)


def comparable_maps(config: ModelConfig, blocks: int) -> int:
    """How many of the pairs (l, l + 1), l = 0..blocks, are maps of whole images of equal size.

    Every pass through a block is a layer with a map.
    """
    sizes: list[tuple[int, int] | None] = []
    for index, stage in enumerate(config.stages):
        size = stage.heads, config.num_tokens(index)
        mixers = zip(stage.mixers, stage.having("maps"), strict=True)
        schedules = [stage.only(mixer).groups for mixer, has_maps in mixers if has_maps]
        if stage.is_external:  # a round is one pass through every block
            schedules = list(zip(*schedules, strict=True))
        sizes += [size if g == 1 else None for groups in schedules for g in groups]
    pairs = list(pairwise(sizes))[: blocks + 1]
    return sum(size is not None and size == following for size, following in pairs)
