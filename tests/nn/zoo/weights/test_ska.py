"""Checkpoints of the SKA paper's code, where they hold a MetaFormer without static keys."""

from __future__ import annotations

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.metaformer import Metaformer
from tests.nn.zoo.weights.formers import DEPTHS, MIXERS, WIDTHS
from tests.nn.zoo.weights.through import check_scores, converted


def test_the_layout_of_ska_reads_plain_metaformers_too() -> None:
    code = filled(Metaformer(WIDTHS, DEPTHS, MIXERS["caformer"]))
    check_scores(code, converted(code, "ska", None, "--img-size", "64"), 64)
