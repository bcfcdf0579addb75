"""One network from Python: what is wrong is said in one line before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vitnas import api
from vitnas.errors import ConfigError


@pytest.mark.parametrize("options", [{}, {"trial": 3}, {"baseline": "vgg"}])
def test_a_training_is_of_a_model_or_of_a_run_s_network(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="name a MODEL to train, or a network of a run by --for"):
        api.train(None, tmp_path / "to", **options)
    assert not (tmp_path / "to").exists()


def test_a_model_alone_has_no_images_to_be_looked_into_with(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data: is required: a data set, a folder or a space"):
        api.diagnose("sret_t", out=tmp_path / "to")
    assert not (tmp_path / "to").exists()
