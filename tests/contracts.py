"""What every mixer of vitnas must keep, beside what `vitnas.testing` asks of all."""

from __future__ import annotations

import inspect
import re
from typing import Any

from vitnas import testing
from vitnas.config.mixers import MIXERS
from vitnas.cost.operators import count_operators
from vitnas.nn.mixers import Place, TokenMixer
from vitnas.nn.mixers.base import OnPicture
from vitnas.testing import GRID, WIDTH, place_of, tokens_for

__all__ = ["GRID", "WIDTH", "MixerContract", "place_of", "tokens_for"]

NORMS = {"layer_norm", "batch_norm"}

ATTENTION: dict[str, dict[str, Any]] = {
    "default": {},
    "gelu": {"attn_act": "gelu"},
    "masked diagonal": {"mask_diagonal": True},
    "wide": {"attn_dim": 20},
    "narrow, a class token": {"attn_dim": 8, "class_token": True, "num_heads": 1},
    "class token": {"class_token": True},
    "no biases, no scale": {"qkv_bias": False, "proj_bias": False, "qk_scale": False},
    "convolutions": {"kernel_qkv": 3},
    "fewer keys": {"kernel_qkv": 3, "stride_kv": 2, "attn_dim": 20},
    "fewer keys, a class token": {"kernel_qkv": 5, "stride_kv": 3, "class_token": True},
    "fewer keys, masked": {
        "kernel_qkv": 3,
        "stride_kv": 4,
        "mask_diagonal": True,
        "attn_act": "gelu",
        "qkv_bias": False,
    },
}
"""Forms that every attention has, for `variants`."""

STATIC_KEY: dict[str, dict[str, Any]] = {
    **ATTENTION,
    "relu": {"attn_act": "relu"},
    "star_relu": {"attn_act": "star_relu", "temperature": {"kind": "learnable"}},
    "randn": {"key_init": "randn"},
    "tokens as query": {"q_proj": False},
    "windows": {"windows": 2},
    "tokens convolved as query": {"q_proj": False, "kernel_qkv": 3, "stride_kv": 2},
    "windows after convolutions": {"windows": 2, "kernel_qkv": 3},
    "windows and all else": {"windows": 2, "attn_act": "gelu", "mask_diagonal": True},
}
"""Forms that `ska` and `cska` have."""


class MixerContract(testing.MixerContract):
    """Inherit, set `mixer`, and list in `variants` the fields that select its forms."""

    def macs_names(self, place: Place, pass_index: int) -> dict[str, float]:
        """Values of the letters in the docstring's formula."""
        stage = place.stage_config
        return {
            "N": place.num_tokens,
            "n": place.num_keys // stage.num_windows,
            "m": place.num_keys,
            "u": stage.qkv_kernel,
            "p": place.config.num_prefix_tokens,
            "C": stage.embed_dim,
            "h": stage.heads,
            "g": stage.groups[pass_index],
            "c": int(place.config.class_token),
            "r": int(place.reattention),
            "A": stage.attn_width,
            "q": int(stage.projects_query),
            "M": stage.hidden_channels,
            "e": 1 + (stage.hidden_channels != stage.embed_dim),
            "s": stage.se_channels,
            "k": stage.kernel,
            "w": stage.key_kernel,
            "S": stage.hidden_tokens,
        }

    def test_is_in_the_table(self) -> None:
        assert self.mixer in MIXERS

    def test_counted_macs_are_the_docstrings(
        self, built: TokenMixer, place: Place, pass_index: int
    ) -> None:
        found = re.search(r"MACs: ``(.+?)``", inspect.getdoc(type(built)) or "")
        assert found, "the class docstring states no MACs"
        stated = eval(found[1], {}, self.macs_names(place, pass_index))
        shape = (WIDTH, 1, place.num_tokens)
        counted = count_operators(OnPicture(built, place, pass_index), shape)
        assert sum(macs for name, macs in counted.items() if name not in NORMS) == stated
