"""README.md of a network that a recipe trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitnas import __version__
from vitnas.config.one_line import one_line
from vitnas.cost.closed_form import closed_form
from vitnas.environment import command_line
from vitnas.training.data import Images
from vitnas.training.plan import Plan


def training_card(
    plan: Plan, images: Images, log: list[dict[str, Any]], test: float | None, folder: Path
) -> str:
    """The card as Markdown.

    Args:
        plan, images, log: of the training that has ended.
        test: top-1 on the test images in percent, or None.
        folder: where the network is written.
    """
    config, cost = plan.config, closed_form(plan.config)
    shape = (config.in_chans, *config.image_hw)
    rows = [
        ("FLOPs of one image (multiply-adds)", f"{cost.flops:,}"),
        ("parameters", f"{cost.num_params:,}"),
        ("top-1 on the scoring split", f"{log[-1]['top1']:.2f} %"),
        ("top-1 on the test split", None if test is None else f"{test:.2f} %"),
        ("input", " x ".join(map(str, shape)) + ", floats"),
        ("output", f"{config.num_classes} class scores before softmax"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows if value is not None)
    return f"""# {folder.name}

`{one_line(config)}`

| | |
|---|---|
{table}

## The weights

{_how(plan)}

Images are scaled to 0..1 and normalised by channel: mean {_numbers(images.mean)}; deviation
{_numbers(images.std)}.

## Use

```python
import torch
import vitnas

model = vitnas.load({folder.as_posix()!r})  # in eval mode, on the CPU
images = torch.zeros(1, {", ".join(map(str, shape))})  # normalised as above
scores = model(images)  # (1, {config.num_classes})
```

`config.yaml` describes the network, `model.safetensors` holds its weights, `recipe.yaml` says how
it was trained and `log.jsonl` how that went; none of them contains code.

## Where it comes from

- data: {_listed(plan.data.model_dump(exclude_none=True))}
- vitnas {__version__}: `{command_line()}`
"""


def _how(plan: Plan) -> str:
    recipe = plan.recipe
    start = "fresh weights" if plan.init_from is None else f"the weights of `{plan.init_from}`"
    text = (
        f"Trained for {recipe.epochs} epochs by the recipe `{plan.recipe_name}`, seed {plan.seed}, "
    )
    text += f"from {start}."
    if recipe.distill.teacher is not None:
        text += f" Taught by `{recipe.distill.teacher}` instead of the labels (SReT, Eq. 17)."
    if recipe.rand_augment and plan.data.name != "imagefolder":
        text += " RandAugment, which the recipe names, is for images in folders and was not used."
    if recipe.ema_decay:
        text += f" They are a moving average with decay {recipe.ema_decay:g}."
    return text


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def _listed(tree: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in tree.items())
