"""Checkpoints of BViT's code give that code's scores, through the real command."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.zoo.codes.bvit import Bvit
from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.weights.through import MHSA, RUNS, check_scores, converted


def small_bvit(**fields: Any) -> dict[str, Any]:
    stage = MHSA | {"depth": 3, "embed_dim": 48, "num_heads": 3, "mlp_ratio": 2.0}
    return {"class_token": True, "stages": [stage], "broad": {"gamma": 1.0}, **fields}


def test_bvit(capsys: pytest.CaptureFixture[str]) -> None:
    """It halves the picture, so of 17 rows of its position table it uses the first five."""
    code = filled(Bvit(48, 3, 3, 96, img_size=64, classes=10))
    ours = converted(code, "bvit", small_bvit(img_size=64, stem={"kind": "bvit", "stride": 32}))
    check_scores(code, ours, 64)
    assert "rows 5 to 16 of pos_embedding are left out" in capsys.readouterr().out
    assert (ours.config.broad.gamma, ours.config.norm_eps) == (0.4, 1e-5)


def test_bvit_without_its_convolution_is_the_papers() -> None:
    code = filled(Bvit(48, 3, 3, 96, halved=False, img_size=64, channels=1))
    check_scores(code, converted(code, "bvit", small_bvit()), 64, channels=1)


@pytest.mark.nightly
@pytest.mark.parametrize(("more", "side"), [((), 224), (("--img-size", "448"), 448)])
def test_bvit_5m_at_full_size(more: tuple[str, ...], side: int) -> None:
    code = filled(Bvit(192, 12, 3, 768, img_size=224, classes=2))
    ours = converted(code, "bvit", None, *RUNS, *more)
    assert ours.config.name == "bvit_5m"
    check_scores(code, ours, side)
