"""The networks. `build_model(config)` builds one.

The names are imported when they are first used, so `vitnas.nn.zoo` does not need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitnas.nn.model import HybridTransformer, InputSizeError, build_model

__all__ = ["HybridTransformer", "InputSizeError", "build_model"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'vitnas.nn' has no attribute '{name}'")
    from vitnas.nn import model

    return getattr(model, name)
