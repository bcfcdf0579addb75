"""The networks. `build_model(config)` is the way in."""

from vitnas.nn.model import HybridTransformer, InputSizeError, build_model

__all__ = ["HybridTransformer", "InputSizeError", "build_model"]
