"""Inverted residuals have parameters for what differs in a network, and for nothing else."""

from __future__ import annotations

from typing import Any

from tests.nn.networks import hierarchy
from vitnas.exported.source.convolutions import inverted_facts

PLAIN = {"token_mixer": "mbconv", "embed_dim": 16, "expansion": 2.0}


def facts(*stages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return inverted_facts(hierarchy(stages=stages, groups="[1][1]", **fields))


def test_what_is_the_same_is_a_constant() -> None:
    found = facts(PLAIN, PLAIN)
    assert not found["inverted_between"]
    assert found["inverted_kernel"] == "3, 1, 1"
    assert (found["expands"], found["squeezes"]) == ("all", "none")
    assert found["inverted_call"]("dim", "hidden", "dim", "act") == (
        "inverted_residual(dim, hidden, dim)"
    )


def test_what_differs_is_a_parameter() -> None:
    found = facts(PLAIN, PLAIN | {"kernel_size": 5, "se_ratio": 0.25}, downsample="separable")
    assert found["inverted_kernel"] == "kernel, stride, kernel // 2"
    assert (found["expands"], found["squeezes"]) == ("some", "some")
    assert "stride: int = 1" in found["inverted_residual"]
    assert found["inverted_call"]("dim", "dim", "after", "nn.ReLU", stride=2) == (
        "inverted_residual(dim, dim, after, nn.ReLU, kernel=3, squeezed=0, stride=2)"
    )


def test_without_expansion_there_is_no_width_before() -> None:
    found = facts(PLAIN | {"expansion": 1.0}, PLAIN | {"expansion": 1.0})
    assert found["inverted_residual"].startswith("def inverted_residual(hidden: int, after: int)")
    assert found["inverted_doc"] == "Depthwise 3x3, 1x1 convolution."
