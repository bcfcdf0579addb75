"""What the templates read of the whole network."""

from __future__ import annotations

import pytest

from tests.exported.source.parity import pyramid
from tests.nn.networks import caformer, deep, hierarchy
from vitnas.exported.source.network import _chosen, network_facts
from vitnas.exported.source.statements import statements


def test_numbers_are_text() -> None:
    facts = network_facts(caformer())
    assert facts["norm_eps"] == "1e-6"
    assert facts["stem"] == ["        self.conv = nn.Sequential(nn.Conv2d(3, 32, 7, 4, padding=2))"]
    assert facts["stem_norm"] == 32
    assert not facts["taps"]


def test_broad_attention_of_one_stage_needs_no_fitting() -> None:
    facts = network_facts(deep(broad={"gamma": 0.4}))
    assert not facts["broad_fits"]
    assert facts["tapped"] == "taps"
    facts = network_facts(pyramid())
    assert facts["broad_pools"]
    assert facts["tapped"] == "taps[1:]"


@pytest.mark.parametrize(
    ("indices", "written"),
    [
        ([0, 1, 2, 3, 4, 5], "taps"),
        ([3, 4, 5], "taps[3:]"),
        ([1, 3, 5], "taps[1::2]"),
        ([0, 2, 4], "taps[::2]"),
        ([5], "taps[-1]"),
        ([2], "taps[2]"),
        ([0, 2], "[taps[0], taps[2]]"),
        ([0, 1, 2, 3, 4], "[taps[index] for index in (0, 1, 2, 3, 4)]"),
    ],
)
def test_collected_layers_are_a_slice_where_they_can_be(indices: list[int], written: str) -> None:
    assert _chosen(indices, 6) == written


def test_a_plain_head_is_a_sequence() -> None:
    facts = network_facts(deep())
    (lines,) = statements(facts["plain_head"])
    assert lines == ["        self.head = named(classifier=nn.Linear(24, 7))"]
    assert facts["plain_pool"] == "%s[:, 0]"
    (lines,) = statements(network_facts(deep(head={"kind": "mlp"}))["plain_head"])
    assert lines == [
        "        layers = [nn.Linear(24, 96), SquaredReLU(), nn.LayerNorm(96, eps=1e-6)]",
        "        layers += [nn.Linear(96, 7)]",
        "        self.head = named(classifier=nn.Sequential(*layers))",
    ]


def test_the_norm_of_a_class_token_comes_before_the_head() -> None:
    facts = network_facts(deep())
    assert facts["token_norm"]
    assert facts["plain_pool"] == "%s[:, 0]"


def test_a_pass_with_one_group_keeps_the_order() -> None:
    stage = {"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 2}

    def orders(groups: str) -> object:
        return network_facts(hierarchy(stages=[stage, stage], groups=groups))["orders"]

    assert orders("[4,2][4,2]") == "all"
    assert orders("[4,1][1,1]") == "first"
    assert orders("[4,1][2,1]") == "some"
    assert orders("[1,4][1,1]") == "some"
