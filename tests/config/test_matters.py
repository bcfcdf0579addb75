"""What matters is said once: what is asked makes a difference, what does not is reset."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.config.test_golden import Questions
from tests.config.trees import space_of, stage
from tests.strategies import random_config
from vitnas.config.field_rule import FieldRule
from vitnas.config.matters import NETWORK_RULES, STAGE_RULES
from vitnas.config.model import ModelConfig
from vitnas.config.network import Network
from vitnas.config.parts import Downsampling
from vitnas.config.pattern import MixerPattern
from vitnas.config.space import SearchSpace
from vitnas.config.stage import StageConfig
from vitnas.config.trials import Refused
from vitnas.errors import ConfigError

VALUES: dict[str, list[Any]] = {
    "name": ["a", "b"],
    "img_size": [16, [16, 16], [16, 32]],
    "num_classes": [10],
    "stem": [{"kind": "conv", "stride": 2}, {"kind": "patch", "stride": 4}],
    "stem.kind": ["patch", "conv", "metaformer", "deepvit", "shifted"],
    "stem.stride": [2, 4],
    "stem.convs": [None, 1, 2, 3],
    "stem.pools": [0, 1],
    "stem.width": [4, 6],
    "stem.widths": [None, [4], [8], [12]],
    "downsample": list(get_args(Downsampling)),
    "pooling": ["max", "max_blur"],
    "downsample_expansion": [1.0, 4.0],
    "downsample_se_ratio": [0.0, 0.25],
    "pos_embed": ["learned", "none", "conditional"],
    "permute": ["always", "second", "never"],
    "permute_inverse": [True, False],
    "residual": ["plain", "lrc", "lrc_branch", "lrc_identity", "scale"],
    "branch_scale": [1.0, 2.0],
    "norm": ["layernorm", "layernorm_nobias", "batchnorm"],
    "norm_eps": [1e-6, 1e-5],
    "mlp_act": ["gelu", "star_relu"],
    "mlp_bias": [True, False],
    "proj_drop_rate": [0.0, 0.1],
    "global_pool": [None, "avg", "token", "flatten"],
    "class_token": [False, True],
    "distillation_token": [False, True],
    "head.kind": ["linear", "mlp"],
    "head.mlp_norm_eps": [1e-6, 1e-5],
    "attn_drop_rate": [0.0, 0.1],
    "temperature.kind": ["none", "linear", "learnable"],
    "temperature.last": [0.5, 0.7],
    "reattention_blocks": [0, 1, 2],
    "reattention": [{"norm": "layer"}, {"norm": "batch"}],
    "reattention.norm": ["batch", "layer", "none"],
    "reattention.norm_eps": [1e-6, 1e-5],
    "reattention.source": ["own", "shared"],
    "broad": [{"gamma": 0.0}, {"gamma": 0.5}],
    "broad.gamma": [0.0, 0.5],
    "broad.layers": [None, "all", "stages", "last:1", "last:3", "every:2"],
    "broad.pool": ["official", "layers"],
    "broad.with_v": [True, False],
}
STAGE_VALUES: dict[str, list[Any]] = {
    "token_mixer": [
        *("mhsa", "ska", "cska", "dwconv", "mbconv", "mlp", "pool", "identity"),
        {"pattern": ["dwconv", "mhsa"]},
        {"pattern": ["dwconv"], "last": "mhsa"},
        {"pattern": [{"choice": ["ska", "cska"]}, "mhsa"]},
        {
            "pattern": ["mlp", "pool"],
            "last": {"choice": [None, "ska", "mlp"]},
            "blocks": {"int": [1, 3]},
        },
    ],
    "depth": [1, 2, 3],
    "embed_dim": [8, 16],
    "num_heads": [None, 1, 2],
    "head_dim": [None, 4, 8],
    "attn_dim": [None, 8, 12],
    "passes": [1, 2, 3],
    "groups": [[1], [1, 1], "[1, 1]", [4, 1], "[2]"],
    "loop": ["internal", "external"],
    "mlp_ratio": [1.0, 2.0],
    "nll_ratio": [0.0, 1.0],
    "residual": [None, "plain", "lrc", "lrc_identity", "scale"],
    "norm": [None, "layernorm", "batchnorm"],
    "expansion": [None, 1.0, 2.0, 4.0],
    "kernel_size": [None, 3, 7],
    "se_ratio": [0.0, 0.25],
    "conv_act": ["relu6", "silu"],
    "tokens_dim": [None, 4, 8],
    "qk_scale": [True, False],
    "attn_act": ["softmax", "gelu", "relu", "star_relu"],
    "mask_diagonal": [False, True],
    "key_init": ["trunc_normal", "randn"],
    "q_proj": [True, False],
    "key_kernel": [1, 3, 5],
    "windows": [1, 2, 4],
    "kernel_qkv": [None, 1, 3],
    "stride_kv": [1, 2],
}


EXPANDED = {"downsample_expansion": {"choice": [2.0, 4.0]}}


def random_space(seed: int) -> SearchSpace | None:
    """A space with about half of its values searched; None where no draw of it is a network."""
    rng = random.Random(seed)

    def value(options: list[Any], inside: bool = False) -> Any:
        some = deepcopy(rng.sample(options, rng.randint(1, len(options))))
        if all(isinstance(item, int) for item in some) and len(some) > 1 and rng.random() < 0.3:
            return {"int": [min(some), max(some)]}
        if rng.random() < 0.2 and not inside:
            return {"choice": some, "name": "tied" + repr(some)}
        return {"choice": some} if rng.random() < 0.7 else some[0]

    def some_of(table: dict[str, list[Any]], share: float, skip: tuple[str, ...]) -> dict[str, Any]:
        names = [name for name in table if name not in skip and rng.random() < share]
        rng.shuffle(names)
        return {name: value(table[name]) for name in names}

    count = rng.choice([1, 2, 2, 3])
    model = some_of(VALUES, 0.4, ("num_classes",))
    for address in [name for name in model if "." in name]:
        part, _, name = address.partition(".")
        inner = model.pop(address)
        holder = model.setdefault(part, {})
        if "choice" not in holder and "kind" not in holder:
            holder[name] = inner
    stages = []
    for _ in range(count):
        tree = some_of(STAGE_VALUES, 0.6, ("token_mixer", "embed_dim"))
        tree |= {name: value(STAGE_VALUES[name]) for name in ("token_mixer", "embed_dim")}
        if rng.random() < 0.2:
            tree["groups"] = [value([1, 2, 4]), 1]
        stages.append(tree)
    model["stages"] = stages
    if count == 2 and rng.random() < 0.5:
        for tree in stages:
            tree.pop("groups", None)
            tree.pop("passes", None)
        options = ["[1][1]", "[1,1][1,1]", "[1, 1][1,1]", "[4,1][1,1]", "[2][1]", "[1][2]"]
        model["groups"] = value(options)
    try:
        return space_of(
            {"img_size": 16, "in_chans": 3, "stem": {}, **model},
            data={"name": "imagefolder", "root": "x"},
        )
    except ConfigError:
        return None


class Replay(Questions):
    """Gives the answers of another draw; questions that it was not asked are answered at random."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__(0)
        self.answers = answers

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        drawn = super().suggest_categorical(name, choices)
        if name in self.answers:
            drawn = self.asked[-1][-1] = self.answers[name]
        return drawn

    def suggest_int(self, name: str, low: int, high: int, **more: Any) -> int:
        drawn = super().suggest_int(name, low, high, **more)
        if low <= self.answers.get(name, low - 1) <= high:
            drawn = self.asked[-1][-1] = self.answers[name]
        return drawn


