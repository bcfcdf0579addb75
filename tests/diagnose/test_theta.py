"""Theta of re-attention is read from our networks and from grafts."""

from __future__ import annotations

import pytest
import timm
import torch

from tests.diagnose.networks import MHSA, network, pictures
from vitnas.diagnose.survey import survey
from vitnas.diagnose.theta import from_others, theta_finding
from vitnas.errors import VitnasError
from vitnas.nn.graft import graft


def test_what_comes_from_other_heads() -> None:
    assert from_others(torch.eye(3)) == 0
    assert from_others(torch.tensor([[1.0, -1.0], [0.0, 2.0]])) == pytest.approx(0.25)


def test_a_block_of_two_passes_has_one_theta() -> None:
    model = network(MHSA | {"depth": 2, "passes": 2}, reattention_blocks=1)
    found = survey(model, pictures(1))
    finding = theta_finding(found.places, found.layers)
    (only,) = finding.numbers["layers"]
    assert only["layer"] == "block 2, pass 1"
    theta = model.stages[0].blocks[1].block.mixer.reattention.theta.weight.flatten(1)
    assert torch.tensor(only["theta"]) == pytest.approx(theta.detach(), abs=1e-6)
    assert finding.figure is not None


def test_a_network_without_re_attention_has_none() -> None:
    found = survey(network(MHSA), pictures(1))
    with pytest.raises(VitnasError, match="no block of this network has re-attention"):
        theta_finding(found.places, found.layers)


def test_a_grafts_theta_starts_as_the_identity() -> None:
    host = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=3)
    graft(host, reattention_blocks=1)
    found = survey(host.eval(), pictures(1, 3, 32))
    (only,) = theta_finding(found.places, found.layers).numbers["layers"]
    assert only["theta"] == torch.eye(3).tolist()
    assert only["from_others"] == 0
