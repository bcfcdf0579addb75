"""Settings for the whole suite, and what many of its tests look at."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from hypothesis import settings

from vitnas.config.model import ModelConfig

if TYPE_CHECKING:
    from vitnas.run import Run

# Ray's workers otherwise give way to everything else, so that tests time out on a busy machine.
os.environ.setdefault("RAY_worker_niceness", "0")

# A shell without job control starts what runs in its background with Ctrl-C ignored, and Python
# then leaves it so, here and in all processes of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: how long a test takes says something of the machine, not of the code.
# The same examples in every run: a change fails by what it changed. `make nightly` looks for new
# ones (--hypothesis-profile=seek).
settings.register_profile("vitnas", deadline=None, derandomize=True)
settings.register_profile("seek", deadline=None, max_examples=500)
settings.load_profile("vitnas")


def pytest_collection_finish() -> None:
    """Let the garbage collector look no more at what imports and collection have made.

    There are millions of objects, and each full collection during the tests would walk over them.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let it look again, or Python could not free all at its end: Triton then prints a page of what
    it takes for leaks, above the summary."""
    gc.unfreeze()


COMPARED = "export parity"


@pytest.fixture
def compared(
    record_property: Callable[[str, object], None],
) -> Callable[[dict[str, float]], None]:
    """Tells the summary of one network: how far the scores of its exported files are, by file.

    It goes with the test's report, since what a passing test prints is not shown.
    """
    return lambda differences: record_property(COMPARED, differences)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many networks the exports were compared with, and the largest difference."""
    found: dict[str, list[float]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in report.user_properties:
                for file, difference in value.items() if name == COMPARED else ():
                    found.setdefault(file, []).append(difference)
    said = [
        f"{len(differences)} networks, largest difference {max(differences):.1e} ({file})"
        for file, differences in sorted(found.items())
    ]
    if said:
        terminalreporter.write_line(f"{COMPARED}: {'; '.join(said)}")


@pytest.fixture(autouse=True, scope="session")
def no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is taken from the user's cache or left there, by fixtures that tests share neither.

    matplotlib's list of fonts takes seconds to make, so that all tests of a process share one.
    """
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base / ".cache"))
        patch.setenv("MPLCONFIGDIR", str(base / "matplotlib"))
        yield


@pytest.fixture(autouse=True, scope="session")
def migrations_are_read_once() -> Iterator[None]:
    """Optuna reads its migrations each time a study is opened; these files never change."""
    from optuna.storages._rdb.storage import _VersionManager

    read = _VersionManager._create_alembic_script
    kept: list[object] = []

    def once(manager: _VersionManager) -> object:
        if not kept:
            kept.append(read(manager))
        return kept[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_VersionManager, "_create_alembic_script", once)
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test finds what another one has put into the cache.

    The folder is made by who puts something into it. `tmp_path` would look through the folders of
    all tests before, in each test.
    """
    place = tmp_path_factory.getbasetemp() / "caches" / uuid4().hex
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


@pytest.fixture(scope="session")
def tiny_config() -> ModelConfig:
    """Two stages for digits: a convolution, then attention in two passes, with drop path."""
    return ModelConfig.model_validate(
        {
            "img_size": 8,
            "in_chans": 1,
            "num_classes": 10,
            "stem": {"kind": "patch", "stride": 2},
            "drop_path_rate": 0.1,
            "stages": [
                {"token_mixer": "dwconv", "embed_dim": 16, "kernel_size": 3, "mlp_ratio": 2.0},
                {
                    "token_mixer": "mhsa",
                    "embed_dim": 32,
                    "head_dim": 16,
                    "groups": "[2,1]",
                    "nll_ratio": 1.0,
                    "mlp_ratio": 2.0,
                },
            ],
        }
    )


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A real search of three trainings in this process, for who only looks at it."""
    from tests.engine.conftest import SMALL, make_space
    from vitnas.engine.search import run_search

    return run_search(make_space(), tmp_path_factory.mktemp("searched") / "run", SMALL)
