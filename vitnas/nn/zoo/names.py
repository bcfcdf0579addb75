"""The configuration of each paper's model, by name."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

from pydantic import Field

from vitnas.config.files import dump_yaml, read_yaml, validate
from vitnas.config.model import ModelConfig
from vitnas.config.notation import human
from vitnas.config.parts import Frozen
from vitnas.cost.closed_form import closed_form
from vitnas.errors import ConfigError, nearest_name, shorten

FOLDER = Path(__file__).parent
PAPERS = FOLDER / "papers.yaml"


TrainedBy = Literal["plain", "distilled", "deit", "short"]


class PrintedTop1(Frozen):
    """A top-1 on ImageNet-1k that a paper prints, of a training on nothing but ImageNet-1k.

    Attributes:
        percent: with the paper's own digits.
        where: the tables that print it, and what other tables print.
        training: `plain`: by the labels, with the paper's usual recipe; `distilled`: by a teacher's
            outputs; `deit`: by the labels, with DeiT's recipe in place of the paper's own; `short`:
            with about half of the paper's epochs.
    """

    percent: str
    where: str
    training: TrainedBy = "plain"


class Printed(Frozen):
    """What a paper prints about one network.

    Attributes:
        source: paper and tables.
        params, flops: in millions and in G multiply-adds, with the paper's own digits; None if the
            paper does not give them.
        top1: one for each training; empty if the paper gives none of ImageNet-1k.
        why: the reason why a printed size differs from the network's; empty if they agree.
        base: the network from whose file this one is made by `changes`; None if it has a file.
        changes: address in the base's file -> value; the key in the file is `set`.
    """

    source: str
    params: str | None = None
    flops: str | None = None
    top1: list[PrintedTop1] = Field(default=[])
    why: str = ""
    base: str | None = None
    changes: dict[str, Any] = Field(default={}, alias="set")


@cache
def printed() -> dict[str, Printed]:
    """Name -> entry of `papers.yaml`, in the order of the papers."""
    tree = read_yaml(PAPERS)
    return {name: validate(Printed, entry, file=PAPERS) for name, entry in tree.items()}


def zoo_names() -> list[str]:
    """Names of the papers' models, in the order of the papers."""
    return list(printed())


def zoo_config(name: str, **options: Any) -> ModelConfig:
    """The configuration of a paper's model.

    Args:
        name: one of `zoo_names()`.
        **options: fields of `ModelConfig` with other values, e.g. `num_classes=10, img_size=384`.

    Raises:
        ConfigError: there is no such name or field (the error names the nearest), or the fields
            do not fit together.
    """
    tree = _tree(name)
    if "stages" in options:
        tree.pop("groups", None)
    return validate(ModelConfig, {**tree, **options}, file=None if options else _file(name))


def zoo_text(name: str) -> str:
    """The model file of a network. For a network without a file, it is made from its base."""
    config = zoo_config(name)
    if printed()[name].base is None:
        return _file(name).read_text(encoding="utf-8")
    return head_comment(name) + dump_yaml(config.to_tree())


def head_comment(name: str) -> str:
    """The first lines of a model file: source, size, printed size, and why they differ."""
    entry, cost = printed()[name], closed_form(zoo_config(name))
    lines = [
        f"{name}: {entry.source}.",
        f"{human(cost.num_params)} parameters, {human(cost.flops)} FLOPs; {_figures(entry)}.",
    ]
    if entry.base:
        changes = ", ".join(f"{path} {_shown(value)}" for path, value in entry.changes.items())
        lines.append(f"It is {entry.base} with {changes}.")
    lines += _wrapped(entry.why)
    return "".join(f"# {line}\n" for line in lines)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else shorten(value)


def _figures(entry: Printed) -> str:
    """The sizes that the paper prints, in words."""
    figures = [
        f"{value} {unit}" for value, unit in ((entry.params, "M"), (entry.flops, "G")) if value
    ]
    return "the paper prints " + (" and ".join(figures) or "neither")


def _wrapped(text: str) -> list[str]:
    return wrap(text[:1].upper() + text[1:] + ".", 96) if text else []


def _file(name: str) -> Path:
    return FOLDER / f"{printed()[name].base or name}.yaml"


@cache
def _read(file: Path) -> dict[str, Any]:
    return read_yaml(file)


def _tree(name: str) -> dict[str, Any]:
    entries = printed()
    if name not in entries:
        nearest = nearest_name(name, entries)
        rule = "no such model in the zoo"
        rule += "" if nearest else f"; known are {', '.join(entries)}"
        raise ConfigError(rule, address="name", value=name, nearest=nearest)
    tree = deepcopy(_read(_file(name)))
    tree["name"] = name
    for address, value in entries[name].changes.items():
        put_at(tree, address, value)
    return tree


def put_at(tree: Any, address: str, value: Any) -> None:
    """Set a value in a model file's plain tree: `put_at(tree, "stages.1.token_mixer", "ska")`."""
    *path, last = address.split(".")
    for part in path:
        tree = tree[int(part)] if isinstance(tree, list) else tree.setdefault(part, {})
    tree[last] = value
