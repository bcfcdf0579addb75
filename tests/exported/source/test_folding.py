"""What never differs is no argument."""

from __future__ import annotations

from vitnas.exported.source.folding import (
    are_sized,
    constants_of,
    made_residual,
    parameters_of,
    uses_of,
    with_name,
)
from vitnas.exported.source.layout import Listed, Repeat, call, printed
from vitnas.exported.source.mixers import variant

CONV = variant("dwconv")
BLOCK = variant("block")


def test_the_same_values_are_constants() -> None:
    uses = [{"dim": 16, "hidden": 32, "kernel": 3}, {"dim": 8, "hidden": 16, "kernel": 3}]
    assert constants_of(uses) == {"kernel": 3, "hidden": "2 * dim"}
    assert constants_of([*uses, {"dim": 8, "hidden": 12, "kernel": 5}]) == {}
    assert constants_of([{"before": 8, "hidden": 8}]) == {"hidden": "before"}
    assert "passes" not in constants_of([{"passes": 2}, {}])


def test_objects_have_the_arguments_that_differ() -> None:
    several = [call(CONV, {"dim": dim, "hidden": 2 * dim, "kernel": dim // 4}) for dim in (12, 20)]
    uses = uses_of([call("stage", {"blocks": (Repeat(several[0], "_", 0, 2), several[1])})])
    assert [use["dim"] for use in uses[CONV]] == [12, 20]
    named = with_name(several[0], {CONV: "Conv"}, uses)
    assert printed(named, 0) == ["Conv(12, kernel=3)"]


def test_residuals_are_arguments_where_they_differ() -> None:
    plain, scaled = {"dim": 8, "residual": "plain"}, {"dim": 8, "residual": "scale"}
    both = {BLOCK: [plain, scaled]}
    assert parameters_of(both[BLOCK], {})["residual"] == "type[nn.Module]"
    names = {BLOCK: "Block"}
    assert printed(with_name(call(BLOCK, plain), names, both), 0) == ["Block(8, Residual)"]
    assert printed(with_name(call(BLOCK, scaled), names, both), 0) == ["Block(8, ScaledResidual)"]
    assert are_sized(both)
    assert not are_sized({BLOCK: [scaled]})
    assert (made_residual(True, None), made_residual(False, "lrc")) == (
        "residual(dim)",
        "LearnedResidual()",
    )
    assert made_residual(False, "plain") == ""


def test_a_parameter_with_a_default_is_the_last() -> None:
    uses = [{"dim": 8, "mixes": True, "hidden": 9}, {"dim": 8, "mixes": False, "hidden": 16}]
    assert list(parameters_of(uses, {})) == ["dim", "hidden", "mixes"]


def test_behind_any_number_of_arguments_are_those_with_a_name() -> None:
    assert list(parameters_of([{"passes": 2, "blocks": ()}], {})) == ["blocks", "passes"]
    assert list(parameters_of([{"passes": 2, "dim": 8}], {})) == ["passes", "dim"]
    layers = Listed((Repeat(call("NonLinearLayer", {}), "_", 0, 2),))
    loop = {"blocks": (), "nlls": layers, "passes": 2}
    found = parameters_of([loop, {"blocks": (), "passes": 3}], {})
    assert list(found) == ["blocks", "passes", "nlls"]
    assert found["nlls"] == "Sequence[nn.Module] = ()"
    assert parameters_of([loop], {})["nlls"] == "Sequence[nn.Module]"
