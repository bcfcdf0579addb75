"""A small space as a plain tree, and changes to it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from vitnas.config.files import validate
from vitnas.config.space import SearchSpace, SpaceConfig

TREE: dict[str, Any] = {
    "name": "tiny",
    "data": {"name": "digits"},
    "proxy": {"epochs": 3, "batch_size": 64, "train_fraction": 0.3},
    "model": {
        "img_size": 8,
        "in_chans": 1,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2},
        "groups": {"choice": ["[1]", "[1,1]", "[2,1]"]},
        "stages": [
            {
                "token_mixer": {"choice": ["dwconv", "ska", "mhsa"]},
                "depth": {"int": [1, 3]},
                "embed_dim": {"choice": [16, 32, 48]},
                "head_dim": 16,
                "kernel_size": 3,
                "mlp_ratio": {"choice": [1.0, 2.0]},
            }
        ],
    },
}
BASE: dict[str, Any] = {
    "img_size": 8,
    "in_chans": 1,
    "num_classes": 10,
    "stem": {"kind": "conv", "stride": 2},
    "stages": [{"token_mixer": "mhsa", "embed_dim": 32}],
}
"""A model of one stage for 8 px digits."""

MHSA = {"token_mixer": "mhsa", "embed_dim": 32, "head_dim": 16}
CONV = {"token_mixer": "dwconv", "embed_dim": 16}
FIXED = TREE["model"] | {"groups": "[1]", "stages": [CONV]}
NAN, INF = float("nan"), float("inf")


def space_tree(changes: Mapping[str, Any]) -> dict[str, Any]:
    """A space whose model is `FIXED` with `changes`; a key with a slash is a top-level one."""
    tree = copy.deepcopy(TREE)
    tree["model"] = {**FIXED, **{k: v for k, v in changes.items() if "/" not in k}}
    return tree | {key.strip("/"): value for key, value in changes.items() if "/" in key}


def space_of(model: dict[str, Any], **fields: Any) -> SearchSpace:
    """A space whose model is `BASE` with the fields of `model`."""
    tree = {"name": "test", "model": BASE | model, **fields}
    return SearchSpace(validate(SpaceConfig, tree, file="s.yaml"), file="s.yaml")


def stage(**fields: Any) -> dict[str, Any]:
    return {"token_mixer": "mhsa", "embed_dim": 32, **fields}
