"""Files that compute something else are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.exported.source.parity import source_of
from tests.nn.networks import ready, vit
from vitnas.errors import RunError
from vitnas.exported.check import check_files
from vitnas.exported.folder import WEIGHTS_FILE
from vitnas.nn.weights import weights_bytes

NETWORK = ready(vit())


def folder(place: Path, source: str) -> Path:
    (place / "model.py").write_text(source)
    (place / WEIGHTS_FILE).write_bytes(weights_bytes(NETWORK))
    return place


@pytest.mark.slow
def test_equal_scores_pass(tmp_path: Path) -> None:
    found = check_files(folder(tmp_path, source_of(vit())), NETWORK, None, "net")
    assert found.differences["model.py"] < 1e-5
    assert found.images == "16 random images"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.py", WEIGHTS_FILE]


@pytest.mark.slow
def test_other_scores_are_named(tmp_path: Path) -> None:
    wrong = source_of(vit()).replace("act=nn.GELU()", "act=nn.ReLU()")
    images = torch.randn(3, 3, 32, 32)
    with pytest.raises(RunError, match=r"net: model\.py was not written: its scores differ by .*3"):
        check_files(folder(tmp_path, wrong), NETWORK, images, "net")


@pytest.mark.slow
def test_what_needs_vitnas_is_named(tmp_path: Path) -> None:
    needing = "import vitnas\n" + source_of(vit()).replace("from __future__", "# from __future__")
    with pytest.raises(RunError, match=r"net: its files cannot be run without vitnas: .*vitnas"):
        check_files(folder(tmp_path, needing), NETWORK, None, "net")
