"""A space that is small enough to list and large enough to climb in."""

from __future__ import annotations

from typing import Any

from tests.config.trees import stage

SMALL: dict[str, Any] = {
    "stages": [
        stage(
            token_mixer={"choice": ["dwconv", "ska", "mhsa"]},
            depth={"int": [1, 4]},
            embed_dim={"choice": [16, 32, 64]},
            head_dim={"choice": [8, 16]},
            nll_ratio={"choice": [0.0, 1.0]},
        )
    ],
    "groups": {"choice": ["[1]", "[1,1]", "[4,1]"]},
}
