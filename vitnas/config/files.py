"""Reading and writing the YAML files that people edit, and naming what is wrong with them.

Only safe loading: a Python tag, a YAML bomb or a duplicate key is refused before anything is
built from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from vitnas.errors import ConfigError, join_address, nearest_name, reason_of, shorten
from vitnas.files import exists as exists
from vitnas.files import read_input
from vitnas.files import write_bytes as write_bytes
from vitnas.files import write_text as write_text

NETWORK_FORMAT = 1
"""The format of config.yaml and graft.yaml. Files name it once there is a second one."""
MAX_BYTES = 1 << 20
MAX_NODES = 100_000
MAX_LEVELS = 60
_UNION_LABELS = {"int", "str", "float", "bool", "constrained-int"}

_NUMBER_AS_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")
NUMBER_AS_TEXT = "YAML reads this as text; a number needs a point and a signed exponent"
_Model = TypeVar("_Model", bound=BaseModel)


class RuleError(ValueError):
    """A broken rule, raised inside a pydantic validator; becomes a `ConfigError`."""

    def __init__(self, rule: str, address: str = "", value: Any = None, nearest: Any = None):
        super().__init__(rule)
        self.rule, self.address, self.value, self.nearest = rule, address, value, nearest


class FieldError(RuleError):
    """A broken rule of one field alone."""


_TAG = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = frozenset(_TAG + name for name in ("null", "bool", "int", "float", "str", "seq", "map"))


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader for what JSON can say: no dates, sets or bytes, no duplicate keys."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int):
                str(value)  # Python refuses more than 4,300 digits
        except (KeyError, IndexError, ValueError):  # PyYAML raises them for `!!bool maybe`
            problem = f"{shorten(node.value)} cannot be read as {node.tag.removeprefix(_TAG)}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key_node.tag == _TAG + "merge":
                continue
            problem = f"the key '{key}' stands twice" if str(key) in seen else None
            if key_node.tag != _TAG + "str":
                kind = key_node.tag.removeprefix(_TAG)
                problem = f"a key is text, and this one is read as {kind}; quote it"
            if problem:
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        if _SURROGATE.search(value):
            problem = "half of a surrogate pair is not a character"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return value


_Loader.yaml_constructors = {
    tag: build
    for tag, build in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag in _PLAIN
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in found if tag != _TAG + "timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ConfigError: the file is missing, unreadable, too large, not YAML, or not a mapping.
    """
    path = Path(path)
    try:
        text = read_input(path, MAX_BYTES).decode("utf-8")
    except OSError as error:
        raise ConfigError(reason_of(error), file=path) from None
    except UnicodeDecodeError:
        raise ConfigError("is not a text file in UTF-8", file=path) from None
    except ValueError:
        raise ConfigError("is not the name of a file", file=path) from None
    return parse_yaml(text, file=path)


def read_network_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a file that describes a network; a file without `format` has format 1.

    Raises:
        ConfigError: as for `read_yaml`, or the file has the format of a later vitnas.
    """
    tree = read_yaml(path)
    found = tree.pop("format", NETWORK_FORMAT)
    if found != NETWORK_FORMAT:
        rule = f"this vitnas reads {NETWORK_FORMAT}; a later one may read this file"
        raise ConfigError(rule, file=path, address="format", value=found)
    return tree


def parse_yaml(text: str, file: str | Path | None = None) -> dict[str, Any]:
    """Like `read_yaml`, from text."""
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        size, levels = (0, 0) if node is None else _expanded(node, {})
        if size > MAX_NODES:
            raise ConfigError(f"more than {MAX_NODES:,} values, once its aliases expand", file=file)
        if levels > MAX_LEVELS:
            raise RecursionError
        tree = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        address = "" if mark is None else f"line {mark.line + 1}"
        rule = f"not safe YAML: {error.problem or error.context}"
        raise ConfigError(rule, address=address, file=file) from None
    except RecursionError:
        raise ConfigError(f"nested more than {MAX_LEVELS} levels deep", file=file) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"not YAML: {error}", file=file) from None
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(tree, dict):
        raise ConfigError("must be a mapping of names to values", value=tree, file=file)
    return tree


def dump_yaml(tree: Mapping[str, Any]) -> str:
    """YAML text: our key order, one stage a line, nothing Python-specific."""
    return yaml.dump(
        dict(tree),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=120,
    )


class _Dumper(yaml.SafeDumper):
    """Writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def validate(model: type[_Model], tree: Any, file: str | Path | None = None) -> _Model:
    """Build `model` from a parsed tree.

    Raises:
        ConfigError: the first thing that is wrong, with its address.
    """
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise as_config_error(error, model, file) from None


