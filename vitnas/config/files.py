"""Reading and writing the YAML files that people edit, and naming what is wrong with them.

Only safe loading: a Python tag, a YAML bomb or a duplicate key is refused before anything is
built from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from vitnas.errors import ConfigError, join_address, nearest_name

MAX_BYTES = 1 << 20
MAX_NODES = 100_000
_UNION_LABELS = {"int", "str", "float", "bool", "constrained-int"}

_NUMBER_AS_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")
_Model = TypeVar("_Model", bound=BaseModel)


class RuleError(ValueError):
    """A broken rule, raised inside a pydantic validator; becomes a `ConfigError`."""

    def __init__(self, rule: str, address: str = "", value: Any = None, nearest: Any = None):
        super().__init__(rule)
        self.rule, self.address, self.value, self.nearest = rule, address, value, nearest


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader that also refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key_node.tag != "tag:yaml.org,2002:merge" and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ConfigError: the file is missing, unreadable, too large, not YAML, or not a mapping.
    """
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"larger than {MAX_BYTES >> 20} MiB", file=path)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError((error.strerror or "cannot be read").lower(), file=path) from None
    except UnicodeDecodeError:
        raise ConfigError("is not a text file in UTF-8", file=path) from None
    return parse_yaml(text, file=path)


def parse_yaml(text: str, file: str | Path | None = None) -> dict[str, Any]:
    """Like `read_yaml`, from text that is already in hand."""
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None and _expanded_size(node, {}) > MAX_NODES:
            raise ConfigError(f"its aliases expand to more than {MAX_NODES:,} values", file=file)
        tree = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        address = "" if mark is None else f"line {mark.line + 1}"
        rule = f"not safe YAML: {error.problem or error.context}"
        raise ConfigError(rule, address=address, file=file) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"not YAML: {error}", file=file) from None
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(tree, dict):
        raise ConfigError("must be a mapping of names to values", value=tree, file=file)
    return tree


def write_text(path: str | Path, text: str) -> None:
    """Write beside, then rename: a reader sees the old file or the new one, never half of one."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """As `write_text`, for bytes."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


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
    """Keeps nested blocks flush with the list dash readable and never writes aliases."""

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
    found = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    location = [part for part in found["loc"] if not _is_union_label(part)]
    value = found["input"]
    broken = found.get("ctx", {}).get("error")
    if isinstance(broken, RuleError):
        address = join_address(*location, broken.address)
        return ConfigError(
            broken.rule, address=address, value=broken.value, nearest=broken.nearest, file=file
        )
    address = join_address(*location)
    if found["type"] == "extra_forbidden":
        known = _fields_at(model, location[:-1])
        nearest = nearest_name(str(location[-1]), known)
        rule = "unknown key" if nearest else f"unknown key; known are {', '.join(known)}"
        return ConfigError(rule, address=address, value=value, nearest=nearest, file=file)
    if found["type"] == "missing":
        return ConfigError("is required", address=address, file=file)
    if isinstance(value, str) and _NUMBER_AS_TEXT.fullmatch(value):
        spelling = f"{float(value):.1e}" if "." not in value else value
        spelling = spelling.replace("e-0", "e-").replace("e0", "e+0").replace("e+0", "e+")
        rule = "YAML reads this as text; a number needs a point and a signed exponent"
        return ConfigError(rule, address=address, value=value, nearest=spelling, file=file)
    expected = found.get("ctx", {}).get("expected")
    nearest = None
    if found["type"] == "literal_error" and isinstance(expected, str):
        choices = re.findall(r"'([^']*)'", expected)
        nearest = nearest_name(str(value), choices)
    rule = found["msg"].removeprefix("Input ").replace("Value error, ", "")
    return ConfigError(rule, address=address, value=value, nearest=nearest, file=file)


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


def _expanded_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values `node` stands for once every alias is written out (a bomb has billions)."""
    if id(node) in sizes:
        return sizes[id(node)]
    sizes[id(node)] = MAX_NODES  # an alias to its own parent counts as too many
    size = 1
    if isinstance(node, yaml.SequenceNode):
        size += sum(_expanded_size(child, sizes) for child in node.value)
    elif isinstance(node, yaml.MappingNode):
        size += sum(_expanded_size(child, sizes) for pair in node.value for child in pair)
    sizes[id(node)] = size
    return size
