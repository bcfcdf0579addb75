"""What the templates read of the whole network."""

from __future__ import annotations

from tests.exported.source.parity import pyramid
from tests.nn.networks import caformer, deep
from vitnas.exported.source.network import network_facts


def test_numbers_are_text() -> None:
    facts = network_facts(caformer())
    assert facts["norm_eps"] == "1e-6"
    assert facts["stem"] == ["nn.Conv2d(3, 32, 7, 4, padding=2)"]
    assert facts["stem_norm"] == 32
    assert not facts["taps"]


def test_broad_attention_of_one_stage_needs_no_fitting() -> None:
    facts = network_facts(deep(broad={"gamma": 0.4}))
    assert not facts["broad_fits"]
    assert facts["tapped"] is None
    facts = network_facts(pyramid())
    assert facts["broad_pools"]
    assert facts["tapped"] == [3, 4]


def test_the_norm_of_a_class_token_comes_before_the_head() -> None:
    facts = network_facts(deep())
    assert facts["token_norm"]
    assert not facts["head_norm"]
    assert facts["head_doc"] == "The class token, then a linear layer."
