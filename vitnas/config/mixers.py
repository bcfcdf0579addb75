"""Token mixers: what must be known of each without building it; an entry for each of vitnas.

Other packages' mixers say the same of themselves, in the class attribute `facts`. Their classes are
imported when a configuration that names them is read (see `vitnas.plugins`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import core_schema

from vitnas import plugins
from vitnas.config.files import validate
from vitnas.config.findings import FieldError, RuleError
from vitnas.errors import ConfigError

GROUP = "vitnas.mixers"
"""The entry point group under which packages announce mixers."""

Formula = Callable[[Any, int, int], tuple[int, Sequence[int]]]
"""`formula(config, stage, N)`: parameters of a mixer, and its FLOPs in each pass, of one image."""


class MixerOptions(BaseModel):
    """Fields of a mixer's own: subclass it, and give each field a type, a default and a range."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class MixerFacts:
    """What the rest of vitnas asks of a token mixer.

    Attributes:
        fields: fields of a stage that the mixer reads, beside its width and heads. Others are
            neither searched nor part of the network's key.
        groups: whether tokens can be sliced into groups: `sliced`, `refused` (the mixer is bound
            to their positions), or `ignored` (slicing changes nothing).
        heads: whether it has heads, so that `num_heads` and `head_dim` matter.
        maps: whether heads have softmax maps, with a temperature and dropout (`AttentionMixer`).
        taps: whether it gives query, key and value, which broad attention collects.
        reattention: whether its maps can be mixed across heads.
        shares_maps: whether a block may use an earlier block's maps (`reattention.source: shared`).
        grid: whether it reads tokens as a picture, in which a class token has no place.
        whole: whether it is a whole block with batch norms of its own: no norm stands before it, no
            MLP after it, and it is passed once.
        skips: whether its block returns the tokens as they are.
        kernel_size, expansion: the defaults, of a mixer with them.
        options: fields of its own, which stand under `mixer_options`; None = there are none.
        cost: its closed form; None = it is built and counted, which is slower.
    """

    fields: tuple[str, ...] = ()
    groups: Literal["sliced", "refused", "ignored"] = "refused"
    heads: bool = False
    maps: bool = False
    taps: bool = False
    reattention: bool = False
    shares_maps: bool = False
    grid: bool = False
    whole: bool = False
    skips: bool = False
    kernel_size: int = 7
    expansion: float = 2.0
    options: type[BaseModel] | None = None
    cost: Formula | None = None


@dataclass(frozen=True)
class Mixer:
    """A token mixer by name.

    Attributes:
        path: `module:Class`.
        facts: what has to be known of it.
        mark: in plots: colour, matplotlib's marker and plotly's symbol. Colours are readable on
            white and on near-black; mixers are told apart by shape as well.
    """

    path: str
    facts: MixerFacts = MixerFacts()
    mark: tuple[str, str, str] = ("#8b8f97", "P", "cross")


_ATTENTION = MixerFacts(
    heads=True,
    maps=True,
    taps=True,
    fields=("attn_dim", "qk_scale", "attn_act", "mask_diagonal", "kernel_qkv", "stride_kv"),
)
_STATIC_KEY = replace(_ATTENTION, fields=(*_ATTENTION.fields, "key_init", "q_proj", "windows"))

MIXERS: dict[str, Mixer] = {
    "mhsa": Mixer(
        "vitnas.nn.mixers.mhsa:MultiHeadSelfAttention",
        replace(_ATTENTION, groups="sliced", reattention=True, shares_maps=True),
        ("#3b78d8", "o", "circle"),
    ),
    "ska": Mixer(
        "vitnas.nn.mixers.ska:StaticKeyAttention", _STATIC_KEY, ("#0f9d94", "s", "square")
    ),
    "cska": Mixer(
        "vitnas.nn.mixers.cska:ConvStaticKeyAttention",
        replace(_STATIC_KEY, taps=False, fields=(*_STATIC_KEY.fields, "key_kernel")),
        ("#8059d6", "D", "diamond"),
    ),
    "dwconv": Mixer(
        "vitnas.nn.mixers.dwconv:SeparableConv",
        MixerFacts(fields=("expansion", "kernel_size"), grid=True),
        ("#e0762a", "^", "triangle-up"),
    ),
    "mbconv": Mixer(
        "vitnas.nn.mixers.mbconv:InvertedResidual",
        MixerFacts(
            fields=("expansion", "kernel_size", "se_ratio", "conv_act"),
            grid=True,
            whole=True,
            kernel_size=3,
            expansion=4.0,
        ),
        ("#b58a00", "h", "hexagon"),
    ),
    "mlp": Mixer(
        "vitnas.nn.mixers.mlp:TokenMlp",
        MixerFacts(fields=("tokens_dim",)),
        ("#c43d86", "v", "triangle-down"),
    ),
    "pool": Mixer(
        "vitnas.nn.mixers.pool:Pool",
        MixerFacts(fields=("kernel_size",), grid=True, kernel_size=3),
        ("#7c9a22", "p", "pentagon"),
    ),
    "identity": Mixer(
        "vitnas.nn.mixers.identity:Identity", MixerFacts(groups="ignored"), ("#8b8f97", "X", "x")
    ),
    "skip": Mixer(
        "vitnas.nn.mixers.skip:Skip",
        MixerFacts(whole=True, skips=True),
        ("#a0694b", "d", "diamond-tall"),
    ),
}
"""The mixers of vitnas. Each has a file in `nn/mixers/` and a formula in `cost/mixers.py`."""

StaticKeyName = Literal["ska", "cska"]
"""Those with a static key, which a graft can put in an attention's place."""


