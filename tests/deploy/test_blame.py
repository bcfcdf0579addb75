"""Which parts int8 costs accuracy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.deploy.made import CONFIG, small_file
from vitnas.deploy.blame import Blame, percent, verdict
from vitnas.deploy.graph import Operator, operators_of
from vitnas.exported.quantized import Quantizer


def marks(share: float, number: int = 500) -> np.typing.NDArray[np.bool_]:
    return np.arange(number) % 100 < 100 * share


def test_a_mixer_that_loses_more_is_named() -> None:
    said = verdict({"pool": [marks(0.01)], "mhsa": [marks(0.2), marks(0.1)]})
    assert said == (
        "mhsa loses more with int8 than pool: mhsa 15.00 %, pool 1.00 % of the answers change."
    )


def test_what_cannot_be_told_apart_is_not_said() -> None:
    said = verdict({"pool": [marks(0.01)], "mhsa": [np.roll(marks(0.02), 7)]})
    assert said == (
        "No token mixer loses measurably more than another one: mhsa 2.00 %, pool 1.00 %."
    )
    assert verdict({"mhsa": [marks(0.02)]}) == "mhsa alone in int8 changes 2.00 % of the answers."
    assert verdict({}) == ""


def test_percent() -> None:
    assert percent(marks(0.25)) == 25.0
    assert percent(marks(0.25, 0)) == 0.0


def test_parts_are_tried_in_float(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = small_file(tmp_path / "model.onnx")
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(128, 1, 4, 4, generator=generator)
    # Ranges of a thousandth of what is seen: int8 cuts nearly everything off.
    quantizer = Quantizer(model, tmp_path, images[:8] / 1000)
    blame = Blame(quantizer, operators_of(onnx.load(model), CONFIG), images)
    found = blame.of_mixers()
    assert list(found) == ["dwconv", "mhsa"]
    assert percent(found["dwconv"]) > 10
    parts, gains = blame.remedy()
    assert set(gains) == {"", "other", "dwconv", "softmax", "head"}
    assert gains[parts[0]] == min(value for part, value in gains.items() if part)
    assert blame.names_of(["dwconv", "softmax"]) == ["mix", "softmax"]


@pytest.mark.parametrize(
    ("percents", "expected"),
    [
        ({"": 5.0, "mhsa": 5.0, "norms": 6.0}, ()),
        ({"": 5.0, "mhsa": 3.0, "norms": 6.0, "mhsa norms": 2.0}, ("mhsa", "norms")),
        ({"": 5.0, "mhsa": 3.0, "norms": 4.0, "mhsa norms": 3.0}, ("mhsa",)),
        ({"": 0.0, "mhsa": 0.0, "norms": 0.0}, ()),
    ],
)
def test_a_part_that_does_not_help_is_no_remedy(
    percents: dict[str, float], expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    blame = Blame.__new__(Blame)
    blame.operators = [Operator(part, "MatMul", None, part) for part in ("mhsa", "norms")]
    monkeypatch.setattr(blame, "_percent", lambda parts: percents[" ".join(parts)])
    assert blame.remedy()[0] == expected
