"""`vitnas describe` adds up, and says what passes share."""

from __future__ import annotations

from hypothesis import given, settings

from tests.strategies import model_configs
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.cost.description import describe_json, describe_text


@settings(max_examples=40)
@given(model_configs())
def test_the_rows_add_up(config: ModelConfig) -> None:
    told = describe_json(config)
    rows = told["rows"]
    assert sum(row["flops"] for row in rows) == told["flops"]
    assert sum(row["params"] for row in rows) == told["num_params"]
    assert sum(row["shared_params"] for row in rows) == told["shared_params"]
    places = [(row["stage"], row["kind"]) for row in rows]
    assert len(set(places)) == len(places)


def sret_t(groups: str) -> ModelConfig:
    stages = [
        {
            "token_mixer": "mhsa",
            "depth": depth,
            "embed_dim": dim,
            "mlp_ratio": 3.6,
            "nll_ratio": 1.0,
        }
        for depth, dim in ((2, 64), (5, 128), (3, 256))
    ]
    stem = {"kind": "conv", "stride": 8}
    return validate(
        ModelConfig,
        {"name": "sret_t", "stem": stem, "groups": groups, "residual": "lrc", "stages": stages},
    )


def test_the_text_names_what_passes_share() -> None:
    text = describe_text(sret_t("[8,2][4,1][1,1]"))
    assert text.startswith("sret_t: 2x mhsa 64 h2 [8,2] nll 1 > ")
    assert "1.12 G FLOPs" in text
    assert "4.76 M parameters" in text
    assert "Passes share 3.23 M parameters (68%)" in text
    widths = {len(line) for line in text.splitlines() if line.startswith("---")}
    assert len(widths) == 1
    assert max(map(len, text.splitlines()[3:-2])) <= widths.pop()


def test_one_pass_shares_nothing_and_says_nothing() -> None:
    assert "share" not in describe_text(sret_t("[1][1][1]")).splitlines()[-1]


def test_a_name_cannot_command_the_terminal() -> None:
    tree = {"img_size": 8, "stem": {"stride": 4}, "name": "\x1b[31mred"}
    config = validate(ModelConfig, {**tree, "stages": [{"token_mixer": "mlp", "embed_dim": 8}]})
    assert "\x1b" not in describe_text(config)


def test_stages_are_counted_from_one() -> None:
    """As in a model's card; `--json` has the places of the list."""
    lines = describe_text(sret_t("[1][1][1]")).splitlines()
    shown = {line.split()[0] for line in lines if line.split()[1:2] == ["mhsa"]}
    assert shown == {"1", "2", "3"}
    rows = describe_json(sret_t("[1][1][1]"))["rows"]
    assert {row["stage"] for row in rows if row["kind"] == "mhsa"} == {0, 1, 2}
