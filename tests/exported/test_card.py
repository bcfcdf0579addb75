"""The model card: numbers, provenance, and code that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.report.runs import ENVIRONMENT, SPACE, run_of, tree, trial
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.exported.card import Scores, model_card
from vitnas.exported.network import export_network
from vitnas.nn.model import build_model
from vitnas.nn.weights import weights_bytes

PROXY = Scores(3, 61.25, 60.5, anew=False)


def card(
    scores: Scores = PROXY,
    environment: dict[str, Any] = ENVIRONMENT,
    space: Mapping[str, Any] = SPACE,
    **more: Any,
) -> str:
    chosen = trial(5, 61.25, 2_500_000, test_top1=60.5, **more)
    run = run_of(Path("results/small"), chosen, environment=environment, space=space)
    config = validate(ModelConfig, dict(chosen.config))
    return model_card(run, chosen, config, scores, Path("nets/one"), "vitnas export here")


@pytest.mark.parametrize(
    "part",
    [
        "# hybrid_cifar-trial-5: 61.25 % top-1 on the scoring split, 2.50 M FLOPs\n",
        "`1x dwconv 32 > 1x mhsa 64 h2 | stem conv | stride 2`",
        "| FLOPs of one image (multiply-adds) | 2,500,000 |",
        "| parameters | 40,000 |",
        "| top-1 on the scoring split | 61.25 % |",
        "images alone | 59.88 to 62.58 % (95 %, Wilson, of 5,000 images) |",
        "| top-1 on the test split | 60.50 % |",
        "images alone | 59.54 to 61.45 % (95 %, Wilson, of 10,000 images) |",
        "| input | 3 x 32 x 32, floats |",
        "run `results/small`, trial 5, on the Pareto front, key 000000000005",
        "space hybrid_cifar, seed of the run 3",
        "name cifar10, num_classes 10, num_train_images 45000",
        "epochs 12, batch_size 512",
        "--trials 200 --seed 3` at git revision 40a507c81f2e",
        "torch 2.6.0",
        "with `vitnas export here`",
        "chosen by its score",
        "After `import vitnas`, and not without it, timm loads the network, too:\n`timm.create",
    ],
)
def test_the_card_says(part: str) -> None:
    assert part in card()


@pytest.mark.parametrize("name", ["digest", "listed"])
def test_images_are_told_in_words(name: str) -> None:
    stored = {"num_images": 4, "num_classes": 2, name: "ac45"}
    data = {**ENVIRONMENT["data"], "fingerprint": stored, "skipped": []}
    text = card(environment={**ENVIRONMENT, "data": data})
    assert ", digest of the images ac45\n" in text
    assert "[]" not in text
    assert "{" not in text
    data["skipped"] = ["a.png"]
    assert ", 1 file skipped\n" in card(environment={**ENVIRONMENT, "data": data})


def test_weights_trained_anew_are_told_apart() -> None:
    text = card(Scores(100, 88.0, None, anew=True))
    assert "Trained again for this export: epochs 100, seed 7" in text
    assert "In the search the same network reached 61.25 % after epoch 3" in text
    assert "| top-1 on the scoring split | 88.00 % |" in text
    assert "test split" not in text
    assert "optimistic" not in text


def test_folds_are_told() -> None:
    """The score of the search is a mean over them, and the weights are those of the first."""
    space = {**SPACE, "data": {"name": "cifar10", "folds": 3}}
    text = card(space=space)
    assert "| top-1 on the scoring split, mean over 3 folds | 61.25 % |" in text
    assert "| top-1 on the test split | 60.50 % |" in text
    assert "epochs 3, seed 7, on the first of 3 folds. Such weights" in text
    anew = card(Scores(100, 88.0, None, anew=True), space=space)
    assert "| top-1 on the scoring split | 88.00 % |" in anew
    assert "epochs 100, seed 7, on the first of 3 folds." in anew
    assert "fold" not in card()


def test_normalisation_is_told_where_known() -> None:
    data = {**ENVIRONMENT["data"], "mean": [0.4914, 0.48216], "std": [0.247, 0.2435]}
    text = card(environment={**ENVIRONMENT, "data": data})
    assert "mean 0.4914, 0.4822; deviation 0.2470, 0.2435" in text
    assert "name cifar10" in text
    assert "0.48216" not in text
    assert "mean and deviation of" not in text


@pytest.mark.parametrize("environment", [{}, {"sessions": [], "data": {}, "seed": None}])
def test_old_runs_have_a_card(environment: dict[str, Any]) -> None:
    text = card(environment=environment)
    assert "None" not in text
    assert "versions in the search: not recorded" in text
    assert not re.search(r"\n{3,}", text)


def test_its_code_runs(tmp_path: Path) -> None:
    chosen = trial(0)
    weights = weights_bytes(build_model(validate(ModelConfig, tree())))
    folder = export_network(run_of(tmp_path, chosen), chosen, weights, tmp_path / "it's one")
    found = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found.group(1), names)
    assert names["scores"].shape == (1, 10)
    assert isinstance(names["scores"], torch.Tensor)
