"""What each training-side idea of the papers gives on scikit-learn's digits, over several seeds.

Six blocks at 8 px, 16 tokens; top-1 on the test digits, by which nothing was chosen. Similarity is
the mean cosine between the maps of neighbouring blocks (DeepViT, Eq. 2) on the test digits.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from common import Bound, Figures, conclude, folder_in_memory, is_quick, rounded, show

PENALTY = "similarity penalty 0.1, B = 4 (Eq. 6)"
VIT: dict[str, Any] = {
    "img_size": 8,
    "in_chans": 1,
    "num_classes": 10,
    "stem": {"kind": "patch", "stride": 2},
    "stages": [{"token_mixer": "mhsa", "depth": 6, "embed_dim": 32, "num_heads": 4}],
}
SRET = {
    **VIT,
    "residual": "lrc",
    "stages": [{**VIT["stages"][0], "depth": 3, "groups": "[1,1]", "nll_ratio": 1.0}],
}
WIDE = {**VIT, "stages": [{**VIT["stages"][0], "embed_dim": 64}]}
IDEAS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ViT": (VIT, {}),
    "re-attention in the last 3 (Eq. 3)": ({**VIT, "reattention_blocks": 3}, {}),
    "temperature linear to 0.5 (Eq. 4)": ({**VIT, "temperature": {"kind": "linear"}}, {}),
    "temperature learnable (Eq. 4)": ({**VIT, "temperature": {"kind": "learnable"}}, {}),
    "attention dropout 0.1": ({**VIT, "attn_drop_rate": 0.1}, {}),
    "map reused by the last 3 (Eq. 5)": (
        {**VIT, "reattention_blocks": 3, "reattention": {"source": "shared"}},
        {},
    ),
    PENALTY: (
        VIT,
        {"similarity_penalty": {"weight": 0.1, "blocks": 4}},
    ),
    "ViT of twice the width": (WIDE, {}),
    "ViT taught by it (Eq. 17)": (VIT, {"distill": {"teacher": "ViT of twice the width"}}),
    "SReT, two passes through 3 blocks": (SRET, {}),
    "SReT, mixed depth (Section 5.7)": (SRET, {"mixed_depth": True}),
}


def run(name: str, seed: int, epochs: int, root: Path) -> tuple[float, float]:
    """Train one idea; top-1 on the test digits in percent, and the similarity of its maps."""
    import torch

    from vitnas.config.data import DataConfig
    from vitnas.config.model import ModelConfig
    from vitnas.config.recipe import Recipe
    from vitnas.exported.read import load
    from vitnas.training.data import load_data
    from vitnas.training.penalty import recorded_maps, similarity_penalty
    from vitnas.training.plan import Plan
    from vitnas.training.score import evaluate
    from vitnas.training.train import train_network

    network, changes = IDEAS[name]
    if "distill" in changes:
        changes = {"distill": {"teacher": str(root / f"{changes['distill']['teacher']} {seed}")}}
    recipe = Recipe.model_validate(
        {"epochs": epochs, "lr": 3e-3, "min_lr": 1e-5, "warmup_epochs": 2.0, **changes}
    )
    plan = Plan(ModelConfig.model_validate(network), DataConfig(), recipe, seed=seed)
    folder = train_network(plan, root / f"{name} {seed}", device="cpu")
    model, test = load(folder), load_data(DataConfig(), 8).test()
    with torch.no_grad(), recorded_maps(model) as maps:
        model(test.normalise(test.x))
    pairs = len(maps) - 1
    return evaluate(model, test), float(similarity_penalty(maps, pairs, len(test))) / pairs


def main() -> None:
    quick = is_quick(__doc__)
    names = ["ViT", PENALTY] if quick else list(IDEAS)
    seeds, epochs = (range(1), 1) if quick else (range(3), 20)
    found: dict[str, list[tuple[float, float]]] = {}
    with folder_in_memory() as folder:
        for name in names:
            found[name] = [run(name, seed, epochs, Path(folder)) for seed in seeds]
            print(name, found[name], file=sys.stderr, flush=True)
    rows, figures = [], {}
    for name, results in found.items():
        columns = [list(column) for column in zip(*results, strict=True)]
        means = [statistics.mean(column) for column in columns]
        spread = [statistics.stdev(column) if len(column) > 1 else 0.0 for column in columns]
        rows.append((name, f"{means[0]:.2f}", f"{spread[0]:.2f}", f"{means[1]:.2f}"))
        figures |= {f"{name}: top-1": rounded(means[0], 4), f"{name}: sd": rounded(spread[0])}
        figures[f"{name}: similarity"] = rounded(means[1])
    show((f"{epochs} epochs, {len(seeds)} seeds", "top-1, %", "sd", "similarity"), rows)
    ratio = statistics.mean(s for _, s in found[PENALTY]) / statistics.mean(
        s for _, s in found["ViT"]
    )
    results: Figures = {**figures, "penalty_over_plain_similarity": rounded(ratio)}
    targets: dict[str, Bound] = {"penalty_over_plain_similarity": {"max": 1.0}}
    conclude("ideas", quick, results, targets)


if __name__ == "__main__":
    main()
