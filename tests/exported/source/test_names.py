"""Every class has a name of its own, and it says in what alike ones differ."""

from __future__ import annotations

from vitnas.exported.source.mixers import variant
from vitnas.exported.source.names import names_of


def block(norm: str = "layernorm", passes: bool = False) -> object:
    return variant("block", mlp=True, norm=norm, passes=passes)


def test_names() -> None:
    found = names_of([variant("ska"), block()])  # type: ignore[list-item]
    assert list(found.values()) == ["StaticKeyAttention", "Block"]


def test_alike_classes_are_told_apart() -> None:
    several = [block(), block("layernorm_nobias"), block("batchnorm"), block(passes=True)]
    names = list(names_of(several).values())  # type: ignore[arg-type]
    assert names == ["Block", "UnbiasedBlock", "BatchNormBlock", "Block2"]
