"""A network in one line."""

from __future__ import annotations

from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line


def test_stages_stand_from_left_to_right_and_defaults_are_left_out(
    tiny_config: ModelConfig,
) -> None:
    assert one_line(tiny_config) == "1x dwconv 16 > 1x mhsa 32 h2 [2,1] nll 1"


def test_what_holds_for_the_whole_network_comes_last() -> None:
    stage = {"token_mixer": "mhsa", "embed_dim": 32, "depth": 3}
    tree = {"img_size": 8, "stages": [stage], "reattention_blocks": 2, "broad": {"gamma": 0.6}}
    config = ModelConfig.model_validate({**tree, "stem": {"stride": 2}})
    assert one_line(config) == "3x mhsa 32 h1 | re 2 | gamma 0.6"
