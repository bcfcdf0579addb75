"""Files as they are found on disk, and how a refusal reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.conftest import cifar10_root as cifar10_root
from tests.training.conftest import cifar100_root as cifar100_root
from tests.training.conftest import fashion_root as fashion_root
from tests.training.conftest import folder_root as folder_root
from vitnas.config.data import DataConfig
from vitnas.data.table import read_source
from vitnas.errors import DataError


def refusal(config: DataConfig, path: Path, side: int = 8) -> str:
    """The message of the `DataError` that reading gives; names `path`, is one line."""
    with pytest.raises(DataError) as caught:
        read_source(config, (side, side))
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.fixture
def folder(folder_root: Path) -> DataConfig:
    return DataConfig(name="imagefolder", root=str(folder_root))


@pytest.fixture(params=["on", "off"])
def either_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with the cache of decoded images, once without."""
    if request.param == "off":
        monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