def answers_of(trial: Questions) -> dict[str, Any]:
    return {question[0]: question[-1] for question in trial.asked}


def others(question: list[Any]) -> list[Any]:
    offered = question[1] if len(question) == 3 else range(question[1], question[2] + 1)
    return [value for value in offered if repr(value) != repr(question[-1])]


def key_of(space: SearchSpace, trial: Questions) -> str | None:
    try:
        return space.suggest(trial).key
    except Refused:
        return None


@pytest.mark.slow
@given(st.integers(0, 1 << 30))
@example(100446)  # a stage offers no residual but the network's, which is searched after it
@example(197)  # the number of the pattern's last blocks decides what broad attention collects
@example(1000003)  # a stage offers the network's residual beside the value that this may take
@settings(max_examples=80, deadline=None)
def test_two_draws_that_differ_in_one_asked_value_are_two_networks(seed: int) -> None:
    """The same questions, all answers but one equal: the keys differ."""
    space = random_space(seed)
    if space is None:
        return
    for number in range(6):
        trial = Questions(number)
        key = key_of(space, trial)
        for question in trial.asked if key else []:
            for other in others(question):
                wanted = answers_of(trial) | {question[0]: other}
                again = Replay(wanted)
                changed = key_of(space, again)
                if answers_of(again) == wanted:
                    assert changed != key, f"{question[0]} = {question[-1]} or {other}"