def as_config_error(
    error: ValidationError, model: type[BaseModel], file: str | Path | None = None
) -> ConfigError:
    """pydantic's first finding, in our words."""
    found = min(error.errors(), key=_order)
    location, broken = _location(found), found.get("ctx", {}).get("error")
    if isinstance(broken, RuleError):
        address = join_address(*location, broken.address)
        return ConfigError(
            broken.rule, address=address, value=broken.value, nearest=broken.nearest, file=file
        )
    rule, nearest = _problem(found, location, model)
    value = None if found["type"] == "missing" else found["input"]
    return ConfigError(
        rule, address=join_address(*location), value=value, nearest=nearest, file=file
    )


def _location(found: Any) -> list[str | int]:
    """Where a finding is: keys and indices; an unknown key may be spelled like a label."""
    known, unknown = found["loc"], ()
    if found["type"] == "extra_forbidden":
        known, unknown = known[:-1], known[-1:]
    return [*(part for part in known if not _is_union_label(part)), *unknown]


def _problem(found: Any, location: list[str | int], model: type[BaseModel]) -> tuple[str, Any]:
    """What is wrong in a finding, and the nearest valid name or value."""
    kind, value, context = found["type"], found["input"], found.get("ctx", {})
    if kind == "missing":
        return "is required", None
    if kind == "extra_forbidden":
        known = _fields_at(model, location[:-1])
        nearest = nearest_name(str(location[-1]), known)
        return "unknown key" if nearest else f"unknown key; known are {', '.join(known)}", nearest
    if (number := number_as_text(value)) is not None:
        is_whole = kind == "int_type" and number.is_integer()
        return NUMBER_AS_TEXT, str(int(number)) if is_whole else as_number(number)
    rule = _in_yaml_words(found["msg"])
    return f"is null and {rule}" if value is None else rule, _nearest(kind, value, context)


def _nearest(kind: str, value: Any, context: Mapping[str, Any]) -> Any:
    """The nearest of the named values, or the end of the range."""
    expected = context.get("expected")
    if kind == "literal_error" and isinstance(expected, str):
        return nearest_name(str(value), re.findall(r"'([^']*)'", expected))
    if kind in ("greater_than_equal", "less_than_equal"):
        return context.get("ge", context.get("le"))
    return None


def number_as_text(value: Any) -> float | None:
    """The number that `5e6` means, which YAML reads as text; None for all else."""
    if isinstance(value, str) and _NUMBER_AS_TEXT.fullmatch(value):
        number = float(value)
        return number if isfinite(number) else None
    return None


def as_number(number: float) -> str:
    """`number` spelled so that YAML reads it as one: with a point and a signed exponent."""
    digits, _, exponent = f"{number:e}".partition("e")
    digits = digits.rstrip("0")
    return f"{digits}{'0' if digits.endswith('.') else ''}e{int(exponent):+d}"


def _order(finding: Any) -> tuple[bool, bool, int]:
    """The key to sort findings by: unknown keys come first.

    If a value may have several types, there is a finding for each. The type that the value nearly
    has comes first: its finding is not about the type, or it is about an item inside.
    """
    kind, location = finding["type"], finding["loc"]
    is_other = kind.endswith("_type") and any(_is_union_label(part) for part in location)
    return kind != "extra_forbidden", is_other, -len(location) if is_other else 0


def _in_yaml_words(message: str) -> str:
    """pydantic's message without Python's names for things."""
    text = re.sub(r"^(Value error, |(Input|String|Tuple|Value) (?=should))", "", message)
    text = re.sub(r"a valid (tuple|list|array)", "a list", text)
    text = re.sub(r"'\w+' instances are not allowed as a Sequence value", "should be a list", text)
    text = re.sub(r"a valid dictionary( or instance of \w+)?", "a mapping of names to values", text)
    text = text.replace("a valid integer", "a whole number").replace("a valid number", "a number")
    text = text.replace("a valid string", "text").replace("a valid boolean", "true or false")
    return text.replace(" after validation", "")


def _is_union_label(part: str | int) -> bool:
    """pydantic puts the tried type of a union into the location: `int`, `tuple[int, int]`."""
    return isinstance(part, str) and (part in _UNION_LABELS or "[" in part)


def _fields_at(model: type[BaseModel], location: list[str | int]) -> list[str]:
    """The keys that the mapping at `location` may have."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        field = getattr(current, "model_fields", {}).get(part)
        current = _model_inside(field.annotation) if field else None
    return [*getattr(current, "model_fields", {}), *getattr(current, "shorthand_keys", ())]


def _model_inside(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _model_inside(argument)
        if found is not None:
            return found
    return None


def _expanded(node: yaml.Node, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """How many values `node` stands for once every alias is written out (a bomb has billions),
    and how many levels deep they are."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = (MAX_NODES, 1)  # an alias to its own parent counts as too many
    inside: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        inside = node.value
    elif isinstance(node, yaml.MappingNode):
        inside = [part for pair in node.value for part in pair]
    found = [_expanded(child, known) for child in inside]
    size = 1 + sum(count for count, _ in found)
    known[id(node)] = (size, 1 + max((levels for _, levels in found), default=0))
    return known[id(node)]
