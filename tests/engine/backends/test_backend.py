"""Options say which back end is opened, and what is said while it opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitnas.config.data import DataConfig
from vitnas.engine.backends.backend import open_backend, opening
from vitnas.engine.backends.serial import SerialBackend
from vitnas.engine.options import SearchOptions
from vitnas.errors import DataError, RunError

DIGITS = DataConfig(name="digits")
SERIAL = SearchOptions(backend="serial", gpus_per_trial=0.0)


def test_this_process_is_opened_where_it_is_asked_for() -> None:
    assert isinstance(open_backend(SERIAL, DIGITS), SerialBackend)
    assert opening(SERIAL) == "loading torch"


def test_this_process_joins_no_cluster() -> None:
    with pytest.raises(RunError, match="--backend serial uses no cluster"):
        open_backend(SearchOptions(backend="serial", ray_address="auto"), DIGITS)
    assert opening(SearchOptions(ray_address="auto")) == "joining the cluster at auto"
    assert opening(SearchOptions()) == "starting Ray"


@pytest.mark.parametrize("name", ["imagefolder", "cifar10", "fashion_mnist"])
def test_a_folder_that_is_missing_is_refused_before_ray_is_started(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="leavs: no such folder"):
        open_backend(SearchOptions(), DataConfig(name=name, root=str(tmp_path / "leavs")))


def test_so_is_a_cache_of_images_that_is_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("oak", "ash"):
        (tmp_path / "train" / name).mkdir(parents=True)
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "here")
    with pytest.raises(DataError, match="VITNAS_IMAGE_CACHE = 'here'"):
        open_backend(SearchOptions(), DataConfig(name="imagefolder", root=str(tmp_path)))
