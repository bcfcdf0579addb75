"""From a name to a configuration."""

from __future__ import annotations

import pytest

from vitnas.config.files import parse_yaml, validate
from vitnas.config.model import ModelConfig, load_config
from vitnas.errors import ConfigError
from vitnas.nn.zoo import printed, zoo_config, zoo_names, zoo_text
from vitnas.nn.zoo.names import FOLDER, PAPERS, head_comment

FILES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path != PAPERS)


def test_every_file_is_listed_and_every_base_is_a_file() -> None:
    assert sorted(name for name in zoo_names() if printed()[name].base is None) == FILES
    assert {entry.base for entry in printed().values()} - {None} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_a_plain_model_file_with_its_sizes_in_its_head(name: str) -> None:
    """What the head says is what `papers.yaml` and the closed form say."""
    path = FOLDER / f"{name}.yaml"
    assert load_config(path) == zoo_config(name)
    head = [line for line in path.read_text().splitlines(True) if line.startswith("#")]
    assert "".join(head) == head_comment(name)
    assert zoo_text(name) == path.read_text()


@pytest.mark.parametrize("name", zoo_names())
def test_the_text_is_the_network(name: str) -> None:
    assert validate(ModelConfig, parse_yaml(zoo_text(name))) == zoo_config(name)
    assert zoo_config(name).name == name


def test_no_network_has_two_names() -> None:
    keys = {zoo_config(name).key for name in zoo_names()}
    assert len(keys) == len(zoo_names())


def test_options_are_fields() -> None:
    config = zoo_config("sret_t", num_classes=10, img_size=384, groups="[1][1][1]")
    assert (config.num_classes, config.img_size) == (10, 384)
    assert config.stages[0].groups == (1,)
    assert zoo_config("sret_t").num_classes == 1000
    stage = {"token_mixer": "pool", "embed_dim": 8}
    assert len(zoo_config("sret_t", stages=[stage]).stages) == 1


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("skafomer_s18", {}, r"'skafomer_s18'.*nearest: skaformer_s18"),
        ("zzz", {}, r"known are sret_t, "),
        ("sret_t", {"num_clases": 10}, r"num_clases = 10: unknown key \(nearest: num_classes\)"),
        ("sret_t", {"img_size": 100}, r"multiple of 32.*nearest: 96"),
        ("cskaformer_s18", {"class_token": True}, "class token"),
    ],
)
def test_mistakes_name_the_nearest(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        zoo_config(name, **options)
