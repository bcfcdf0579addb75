"""Checkpoints of MetaFormers give their code's scores; the sizes are read off the shapes."""

from __future__ import annotations

import pytest

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.metaformer import Metaformer
from tests.nn.zoo.weights.formers import DEPTHS, MIXERS, WIDTHS, official_s18
from tests.nn.zoo.weights.through import RUNS, check_scores, converted


@pytest.mark.parametrize("name", sorted(MIXERS))
def test_metaformers_are_read_off_their_shapes(name: str) -> None:
    """No model is named, and the zoo has none of these sizes."""
    code = filled(Metaformer(WIDTHS, DEPTHS, MIXERS[name], img_size=64, classes=10, channels=1))
    keyed = "ska" in name
    more = () if keyed else ("--img-size", "64")  # only static keys say it
    ours = converted(code, "ska" if keyed else "caformer", None, *more)
    check_scores(code, ours, 64, channels=1)
    assert [stage.q_proj for stage in ours.config.stages][2] == (name != "skaformer")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["caformer", "skaformer", "cskaformer"])
def test_metaformers_at_full_size(name: str) -> None:
    code = official_s18(MIXERS[name])
    ours = converted(code, "ska" if "ska" in name else "caformer", None, *RUNS)
    expected = {"skaformer": "metaformer"}.get(name, f"{name}_s18")  # static keys in two stages
    assert ours.config.name == expected
    check_scores(code, ours, 224)