_UNKNOWN = MixerFacts(groups="ignored", maps=True, taps=True, reattention=True, shares_maps=True)
"""Of a mixer that is not looked up: nothing is refused that its network may have."""


def mixer_named(name: str) -> Mixer:
    """The mixer that a configuration names; another package's is imported.

    Inside `plugins.closed()` nothing is imported: a mixer that was not imported before has the
    facts `_UNKNOWN`.

    Raises:
        ConfigError: there is none of that name, or what it names is no token mixer.
    """
    found = MIXERS.get(name) or _IMPORTED.get(name)
    if found is None and plugins.is_closed():
        return Mixer(name, _UNKNOWN)
    if found is None:
        path = plugins.path_of(name, GROUP, MIXERS, what="token mixer")
        found = _IMPORTED[name] = _imported(path)
    return found


_IMPORTED: dict[str, Mixer] = {}


def _imported(path: str) -> Mixer:
    found = plugins.load(path)
    facts = getattr(found, "facts", None)
    if not isinstance(found, type) or not isinstance(facts, MixerFacts):
        raise ConfigError("is no subclass of vitnas.nn.mixers.TokenMixer", value=path)
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        rule = f"has no method {', '.join(missing)} of its own: see vitnas.nn.mixers.TokenMixer"
        raise ConfigError(rule, value=path)
    place = f"{found.__module__}:{found.__name__}"
    return Mixer(place if found.__name__ == found.__qualname__ else path, facts)


def checked_name(name: str) -> str:
    """`name`, if there is such a mixer; for the field `token_mixer`."""
    if name not in MIXERS:
        try:
            mixer_named(name)
        except ConfigError as error:
            raise RuleError(error.rule, "", name, error.nearest) from None
    return name


MixerName = Annotated[str, AfterValidator(checked_name)]


def facts_of(names: Sequence[str]) -> MixerFacts:
    """What the blocks of a stage with these mixers have: a fact is true if it is of one of them.

    A default that is not the same for all that read the field is 0.
    """
    if len(names) == 1:
        return mixer_named(names[0]).facts
    all_facts = [mixer_named(name).facts for name in names]
    mixing = [facts for facts in all_facts if facts.reattention]
    options = [facts.options for facts in all_facts if facts.options]
    groups = {facts.groups for facts in all_facts}
    of_any: dict[str, Any] = {
        fact: any(getattr(facts, fact) for facts in all_facts) for fact in _OF_ANY
    }
    return MixerFacts(
        fields=tuple(dict.fromkeys(field for facts in all_facts for field in facts.fields)),
        groups=next(kind for kind in ("sliced", "refused", "ignored") if kind in groups),
        **of_any,
        shares_maps=bool(mixing) and all(facts.shares_maps for facts in mixing),
        whole=all(facts.whole for facts in all_facts),
        skips=all(facts.skips for facts in all_facts),
        kernel_size=_common_default(all_facts, "kernel_size"),
        expansion=_common_default(all_facts, "expansion"),
        options=options[0] if len(options) == 1 else None,
    )


_OF_ANY = ("heads", "maps", "taps", "reattention", "grid")


def _common_default(all_facts: Sequence[MixerFacts], field: str) -> Any:
    values = {getattr(facts, field) for facts in all_facts if field in facts.fields}
    return values.pop() if len(values) == 1 else 0


class Given(dict[str, Any]):
    """Options as they are given; hashable, as the configuration that holds them is hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True))

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        return core_schema.dict_schema(core_schema.str_schema())


def checked_options(name: str, given: Mapping[str, Any]) -> Given:
    """The options of the mixer `name` that differ from its defaults.

    Raises:
        FieldError: the mixer has no such option, or a value is out of its range.
    """
    if plugins.is_closed() or not given:
        return Given(given)
    options = mixer_named(name).facts.options
    if options is None:
        rule = (
            f"{name} has no options; in a choice they stand with their mixer: {{mixer: NAME, ...}}"
        )
        raise FieldError(rule, "", dict(given))
    try:
        found = validate(options, given)
    except ConfigError as error:
        raise FieldError(error.rule, error.address, error.value, error.nearest) from None
    return Given(found.model_dump(mode="json", exclude_defaults=True))


def unpacked(stage: Any) -> Any:
    """A stage's tree with `token_mixer: {mixer: NAME, ...}` as a name and `mixer_options`.

    So a choice between mixers can offer each of them with options of its own.
    """
    given = stage.get("token_mixer") if isinstance(stage, dict) else None
    if not isinstance(given, dict) or "mixer" not in given:
        return stage
    if "mixer_options" in stage:
        rule = "options stand here and under token_mixer; give them in one place"
        raise RuleError(rule, "mixer_options", stage["mixer_options"])
    options = {key: value for key, value in given.items() if key != "mixer"}
    return {**stage, "token_mixer": given["mixer"], "mixer_options": options}


def names_with(fact: str) -> list[str]:
    """The mixers of vitnas for which a fact is true."""
    return [name for name, mixer in MIXERS.items() if getattr(mixer.facts, fact)]


def name_of(kind: type) -> str:
    """The name of a mixer of vitnas in the table; for another class its own name."""
    path = f"{kind.__module__}:{kind.__qualname__}"
    return next((name for name, mixer in MIXERS.items() if mixer.path == path), kind.__name__)


def mixer_name(value: Any) -> str:
    """The name in a `token_mixer`, which may be `{mixer: NAME, ...}`; else an empty text."""
    name = value.get("mixer") if isinstance(value, dict) else value
    return name if isinstance(name, str) else ""


def short_name(name: str) -> str:
    """For a line of text: a class's name without its module."""
    return name.rpartition(":")[2]
