"""Reading and writing the YAML files that people edit; `findings` says what is wrong with them.

Only safe loading: a Python tag, a YAML bomb or a duplicate key is refused before anything is
built from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from vitnas.config.findings import as_config_error
from vitnas.errors import ConfigError, reason_of, shorten
from vitnas.files import exists as exists
from vitnas.files import is_file as is_file
from vitnas.files import is_folder as is_folder
from vitnas.files import read_input
from vitnas.files import write_bytes as write_bytes
from vitnas.files import write_text as write_text

NETWORK_FORMAT = 1
"""The format of config.yaml and graft.yaml. Files name it once there is a second one."""
MAX_BYTES = 1 << 20
MAX_NODES = 100_000
MAX_LEVELS = 60

_Model = TypeVar("_Model", bound=BaseModel)

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
