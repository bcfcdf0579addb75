"""timm's weights give timm's scores."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
from timm.models import metaformer as timm_mf

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.weights.formers import DEPTHS, WIDTHS
from tests.nn.zoo.weights.through import RUNS, check_scores, converted
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.errors import VitnasError
from vitnas.nn import build_model
from vitnas.nn.zoo import zoo_config, zoo_names
from vitnas.nn.zoo.weights import from_timm


def test_timms_metaformers() -> None:
    """Of sizes that neither the zoo nor timm has; an epsilon of 1e-6 in the classifier's norm."""
    sizes = {"depths": DEPTHS, "dims": WIDTHS, "num_classes": 10, "in_chans": 1}
    mixers = [timm_mf.SepConv, timm_mf.SepConv, timm_mf.Attention, timm_mf.Attention]
    like_timms = {
        "norm_layers": [timm_mf.LayerNorm2dNoBias] * 2 + [timm_mf.LayerNormNoBias] * 2,
        "use_mlp_head": True,
        "res_scale_init_values": (None, None, 1.0, 1.0),
    }
    code = filled(timm_mf.MetaFormer(token_mixers=mixers, **sizes, **like_timms))
    check_scores(code, converted(code, "timm", None, "--img-size", "64"), 64, channels=1)


def test_timms_deit() -> None:
    code = filled(timm.create_model("deit_tiny_patch16_224", num_classes=10, img_size=96))
    ours = converted(code, "timm")
    assert (ours.config.name, ours.config.img_size) == ("deit_tiny", 96)
    check_scores(code, ours, 96)


@pytest.mark.slow
def test_timms_distilled_deit() -> None:
    code = filled(timm.create_model("deit_tiny_distilled_patch16_224", num_classes=10, img_size=96))
    ours = converted(code, "timm")
    assert (ours.config.name, ours.config.img_size) == ("deit_tiny_distilled", 96)
    check_scores(code, ours, 96)


@pytest.mark.parametrize(
    ("width", "heads", "params"),
    [(192, 3, 5_910_800), (384, 6, 22_436_432), (768, 12, 87_338_192)],
)
def test_distilled_deits_have_their_published_size(width: int, heads: int, params: int) -> None:
    """6, 22 and 87 M (DeiT, Table 1); the exact numbers are those of timm's networks."""
    stage = {"token_mixer": "mhsa", "depth": 12, "embed_dim": width, "num_heads": heads}
    tokens = {"class_token": True, "distillation_token": True}
    config = ModelConfig.model_validate({"stages": [stage], **tokens})
    assert closed_form(config).num_params == params


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["caformer_s18", "convformer_s18", "caformer_s36"])
def test_timms_metaformers_at_full_size(name: str) -> None:
    code = filled(timm.create_model(name))
    ours = converted(code, "timm", None, *RUNS)
    assert ours.config.name == (name if name in zoo_names() else "metaformer")
    check_scores(code, ours, 224)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        ("caformer_s18", "caformer_s18", {}),
        ("convformer_s18", "convformer_s18", {}),
        ("bvit_5m", "deit_tiny_patch16_224", {"broad": {}}),
    ],
)
def test_timms_fresh_networks_and_ours_give_one_score(
    name: str, theirs: str, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    other = timm.create_model(theirs).eval()
    model = build_model(zoo_config(name, **options)).eval()
    model.load_state_dict(from_timm(other.state_dict(), model))
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        assert (model(images) - other(images)).abs().max() < 1e-5


def test_timms_weights_of_another_network_are_named() -> None:
    state = timm.create_model("caformer_s18").state_dict()
    with torch.device("meta"):
        smaller = build_model(zoo_config("caformer_s18", num_classes=10))
        other = build_model(zoo_config("skaformer_s18"))
    with pytest.raises(VitnasError, match=r"2 of another shape or kind \(head.fc.fc2.weight"):
        from_timm(state, smaller)
    with pytest.raises(VitnasError, match=r"missing \(stages.2.blocks.0.token_mixer"):
        from_timm(state, other)
