"""A model tree whose axes are settled one by one."""

from __future__ import annotations

import pytest

from vitnas.config.axes import Axis, Choice
from vitnas.config.draft import Draft
from vitnas.config.grammar import parse_tree
from vitnas.config.parts import NotSettled

MODEL = {
    "img_size": 8,
    "groups": {"choice": ["[1]", "[2,1]"]},
    "stages": [
        {
            "token_mixer": {"choice": ["dwconv", "mhsa"]},
            "embed_dim": 32,
            "kernel_size": {"choice": [None, 7, 3]},
            "nll_ratio": {"float": [1.0, 2.0]},
        }
    ],
}


@pytest.fixture
def draft() -> Draft:
    return Draft(parse_tree(MODEL))


def taken(draft: Draft, name: str) -> Axis:
    """The pending axis of that name, which is no longer pending."""
    (axis,) = [axis for axis in draft.pending if axis.name == name]
    draft.pending.remove(axis)
    return axis


def test_axes_wait_in_the_order_of_their_turns(draft: Draft) -> None:
    assert [axis.field for axis in draft.pending] == [
        "token_mixer",
        "groups",
        "kernel_size",
        "nll_ratio",
    ]


def test_what_is_not_settled_is_not_known(draft: Draft) -> None:
    kernel = taken(draft, "stages[0].kernel_size")
    assert draft.network.stages[0].embed_dim == 32
    with pytest.raises(NotSettled, match="token_mixer"):
        draft.matters(kernel)
    draft.settle(taken(draft, "stages[0].token_mixer"), "mhsa")
    assert not draft.matters(kernel)


def test_a_settled_value_is_known_at_once(draft: Draft) -> None:
    ratio = taken(draft, "stages[0].nll_ratio")
    with pytest.raises(NotSettled):
        draft.matters(ratio)
    draft.settle(taken(draft, "groups"), "[2,1]")
    assert draft.tree["groups"] == "[2,1]"
    assert draft.network.stages[0].groups == (2, 1)
    assert draft.matters(ratio)


def test_what_is_left_out_has_its_default(draft: Draft) -> None:
    draft.leave_out(taken(draft, "stages[0].kernel_size"))
    assert "kernel_size" not in draft.tree["stages"][0]
    assert draft.network.stages[0].kernel_size is None


def test_null_means_the_mixer_s_own_kernel(draft: Draft) -> None:
    draft.settle(taken(draft, "stages[0].token_mixer"), "dwconv")
    kernel = taken(draft, "stages[0].kernel_size")
    assert isinstance(kernel, Choice)
    assert draft.meanings(kernel) == [7, 7, 3]


def test_axes_inside_a_chosen_option_become_pending() -> None:
    options = [{"token_mixer": "mhsa", "embed_dim": {"choice": [32, 64]}}, {"token_mixer": "pool"}]
    draft = Draft(parse_tree({"img_size": 8, "stages": [{"choice": options}]}))
    (stage,) = draft.pending
    assert isinstance(stage, Choice)
    draft.pending.clear()
    draft.settle(stage, stage.options[0])
    assert [axis.field for axis in draft.pending] == ["embed_dim"]
    assert draft.network.stages[0].token_mixer == "mhsa"


def test_a_draft_leaves_its_template_as_it_is() -> None:
    template = parse_tree(MODEL)
    draft = Draft(template)
    draft.settle(taken(draft, "groups"), "[1]")
    assert isinstance(template["groups"], Choice)
