"""Checkpoints of CAFormer's code become what timm makes of them."""

from __future__ import annotations

import pytest
import timm
import torch
from timm.models import metaformer as timm_mf

from tests.nn.zoo.weights.formers import MIXERS, official_s18
from tests.nn.zoo.weights.through import RUNS, converted
from vitnas.nn import build_model
from vitnas.nn.zoo import zoo_config
from vitnas.nn.zoo.weights import from_timm


@pytest.mark.nightly
def test_caformers_own_weights_are_those_that_timm_reads() -> None:
    code = official_s18(MIXERS["caformer"])
    theirs = timm.create_model("caformer_s18").eval()
    theirs.load_state_dict(timm_mf.checkpoint_filter_fn(code.state_dict(), theirs))
    ours = converted(code, "caformer", None, *RUNS)
    assert ours.config.name == "caformer_s18"
    through_timm = from_timm(theirs.state_dict(), build_model(zoo_config("caformer_s18")))
    for name, value in ours.state_dict().items():
        assert torch.equal(value, through_timm[name]), name
