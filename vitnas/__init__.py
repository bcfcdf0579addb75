"""vitnas: search and design hybrid vision transformers for accuracy against exactly counted FLOPs.

The public names are loaded when they are first used, so that `import vitnas` costs nothing. The
papers' models are timm's too, as soon as timm itself is imported: `timm.create_model("sret_t")`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vitnas.hook import when_imported

if TYPE_CHECKING:
    from vitnas.api import confirm, evaluate, export, load_run, load_space, predict, search, tune
    from vitnas.config.model import ModelConfig, load_config, save_config
    from vitnas.cost.counter import measure_cost
    from vitnas.exported.read import load
    from vitnas.nn.model import build_model

__version__ = "0.1.0"

_HOME = {
    "ModelConfig": "vitnas.config.model",
    "build_model": "vitnas.nn.model",
    "confirm": "vitnas.api",
    "evaluate": "vitnas.api",
    "export": "vitnas.api",
    "load": "vitnas.exported.read",
    "load_config": "vitnas.config.model",
    "load_run": "vitnas.api",
    "load_space": "vitnas.api",
    "measure_cost": "vitnas.cost.counter",
    "predict": "vitnas.api",
    "save_config": "vitnas.config.model",
    "search": "vitnas.api",
    "tune": "vitnas.api",
}

__all__ = [
    "ModelConfig",
    "build_model",
    "confirm",
    "evaluate",
    "export",
    "load",
    "load_config",
    "load_run",
    "load_space",
    "measure_cost",
    "predict",
    "save_config",
    "search",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vitnas' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _register_with_timm() -> None:
    import_module("vitnas.nn.zoo.entrypoints").register()


when_imported("timm.models", _register_with_timm)
