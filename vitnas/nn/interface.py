"""timm's model interface besides the forward pass: heads, groups, levels, image sizes.

docs/timm.md has examples of each.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn.broad import BroadAttention
from vitnas.nn.layers.head import Head
from vitnas.nn.layers.init import init_linear
from vitnas.nn.layers.residual import LearnableResidual
from vitnas.nn.layers.resizing import Change, resize_tokens
from vitnas.nn.resize import (
    apply_changes,
    config_at,
    layout_of,
    plan_resize,
)


class TimmInterface(nn.Module):
    """Base of `HybridTransformer`: the methods of timm's models, with timm's names and meaning."""

    config: ModelConfig
    stages: Any
    head: Head
    norm: nn.Module
    broad: BroadAttention | None
    pos_embed: nn.Parameter | None
    class_token: nn.Parameter | None
    distillation_token: nn.Parameter | None
    image_hw: tuple[int, int]
    feature_info: list[dict[str, Any]]

    num_classes = num_features = num_levels = 0
    global_pool = ""
    flat = collects = False

    @property
    def head_hidden_size(self) -> int:
        """Channels of the vector before the classifier."""
        places = self.head.num_patches if self.global_pool == "flatten" else 1
        return self.num_features * int(places)

    def no_weight_decay(self) -> set[str]:
        """Names of parameters without weight decay, beside the 1-D ones.

        Static keys are not among them: they take the place of the key projection's weight and
        decay like it.
        """
        tokens = ("pos_embed", "class_token", "distillation_token")
        names = {name for name in tokens if getattr(self, name) is not None}
        for prefix, module in self.named_modules():
            if isinstance(module, LearnableResidual):
                names |= {f"{prefix}.branch", f"{prefix}.identity"}
        return names

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        """timm's patterns for learning rates by layer: the stem, then each block.

        All passes of a block and the non-linear layers between them are one group. With `coarse`,
        a network of several stages has one group per stage.
        """
        blocks: Any = r"^stages\.(\d+)"
        if self.flat or not coarse:
            blocks = [
                (r"^stages\.(\d+)\.(?:downsample|position)", (0,)),
                (r"^stages\.(\d+)\.blocks\.(\d+)", None),
                (r"^norm", (99999,)),
            ]
        return {"stem": r"^stem|class_token|distillation_token|pos_embed", "blocks": blocks}

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Whether each pass keeps only its input and is computed again in the backward pass."""
        for stage in self.stages:
            stage.set_grad_checkpointing(enable)

    def get_classifier(self) -> nn.Module | tuple[nn.Module, nn.Module]:
        """The classifier after pooling, norm and dropout; the identity if it was removed.

        With a distillation token: both classifiers, the class token's first.
        """
        second = self.head.distillation_classifier
        return self.head.classifier if second is None else (self.head.classifier, second)

    def set_distilled_training(self, enable: bool = True) -> None:
        """Whether in training mode the scores of both tokens are given, and not their mean.

        Without a distillation token it has no effect.
        """
        self.head.distilled_training = enable

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """A new classifier with fresh weights, with the device and data type of the network.

        Args:
            num_classes: number of scores; 0 removes the classifier.
            global_pool: `avg`, `token`, `flatten`, `""` for no pooling, None for no change. The
                last norm comes after `avg` and before the others; it moves there with its weights.

        Raises:
            ConfigError: the network cannot have this head. Nothing is changed.
        """
        config = _with_head(self.config, num_classes, global_pool)
        like = next(self.parameters())
        if global_pool is not None:
            self.global_pool = self.head.global_pool = global_pool
        for name in ("classifier", "distillation_classifier"):
            if getattr(self.head, name) is not None:
                new = self.head.new_classifier(num_classes).apply(init_linear).train(self.training)
                setattr(self.head, name, new.to(like.device, like.dtype))
        self.config, self.num_classes = config, num_classes
        if global_pool is None:
            return
        before, after = self.norm, self.head.norm
        misplaced = {"avg": before, "token": after, "flatten": after}.get(global_pool)
        if misplaced is not None and not isinstance(misplaced, nn.Identity):
            self.norm, self.head.norm = self.head.norm, self.norm

    def prune_intermediate_layers(
        self,
        indices: int | list[int] | tuple[int, ...] = 1,
        prune_norm: bool = False,
        prune_head: bool = True,
    ) -> list[int]:
        """Remove what the features at `indices` do not need.

        Broad attention is removed if the last level is.

        Args:
            indices: levels as for `forward_intermediates`.
            prune_norm: whether the last norm is removed.
            prune_head: whether pooling and classifier are removed. In a network of several stages
                they are always removed if the last stage is.

        Returns:
            The indices, counted from the first level.
        """
        taken, last = taken_levels(self.num_levels, indices)
        shorter = last + 1 < self.num_levels
        if self.flat:
            self.stages[0].prune(last)
        else:
            self.stages = self.stages[: last + 1]
        self.num_levels = last + 1
        if shorter:
            self.broad, self.collects = None, self.config.map_source is not None
        if prune_norm or (shorter and not self.flat):  # the last norm has the last stage's width
            self.norm = nn.Identity()
        if prune_head or (shorter and not self.flat):
            self.num_features = self.feature_info[last]["num_chs"]
            self.head.norm = nn.Identity()
            self.reset_classifier(0, "")
        return taken

    def resize(self, img_size: int | tuple[int, int]) -> None:
        """Change this network, in place, to one for images of another size.

        Position table, static keys, token MLPs and a classifier of `flatten` are interpolated;
        their rows for class tokens are kept. Permutations are replaced by those for the new number
        of tokens. Re-attention is rescaled (see `vitnas.nn.resize`). Parameters that get another
        shape are new objects: make the optimizer afterwards.

        Args:
            img_size: H and W, or one number for both.

        Raises:
            ConfigError: the network cannot have this size; the error names the nearest size that
                it can have. Nothing is changed.
        """
        old, new = self.config, config_at(self.config, img_size)
        if new.image_hw == old.image_hw:
            return
        changes = [Change(self, "config", new), Change(self, "image_hw", new.image_hw)]
        if self.broad is not None:
            changes.append(Change(self, "broad", BroadAttention.of(new)))
        try:
            changes += plan_resize(self.stages, old, new)
            if self.pos_embed is not None:
                table = resize_tokens(self.pos_embed, 1, layout_of(old, 0), layout_of(new, 0))
                changes.append(Change(self, "pos_embed", table))
            changes += self.head.resized(layout_of(old, -1), layout_of(new, -1))
        except (MemoryError, RuntimeError) as error:  # PyTorch raises RuntimeError on the CPU
            rule = f"there is not enough memory: {error}"
            raise ConfigError(rule, address="img_size", value=new.img_size) from None
        apply_changes(changes)
        _note_size(self, new.image_hw)

    def set_input_size(self, img_size: int | tuple[int, int] | None = None) -> None:
        """timm's name for `resize`; None changes nothing."""
        if img_size is not None:
            self.resize(img_size)


def taken_levels(
    number: int, indices: int | list[int] | tuple[int, ...] | None
) -> tuple[list[int], int]:
    """Which of so many levels are wanted, by timm's rules; counted from the first, and the last."""
    from timm.models._features import feature_take_indices  # a training does without timm

    taken, last = feature_take_indices(number, indices)
    return taken, last


def _note_size(model: nn.Module, image_hw: tuple[int, int]) -> None:
    """Let timm note the present image size of a model, where it does so."""
    try:
        from timm.models._input import update_model_input_size
    except ImportError:  # an older timm has no such function
        return
    update_model_input_size(model, image_hw)


def _with_head(config: ModelConfig, num_classes: int, global_pool: str | None) -> ModelConfig:
    """The configuration with another head, except 0 classes and no pooling: no file has these."""
    tree = config.to_tree()
    if num_classes != 0 or isinstance(num_classes, bool):
        tree["num_classes"] = num_classes
    if global_pool not in (None, ""):
        tree["global_pool"] = global_pool
    return validate(ModelConfig, tree)
