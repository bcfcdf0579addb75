"""Axes: where they stand, when they take their turn, and what shows each of their options."""

from __future__ import annotations

from vitnas.config.axes import Choice, IntRange, all_axes, axes_in, probes

SIZES = Choice(("stages", 0, "embed_dim"), "stages[0].embed_dim", (32, 64), (32, 64))
DEPTH = IntRange(("stages", 0, "depth"), "stages[0].depth", 1, 3)
GAMMA = Choice(("broad", "gamma"), "broad.gamma", (0.0, 0.4), (0.0, 0.4))
TREE = {"broad": {"gamma": GAMMA}, "stages": [{"embed_dim": SIZES, "depth": DEPTH}]}


def test_an_axis_knows_its_field_and_its_stage() -> None:
    assert (SIZES.field, SIZES.stage) == ("embed_dim", 0)
    assert (GAMMA.field, GAMMA.stage) == ("gamma", None)


def test_the_structure_takes_its_turn_before_what_depends_on_it() -> None:
    turns = [
        Choice(path, ".".join(map(str, path)), (1, 2), (1, 2)).turn
        for path in (
            ("img_size",),
            ("stages", 0, "token_mixer"),
            ("groups",),
            ("stages", 0, "num_heads"),
            ("reattention_blocks",),
            ("reattention", "norm"),
        )
    ]
    assert turns == [0, 1, 2, 3, 4, 5]


def test_axes_inside_options_are_found() -> None:
    inside = IntRange(("stages", 0, "depth"), "stages[0]#1/stages[0].depth", 1, 2)
    stages = Choice(("stages", 0), "stages[0]", ({"depth": 1}, {"depth": inside}), ("0", "1"))
    assert list(axes_in({"stages": [stages]})) == [stages]
    assert list(all_axes({"stages": [stages]})) == [stages, inside]


def test_probes_show_every_option_and_both_ends() -> None:
    shown = [
        (tree["broad"]["gamma"], tree["stages"][0]["embed_dim"], tree["stages"][0]["depth"])
        for tree in probes(TREE)
    ]
    assert shown[0] == (0.0, 32, 1), "the first values of all"
    assert {row[0] for row in shown} == {0.0, 0.4}
    assert {row[1] for row in shown} == {32, 64}
    assert {row[2] for row in shown} == {1, 3}
    assert all(sum(a != b for a, b in zip(row, shown[0], strict=True)) <= 1 for row in shown)
