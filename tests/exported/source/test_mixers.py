"""The objects that model.py makes for token mixers."""

from __future__ import annotations

from tests.nn.networks import deep, hierarchy
from vitnas.exported.source.layout import printed
from vitnas.exported.source.mixers import BlockIndex, mixer_call
from vitnas.nn.mixers import Place


def test_a_sliced_attention_has_its_groups_and_its_place() -> None:
    made = mixer_call(Place(hierarchy(), 0, 1))
    assert dict(made.args) == {
        "dim": 16,
        "heads": 2,
        "tokens": 64,
        "groups": (4, 2),
        "index": BlockIndex(1),
    }
    assert dict(made.name.options)["permuted"]


def test_a_temperature_is_a_scale() -> None:
    config = deep(temperature={"kind": "linear", "last": 0.5})
    scales = [dict(mixer_call(Place(config, 0, block)).args).get("scale") for block in range(4)]
    assert scales[0] is None
    assert scales[3] == 8**-0.5 / 0.5


def test_a_block_without_a_map_of_its_own() -> None:
    config = deep(reattention_blocks=1, reattention={"source": "shared"})
    assert mixer_call(Place(config, 0, 3, True)).name.part == "shared"
    assert dict(mixer_call(Place(config, 0, 2)).name.options)["gives_map"]


def test_only_a_grid_that_is_not_square_is_printed() -> None:
    made = mixer_call(Place(hierarchy(), 2, 3))
    assert ", ".join(printed(made, 0)).endswith("(32, hidden=64, kernel=3)")
    made = mixer_call(Place(hierarchy(img_size=(32, 64)), 2, 3))
    assert ", ".join(printed(made, 0)).endswith("(32, hidden=64, kernel=3, grid=(2, 4))")
