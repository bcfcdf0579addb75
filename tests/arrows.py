"""Files of the package, arrows (one file imports from another) and circles among them.

    python -m tests.arrows [FOLDER]     of another checkout's `vitnas/`, for before and after

Every import counts, also one inside a function or for types alone: each is something to know.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "vitnas"
Graph = Mapping[str, frozenset[str]]


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Every module of the package by its name below `vitnas`; a folder is its `__init__.py`."""
    found = {}
    for path in package.rglob("*.py"):
        parts = list(path.relative_to(package).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        if parts and parts[0] != "spaces":
            found[".".join(parts)] = path
    return found


@cache
def imports(path: Path) -> frozenset[tuple[str, str]]:
    """What a file imports anywhere: a module's absolute name, and a name in it or nothing."""
    names: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            names |= {(node.module, alias.name) for alias in node.names}
    return frozenset(names)


def graph(package: Path = PACKAGE) -> Graph:
    """From which files each file imports."""
    known = modules(package)
    return {
        module: frozenset(
            target
            for name, inner in imports(path)
            if (target := _file_of(name, inner, known)) and target != module
        )
        for module, path in known.items()
    }


def _file_of(name: str, inner: str, known: Mapping[str, Path]) -> str | None:
    """The file that `from name import inner` reads; None outside the package."""
    module = name.removeprefix("vitnas.")
    if name == "vitnas":
        return inner if inner in known else None
    if not name.startswith("vitnas."):
        return None
    return next((at for at in (f"{module}.{inner}", module) if at in known), None)


def circles(arrows: Graph) -> list[frozenset[str]]:
    """The largest sets of files in which each one leads to each other, largest first."""
    reach = {module: _reach(module, arrows) for module in arrows}
    found = {
        frozenset({m for m in reach[module] if module in reach[m]})
        for module in arrows
        if module in reach[module]
    }
    return sorted(found, key=lambda circle: (-len(circle), sorted(circle)))


def _reach(module: str, arrows: Graph) -> set[str]:
    """What a file leads to; itself only by a circle."""
    seen: set[str] = set()
    ahead = list(arrows[module])
    while ahead:
        there = ahead.pop()
        if there not in seen:
            seen.add(there)
            ahead += arrows.get(there, ())
    return seen


def room(module: str, arrows: Graph) -> str:
    """The folder of a file of the engine, else its wing."""
    wing, *rest = module.split(".")
    folder = ".".join((wing, *rest[:1]))
    is_folder = any(other.startswith(f"{folder}.") for other in arrows)
    return folder if wing == "engine" and is_folder else wing


def between_rooms(arrows: Graph) -> dict[tuple[str, str], int]:
    """How many arrows lead from each room of the engine, and from the replay, to another room."""
    found: dict[tuple[str, str], int] = {}
    for module, targets in arrows.items():
        for target in targets:
            pair = room(module, arrows), room(target, arrows)
            ours = [place.startswith(("engine", "replay")) for place in pair]
            if all(ours) and pair[0] != pair[1]:
                found[pair] = found.get(pair, 0) + 1
    return found


def told(package: Path) -> Iterator[str]:
    """The lines that the script prints."""
    arrows = graph(package)
    found = circles(arrows)
    count = sum(map(len, arrows.values()))
    engine = {m: t for m, t in arrows.items() if m.startswith(("engine.", "replay."))}
    inside = sum(sum(t.startswith(("engine.", "replay.")) for t in ts) for ts in engine.values())
    yield f"{len(arrows)} files, {count} arrows, {len(found)} circles"
    yield f"engine and replay: {len(engine)} files, {inside} arrows among them"
    yield from (f"  circle: {', '.join(sorted(circle))}" for circle in found)
    between = between_rooms(arrows)
    if between:
        yield f"{sum(between.values())} arrows between rooms"
        yield from (f"  {a} -> {b}: {n}" for (a, b), n in sorted(between.items()))


if __name__ == "__main__":
    print("\n".join(told(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)))
