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


def test_without_a_norm_the_mean_goes_to_the_classifier_as_it_is() -> None:
    head, x = Head(8, 5, norm="none"), torch.randn(2, 7, 8)
    torch.testing.assert_close(head(x, pre_logits=True), x.mean(dim=1))
    assert not list(head.norm.parameters())


def test_token_takes_the_class_token_as_it_is() -> None:
    head, x = Head(8, 5, pool="token", num_prefix_tokens=1), torch.randn(2, 7, 8)
    assert torch.equal(head(x, pre_logits=True), x[:, 0])
    assert torch.equal(head(x), head.classifier(x[:, 0]))


def test_a_distillation_token_has_a_classifier_of_its_own() -> None:
    head, x = Head(8, 5, pool="token", num_prefix_tokens=2), torch.randn(2, 7, 8)
    second = head.distillation_classifier
    assert second is not None
    both = head.classifier(x[:, 0]), second(x[:, 1])
    assert torch.equal(head(x), (both[0] + both[1]) / 2)
    assert torch.equal(head(x, pre_logits=True), (x[:, 0] + x[:, 1]) / 2)
    head.distilled_training = True
    assert all(map(torch.equal, head(x), both))
    assert torch.equal(head.eval()(x), (both[0] + both[1]) / 2)


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


@pytest.mark.parametrize("pool", ["avg", "token", ""])
def test_a_grid_of_tokens_is_pooled_as_its_tokens(pool: str) -> None:
    head, x = Head(8, 5, pool=pool), torch.randn(2, 6, 8)
    found = head(x.reshape(2, 2, 3, 8)) if pool != "token" else head(x)
    assert torch.equal(found.reshape(head(x).shape), head(x))
    assert head(x).shape == ((2, 6, 5) if not pool else (2, 5))


def test_dropout_comes_before_the_classifier() -> None:
    head, x = Head(8, 5, drop=0.5), torch.randn(64, 7, 8)
    assert (head(x, pre_logits=True) == 0).float().mean().item() == pytest.approx(0.5, abs=0.15)
    assert not (head.eval()(x, pre_logits=True) == 0).any()
