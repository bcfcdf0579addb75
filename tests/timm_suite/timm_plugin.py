"""A pytest plugin: timm's tests see our models, and only ours.

timm's test file asks `timm.list_models` which models each test is for, with lists of its own in
which a project outside timm cannot stand. Two of them are completed here, as timm does for models
of its own: families whose features are tokens and not pictures (`NON_STD_FILTERS`), and modules
that have `forward_intermediates` (`FEAT_INTER_FILTERS`). No test is changed. Tests of TorchScript
are left out: torch calls it deprecated, and our networks leave by `torch.export` and ONNX.
"""

from __future__ import annotations

import fnmatch
import os
from typing import Any

import pytest
import timm

import vitnas  # noqa: F401
from vitnas.nn.zoo import zoo_config
from vitnas.nn.zoo.entrypoints import timm_names

TOKENS = [ours for name, ours in timm_names.items() if len(zoo_config(name).stages) == 1]
"""Networks of one stage, whose features are tokens."""

_PATTERNS = os.environ.get("VITNAS_TIMM_MODELS", "*").split(",")
OURS = [n for n in timm_names.values() if any(fnmatch.fnmatch(n, p) for p in _PATTERNS)]
_list_models = timm.list_models


def list_ours(
    filter: Any = "", module: Any = "", exclude_filters: Any = "", **options: Any
) -> list[str]:
    """`timm.list_models`, of our models; as if our module stood in timm's lists of modules."""
    asked = isinstance(module, list) and "vision_transformer" in module
    found = _list_models(
        _completed(filter),
        module="" if asked else module,
        exclude_filters=_completed(exclude_filters),
        **options,
    )
    return [name for name in found if name in OURS]


def _completed(patterns: Any) -> Any:
    """timm's list of families with tokens, with our networks in it; anything else as it is."""
    return [*patterns, *TOKENS] if isinstance(patterns, list) and "deit*" in patterns else patterns


timm.list_models = list_ours


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of one of timm's models by name are no tests of ours, nor are those of TorchScript."""
    ours: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        params = getattr(item, "callspec", None)
        name = "" if params is None else params.params.get("model_name", "")
        is_ours = name in OURS and "torchscript" not in item.name
        (ours if is_ours else others).append(item)
    items[:] = ours
    config.hook.pytest_deselected(items=others)
