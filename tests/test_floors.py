"""The house has floors: a file imports only from lower ones, and the light wings stay light."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.arrows import Graph, circles, graph, imports, modules

FLOORS = [
    (
        "columns",
        "cores",
        "durations",
        "environment",
        "errors",
        "files",
        "hook",
        "memory",
        "noise",
        "pairing",
        "pareto",
        "plotting",
        "plugins",
        "point_names",
        "seeds",
        "words",
    ),
    ("config",),
    ("surrogate",),
    ("sessions",),
    ("records",),
    ("longer", "ranking"),
    ("run",),
    ("versus",),
    ("cost.norms",),
    ("cost.mixers", "cost.stems"),
    ("cost.closed_form", "cost.operators", "nn.modes"),
    ("baselines.stages",),
    ("baselines.families",),
    ("nn.layers", "nn.mixers"),
    ("nn.block",),
    ("nn.recursion", "nn.broad"),
    ("nn.stage",),
    ("nn.features", "nn.resize"),
    ("nn.interface",),
    ("nn.model",),
    ("nn",),
    ("cost",),
    ("baselines",),
    ("exported", "testing"),
    ("data",),
    ("training",),
    ("diagnose",),
    ("scoring",),
    ("engine",),
    ("engine.batch",),
    ("engine.store",),
    ("engine.watch",),
    ("engine.pruning",),
    ("engine.samplers",),
    ("engine.decide",),
    ("engine.backends",),
    ("engine.tuning",),
    ("engine.baselines", "engine.options", "engine.recipe", "engine.search", "engine.session"),
    ("calibration", "replay"),
    ("report",),
    ("trained", "trained_long"),
    ("confirmation",),
    ("deploy",),
    ("api",),
    ("gpucheck",),
    ("cli",),
    ("__main__",),
]
SLOW = ("timm", "torchvision", "torch._dynamo", "sklearn")
"""What takes as long to import as PyTorch, and which a training does without."""
LIGHT = {
    "vitnas.config.space": ("torch", "ray", "optuna", "numpy"),
    "vitnas.files": ("torch", "ray", "optuna", "numpy", "pydantic", "yaml"),
    "vitnas.calibration.agreement": ("torch", "ray", "optuna", "scipy"),
    "vitnas.pareto": ("torch", "ray", "optuna"),
    "vitnas.noise": ("torch", "ray", "optuna"),
    "vitnas.surrogate.expected": ("torch", "ray", "optuna"),
    "vitnas.records": ("torch", "ray", "optuna", "numpy"),
    "vitnas.ranking": ("torch", "ray", "optuna", "numpy"),
    "vitnas.trained_long": ("torch", "timm", "ray", "optuna"),
    "vitnas.run": ("torch", "ray", "optuna", "numpy"),
    "vitnas.versus": ("torch", "ray", "optuna", "scipy"),
    "vitnas.cost.closed_form": ("torch", "ray", "optuna", "numpy"),
    "vitnas.data.there": ("torch", "timm", "ray", "optuna"),
    "vitnas.data.reading": ("torch", "timm", "ray", "optuna"),
    "vitnas.deploy.text": ("torch", "timm", "ray", "optuna", "matplotlib"),
    "vitnas.diagnose": ("torch", "timm", "ray", "optuna", "numpy", "matplotlib"),
    "vitnas.nn.model": SLOW,
    "vitnas.scoring.load": SLOW,
    "vitnas.training.train": SLOW,
    "vitnas.engine.backends.tune": ("torch", *SLOW),
    "vitnas.engine.backends.parallel": ("torch", *SLOW),
    "vitnas.nn.zoo": ("torch", "timm", "ray", "optuna", "numpy"),
    "vitnas.training.plan": ("torch", "timm", "ray", "optuna", "numpy"),
    "vitnas.engine.store.study": ("torch", "ray", "optuna"),
    "vitnas.engine.decide.controller": ("torch", "ray"),
    "vitnas.report": ("torch", "ray"),
    "vitnas.cli": ("torch", "ray", "optuna", "numpy", "pydantic", "yaml", "importlib.metadata"),
    "vitnas": ("torch", "timm", "ray", "optuna", "numpy", "pydantic", "yaml"),
}
ONLY_IMPORTERS = {
    "ray": {f"engine.backends.{name}" for name in ("cluster", "parallel", "sending", "tune")},
    "fvcore": {"cost.operators"},
}


def floor(module: str) -> int | None:
    """The floor of the most specific entry that `module` belongs to."""
    best: tuple[int, int] | None = None
    for level, wings in enumerate(FLOORS):
        for wing in wings:
            if module == wing or module.startswith(wing + "."):
                best = max(best or (0, 0), (len(wing), level))
    return None if best is None else best[1]


@pytest.fixture(scope="module")
def arrows() -> Graph:
    return graph()


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_point_downwards(module: str, arrows: Graph) -> None:
    level = floor(module)
    assert level is not None, f"{module} has no floor"
    for target in arrows[module]:
        there = floor(target)
        assert there is not None
        assert there <= level, f"vitnas.{module} imports upwards from vitnas.{target}"


def test_no_file_leads_back_to_itself(arrows: Graph) -> None:
    """What is known is to be mended, and its entry goes with it."""
    assert not circles(arrows)


def test_a_class_s_name_has_one_meaning() -> None:
    """Classes that begin with `_` are known in their own file alone."""
    places: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert not {name: found for name, found in places.items() if len(found) > 1}


@pytest.mark.parametrize("library", sorted(ONLY_IMPORTERS))
def test_only_one_module_knows_the_library(library: str) -> None:
    users = {
        module
        for module, path in modules().items()
        if any(name.split(".")[0] == library for name, _ in imports(path))
    }
    assert users == ONLY_IMPORTERS[library]


@pytest.mark.parametrize("module", sorted(LIGHT))
def test_light_modules_import_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & set(LIGHT[module])


def test_no_public_name_is_a_module_s() -> None:
    """Importing `vitnas.x` sets the attribute `x`, and would hide a function of that name."""
    import vitnas

    assert not set(vitnas.__all__) & {name.split(".")[0] for name in modules()}


def test_the_public_names_are_where_they_say() -> None:
    import vitnas

    for name in vitnas.__all__:
        assert getattr(vitnas, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = vitnas.no_such_name
