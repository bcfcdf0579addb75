"""Heads."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from vitnas.nn.layers.head import Head


def test_avg_norms_the_mean_of_the_patch_tokens() -> None:
    torch.manual_seed(0)
    head, x = Head(8, 5, num_prefix_tokens=1), torch.randn(2, 7, 8)
    pooled = F.layer_norm(x[:, 1:].mean(dim=1), (8,), eps=1e-6)
    torch.testing.assert_close(head(x, pre_logits=True), pooled)
    torch.testing.assert_close(head(x), head.classifier(pooled))


def test_token_takes_the_class_token_as_it_is() -> None:
    head, x = Head(8, 5, pool="token", num_prefix_tokens=1), torch.randn(2, 7, 8)
    assert torch.equal(head(x, pre_logits=True), x[:, 0])
    assert torch.equal(head(x), head.classifier(x[:, 0]))


def test_mlp_is_timms() -> None:
    from timm.models.metaformer import MlpHead

    torch.manual_seed(0)
    ours, theirs = Head(8, 5, kind="mlp").classifier, MlpHead(8, 5)
    values = dict(zip(theirs.state_dict(), ours.state_dict().values(), strict=True))
    for name, value in theirs.state_dict().items():
        assert values[name].shape == value.shape
    theirs.load_state_dict(values)
    x = torch.randn(3, 8)
    torch.testing.assert_close(ours(x), theirs(x))


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_scores_every_class(kind: str) -> None:
    assert Head(8, 5, kind=kind)(torch.randn(2, 7, 8)).shape == (2, 5)
