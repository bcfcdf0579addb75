"""What a check found, as plain values."""

from __future__ import annotations

import json

from tests.deploy.made import REMEDY, a_check, checked


def test_a_ratio_is_to_eager_pytorch() -> None:
    (timing, *_) = checked().timings
    assert timing.faster("onnx") == 2.0
    assert timing.faster("int8") == 0.5
    assert timing.faster("fp16") is None


def test_it_is_json() -> None:
    tree = json.loads(json.dumps(a_check(checked(remedy=REMEDY)).to_json()))
    assert tree["format"] == 1
    (one,) = tree["networks"]
    assert one["forms"]["int8"]["lost"] == 0.5
    assert one["remedy"]["parts"] == ["mhsa", "norms"]
    assert [timing["batch"] for timing in one["timings"]] == [1, 32, 1, 32]
