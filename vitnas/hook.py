"""Something to do about another package's import, without importing it ourselves.

Standard library only and nothing loaded, so that it may stand in a package's `__init__`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


def when_imported(module: str, then: Callable[[], None]) -> None:
    """Call `then` once `module` is imported: now if it is already, else right after its import."""

    @contextmanager
    def around() -> Iterator[None]:
        yield
        then()

    if module in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(module, around))


def interrupts_wait_for(module: str) -> None:
    """Let a Ctrl-C during the import of `module` wait for its end.

    Compiled code may abort at an exception, and Python 3.11 turns one inside a class statement into
    another.
    """
    if module not in sys.modules:
        sys.meta_path.insert(0, _Finder(module, interrupts_later))


@contextmanager
def interrupts_later() -> Iterator[None]:
    """A Ctrl-C inside waits for the end of the block."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():  # which is never interrupted
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    for number in heard[:1]:
        signal.raise_signal(number)


class _Finder:
    """Finds `module` as the finders behind it would, and executes it inside `around`."""

    def __init__(self, module: str, around: Callable[[], AbstractContextManager[None]]) -> None:
        self.module, self.around = module, around

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.module:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec: Any = finder.find_spec(name, path, target)
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
        with self.finder.around():
            self.loader.exec_module(module)
            sys.meta_path.remove(self.finder)  # an import that fails keeps it waiting
