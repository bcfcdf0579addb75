"""What graft.yaml may say, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from vitnas.config.files import dump_yaml, parse_yaml, validate
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError

TREE: dict[str, Any] = {
    "model": "vit",
    "options": {"img_size": [32, 48], "num_classes": 10},
    "grafts": [{"mixer": "cska", "blocks": "last:2"}, {"broad": {"gamma": 0.4}}],
}


def test_a_file_goes_round() -> None:
    grafts = [{"mixer": "cska", "blocks": "last:2"}, {"broad": {"gamma": 0.4}}]
    tree = {"model": "vit", "options": {"img_size": [32, 48], "mlp_ratio": 1.0}, "grafts": grafts}
    file = validate(GraftFile, parse_yaml(dump_yaml(tree)))
    assert [config.to_tree() for config in file.grafts] == grafts
    assert file.options.given() == {"img_size": (32, 48), "mlp_ratio": 1.0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grafts": [{"mixer": "ska", "blok": 1}]}, r"grafts\[0\].blok = 1.*nearest: blocks"),
        ({"grafts": [{"broad": {"gamma": "1e-1"}}]}, r"grafts\[0\].broad.gamma"),
        ({"options": {"pretrained": True}}, "options.pretrained = true: unknown key"),
        ({"options": {"pretrained_cfg": "x"}}, "options.pretrained_cfg"),
        ({"options": {"checkpoint_path": "x"}}, "options.checkpoint_path = 'x'"),
        ({"options": {"model_name": "hf-hub:some/thing"}}, "options.model_name = .*unknown key"),
        ({"options": {"img_siz": 8}}, "options.img_siz = 8: unknown key .nearest: img_size"),
        ({"options": {"norm_layer": {"a": 1}}}, r"options.norm_layer = \{a: 1\}"),
        ({"options": {"embed_dim": 10**12}}, "options.embed_dim = 1000000000000: .*16384"),
        ({"model": 3}, "model = 3"),
    ],
)
def test_a_wrong_file_is_refused_with_its_address(change: dict[str, Any], said: str) -> None:
    tree: dict[str, Any] = {"model": "vit", "grafts": [{"mixer": "ska"}]}
    with pytest.raises(ConfigError, match=said):
        validate(GraftFile, tree | change)


def test_it_says_what_a_model_file_says() -> None:
    file = validate(GraftFile, TREE)
    assert (file.image_hw, file.in_chans, file.num_classes) == ((32, 48), 3, 10)
    assert file.line() == "vit + cska in last:2 + gamma 0.4"
    assert validate(GraftFile, file.to_tree()) == file
    assert file.to_tree() == TREE


def test_without_grafts_it_is_a_network_as_it_is() -> None:
    file = validate(GraftFile, TREE | {"grafts": []})
    assert (file.name, file.line()) == ("vit", "vit")


def test_other_options_are_another_network() -> None:
    file = validate(GraftFile, TREE)
    other = file.changed(img_size=64)
    assert (other.image_hw, other.num_classes, other.grafts) == ((64, 64), 10, file.grafts)
    assert len({file.key, other.key, file.changed(img_size=(32, 48)).key}) == 2
    with pytest.raises(ConfigError, match="img_size = 0"):
        file.changed(img_size=0)