@pytest.mark.slow
def test_the_spaces_of_that_property_are_not_trivial() -> None:
    """So that the property is not held by refusing everything."""
    spaces = [space for seed in range(90) if (space := random_space(seed)) is not None]
    assert len(spaces) > 10
    assert sum(len(space.axes) for space in spaces) > 8 * len(spaces)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"temperature": {"kind": "none", "last": {"choice": [0.5, 0.7]}}}, "temperature.last"),
        ({"temperature": {"kind": "linear", "last": {"choice": [0.5, 0.7]}}}, "temperature.last"),
        ({"stem": {"kind": "conv", "stride": 2, "width": {"choice": [4, 8]}}}, "stem.width"),
        ({"downsample": {"choice": ["conv", "patch"]}}, "downsample"),
        ({"downsample": "mbconv", **EXPANDED}, "downsample_expansion"),
        ({"downsample": "separable", "stages": [stage()] * 2, **EXPANDED}, "downsample_expansion"),
        ({"head": {"mlp_norm_eps": {"choice": [1e-6, 1e-5]}}}, "head.mlp_norm_eps"),
        (
            {"residual": {"choice": ["plain", "lrc"]}, "stages": [stage(residual="lrc")]},
            "residual",
        ),
        ({"name": {"choice": ["a", "b"]}}, "name"),
        ({"broad": {"gamma": 0.0, "pool": {"choice": ["official", "layers"]}}}, "broad.pool"),
        (
            {"stages": [stage(token_mixer="identity", groups=[{"choice": [1, 2]}])]},
            "stages[0].groups[0]",
        ),
    ],
)
def test_what_every_value_leaves_as_it_is_is_not_asked(model: dict[str, Any], name: str) -> None:
    trial = Questions(0)
    space = space_of(model)
    space.suggest(trial)
    assert name in {axis.name for axis in space.axes}
    assert name not in answers_of(trial)


def test_an_axis_waits_for_what_it_depends_on() -> None:
    """`last` stands before `kind` in the file, and is asked where `kind` came out linear."""
    temperature = {"last": {"choice": [0.5, 0.7]}, "kind": {"choice": ["none", "linear"]}}
    space = space_of({"temperature": temperature, "stages": [stage(depth=2)]})
    assert len({config.key for config in space.networks()}) == 3
    assert sum(1 for _ in space.networks()) == 3


@pytest.mark.parametrize(
    ("field", "options", "named"),
    [
        ("mlp_ratio", [1, 1.0], "choice[1] = 1.0"),
        ("groups", [[1], [1, 1], [1]], "choice[2] = [1]"),
        ("residual", [None, "lrc", None], "choice[2]"),
    ],
)
def test_an_option_that_equals_another_one_is_refused(
    field: str, options: list[Any], named: str
) -> None:
    for labels in ({}, {"labels": [f"option {index}" for index in range(len(options))]}):
        with pytest.raises(ConfigError) as refused:
            space_of({"stages": [stage(**{field: {"choice": options, **labels}})]})
        assert f"{named}: stands twice" in str(refused.value)


def test_a_misspelt_field_in_a_rule_is_no_field_that_is_not_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = space_of({"stages": [stage(mlp_ratio={"choice": [1.0, 2.0]})]})
    wrong: FieldRule[Any] = FieldRule("never", lambda stage: stage.embed_dims > 1)
    axis = next(axis for axis in space.axes if axis.field == "mlp_ratio")
    monkeypatch.setitem(axis.__dict__, "rule", wrong)
    with pytest.raises(AttributeError, match="embed_dims"):
        space.suggest(Questions(0))


@given(st.integers(0, 1 << 20))
def test_a_field_that_does_not_matter_can_have_any_value(seed: int) -> None:
    """The key of a random network stays as it is where the table says that a field is unused."""
    config = random_config(seed)
    tree = config.model_dump(mode="json")
    rng = random.Random(seed)
    for index, known in enumerate(config.stages):
        for name, rule in STAGE_RULES.items():
            if name in STAGE_VALUES and not rule.matters(known):
                tree["stages"][index][name] = rng.choice(STAGE_VALUES[name])
    for address, whole in NETWORK_RULES.items():
        part, _, name = address.rpartition(".")
        if address in VALUES and not whole.matters(config):
            (tree[part] if part else tree)[name] = rng.choice(VALUES[address])
    try:
        again = ModelConfig.model_validate(tree)
    except ValueError:  # e.g. two widths where the stem has three convolutions
        return
    assert again.key == config.key


def test_every_rule_is_of_a_field() -> None:
    for address in NETWORK_RULES:
        holder: Any = Network.model_fields
        for part in address.split("."):
            assert part in holder
            holder = getattr(type(holder[part].default), "model_fields", {})
    for name in STAGE_RULES:
        field, _, inside = name.partition(".")
        assert field in StageConfig.model_fields
        assert not inside or (field == "token_mixer" and inside in MixerPattern.model_fields)
