"""timm's weights give timm's scores."""

from __future__ import annotations

import pytest
import timm
import torch

from vitnas.errors import VitnasError
from vitnas.nn import build_model
from vitnas.nn.zoo import zoo_config
from vitnas.nn.zoo.weights import from_timm


@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        ("caformer_s18", "caformer_s18", {}),
        ("convformer_s18", "convformer_s18", {}),
        ("bvit_5m", "deit_tiny_patch16_224", {"broad": {}}),
    ],
)
def test_gives_timms_scores(name: str, theirs: str, options: dict[str, object]) -> None:
    torch.manual_seed(0)
    other = timm.create_model(theirs).eval()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    model = build_model(zoo_config(name, **options)).eval()
    model.load_state_dict(from_timm(other.state_dict(), model))
    images = torch.randn(1, 3, 224, 224)
    torch.testing.assert_close(model(images), other(images), rtol=1e-3, atol=1e-3)


def test_another_network_is_an_error_naming_the_weight() -> None:
    state = timm.create_model("caformer_s18").state_dict()
    with torch.device("meta"):
        smaller = build_model(zoo_config("caformer_s18", num_classes=10))
        other = build_model(zoo_config("skaformer_s18"))
    with pytest.raises(
        VitnasError, match=r"classifier.3.weight is \(1000, 2048\) and not \(10, 2048\)"
    ):
        from_timm(state, smaller)
    with pytest.raises(VitnasError, match=r"stages.2.blocks.0.mixer"):
        from_timm(state, other)
