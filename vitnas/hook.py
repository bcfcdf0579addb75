"""Something to do once another package has been imported, without importing it ourselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def when_imported(module: str, then: Callable[[], None]) -> None:
    """Call `then` once `module` is imported: now if it is already, else right after its import.

    Standard library only and nothing loaded, so that it may stand in a package's `__init__`.
    """
    if module in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(module, then))


class _Finder:
    """Finds `module` as the other finders would, and has `then` called after it."""

    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self.module, self.then = module, then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.module:
            return None
        for finder in sys.meta_path:
            spec: Any = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = _Loader(spec.loader, self)
                return spec
        return None


class _Loader:
    """The module's own loader, in whose favour it steps back before the module is executed."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self.loader, self.finder = loader, finder

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        if self.finder in sys.meta_path:  # an import that failed before keeps it waiting
            sys.meta_path.remove(self.finder)
            self.finder.then()
