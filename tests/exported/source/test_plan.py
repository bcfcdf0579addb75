"""Stages, blocks and taps in their order."""

from __future__ import annotations

from tests.nn.networks import deep, hierarchy
from vitnas.exported.source.layout import Call, Repeat
from vitnas.exported.source.plan import stage_calls, steps_of


def blocks(stage: Call) -> list[Call | Repeat]:
    return list(dict(stage.args)["blocks"])


def test_equal_blocks_are_one_repeat() -> None:
    (stage,) = stage_calls(deep(reattention_blocks=1))
    several, last = blocks(stage)
    assert isinstance(several, Repeat)
    assert (several.start, several.stop, several.variable) == (0, 3, "_")
    assert isinstance(last, Call)


def test_blocks_with_permutations_are_counted_through_the_network() -> None:
    first, *_ = stage_calls(hierarchy())
    (several,) = blocks(first)
    assert isinstance(several, Repeat)
    assert (several.start, several.stop, several.variable) == (0, 2, "index")


def test_only_passes_that_differ_are_told_apart() -> None:
    steps = {"mixer_step": True, "block_step": True, "loop_step": True, "loop_nlls": False}
    assert steps_of(hierarchy()) == steps
    assert not any(steps_of(deep()).values())


def test_a_loop_has_its_blocks_and_the_layers_after_its_passes() -> None:
    looped = {"token_mixer": "dwconv", "embed_dim": 16, "depth": 3}
    stage = looped | {"loop": "external", "nll_ratio": 1.0}
    config = hierarchy(stages=[stage, stage], groups="[1,1][1,1]")
    assert steps_of(config)["loop_nlls"]
    first, _ = stage_calls(config)
    loop = dict(first.args)["blocks"]
    args = dict(loop.args)
    (several,) = args["blocks"]
    assert (several.stop, several.item.name.part) == (3, "block")
    (nlls,) = args["nlls"].items
    assert (nlls.stop, nlls.item.name.part, args["passes"]) == (2, "nll", 2)
