"""Whether the images are where the configuration says."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitnas.config.data import DataConfig
from vitnas.data.there import check_there
from vitnas.errors import DataError


@pytest.mark.parametrize("name", ["imagefolder", "cifar10"])
def test_a_folder_that_is_missing_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gone"):
        check_there(DataConfig(name=name, root=str(tmp_path / "gone")))


def test_what_comes_with_a_package_is_always_there() -> None:
    check_there(DataConfig())


def test_what_timm_opens_is_looked_for_before_anything_else(tmp_path: Path) -> None:
    """A tar file is no folder, and `hfds/` makes its own."""
    (tmp_path / "all.tar").write_bytes(b"")
    check_there(DataConfig(name="timm", root=str(tmp_path / "all.tar")))
    with pytest.raises(DataError, match=r"there is no train/ or train\.tar"):
        check_there(DataConfig(name="timm", root=str(tmp_path / "gone")))
