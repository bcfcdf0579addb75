"""The house has floors: a file imports only from lower ones, and the light wings stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "vitnas"

FLOORS = [
    ("errors", "files", "hook", "noise", "pareto", "plugins", "seeds"),
    ("config",),
    ("records",),
    ("cost.closed_form",),
    ("nn.layers", "nn.mixers"),
    ("nn.block",),
    ("nn.recursion", "nn.broad"),
    ("nn.stage",),
    ("nn.features", "nn.resize"),
    ("nn.interface",),
    ("nn.model",),
    ("nn",),
    ("cost",),
    ("training", "export", "diagnose"),
    ("engine",),
    ("engine.store",),
    ("engine.pruning",),
    ("engine.samplers",),
    ("engine.decide",),
    ("engine.watch",),
    ("engine.backends",),
    ("engine.options", "engine.search"),
    ("replay",),
    ("report",),
    ("api",),
    ("cli",),
    ("__main__",),
]
LIGHT = {
    "vitnas.config.space": ("torch", "ray", "optuna", "numpy"),
    "vitnas.files": ("torch", "ray", "optuna", "numpy", "pydantic", "yaml"),
    "vitnas.pareto": ("torch", "ray", "optuna"),
    "vitnas.noise": ("torch", "ray", "optuna"),
    "vitnas.records": ("torch", "ray", "optuna", "numpy"),
    "vitnas.cost.closed_form": ("torch", "ray", "optuna", "numpy"),
    "vitnas.diagnose": ("torch", "timm", "ray", "optuna", "numpy", "matplotlib"),
    "vitnas.nn.zoo": ("torch", "timm", "ray", "optuna", "numpy"),
    "vitnas.training.plan": ("torch", "timm", "ray", "optuna", "numpy"),
    "vitnas.engine.store.study": ("torch", "ray", "optuna"),
    "vitnas.engine.decide.controller": ("torch", "ray"),
    "vitnas.report": ("torch", "ray"),
    "vitnas.cli": ("torch", "ray", "optuna", "numpy", "pydantic", "yaml"),
    "vitnas": ("torch", "timm", "ray", "optuna", "numpy", "pydantic", "yaml"),
}
ONLY_IMPORTERS = {
    "ray": {"engine.backends.tune", "engine.backends.cluster"},
    "fvcore": {"cost.counter"},
}


def modules() -> dict[str, Path]:
    """Every module of the package by its name below `vitnas`."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        if parts and parts[0] != "spaces":
            found[".".join(parts)] = path
    return found


def imports(path: Path) -> set[str]:
    """Absolute names that a file imports anywhere, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def floor(module: str) -> int | None:
    """The floor of the most specific entry that `module` belongs to."""
    best: tuple[int, int] | None = None
    for level, wings in enumerate(FLOORS):
        for wing in wings:
            if module == wing or module.startswith(wing + "."):
                best = max(best or (0, 0), (len(wing), level))
    return None if best is None else best[1]


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_point_downwards(module: str) -> None:
    path = modules()[module]
    level = floor(module)
    assert level is not None, f"{module} has no floor"
    known = modules()
    for name in imports(path):
        inner = name.removeprefix("vitnas.")
        if inner in (name, module) or inner not in known:
            continue
        target = floor(inner)
        assert target is not None
        allowed = target <= level or module.startswith(inner + ".")
        assert allowed, f"vitnas.{module} imports upwards from {name}"


@pytest.mark.parametrize("library", sorted(ONLY_IMPORTERS))
def test_only_one_module_knows_the_library(library: str) -> None:
    users = {
        module
        for module, path in modules().items()
        if any(name == library or name.startswith(library + ".") for name in imports(path))
    }
    assert users == ONLY_IMPORTERS[library]


@pytest.mark.parametrize("module", sorted(LIGHT))
def test_light_modules_import_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & set(LIGHT[module])


def test_the_public_names_are_where_they_say() -> None:
    import vitnas

    for name in vitnas.__all__:
        assert getattr(vitnas, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = vitnas.no_such_name
