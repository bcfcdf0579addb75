"""The first weights of a training: those of a folder, or timm's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import timm
from timm.models import split_model_name_tag
from torch import nn

from vitnas.config.design import Design
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError, nearest_name
from vitnas.exported.convert import in_our_words
from vitnas.exported.design import brought_to, read_design
from vitnas.exported.hub import stated_pixels
from vitnas.exported.read import load
from vitnas.nn.graft.networks import classifier_names, timm_pretrained
from vitnas.nn.graft.whole import build_graft
from vitnas.nn.weights import load_state, state_of
from vitnas.training.start import TIMM, FromTimm


@dataclass(frozen=True)
class _Source:
    """A trained network, of the same design as the one that gets its weights.

    Attributes:
        network: at the size that is trained.
        title: where it is from.
        classes: of its classifier.
        names: of these; empty where they are not known.
        stated: `mean` and `std` of the pixels from 0 to 1 that it was trained with, if known.
    """

    network: nn.Module
    title: str
    classes: int
    names: tuple[str, ...] = ()
    stated: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FirstWeights:
    """What a network has got.

    Attributes:
        line: where the weights come from, in one line.
        stated: `mean` and `std` of each channel that they know pixels by, from 0 to 1; what is not
            known is missing.
    """

    line: str
    stated: Mapping[str, Any]


def start_from(
    model: nn.Module, design: Design, start: Path | FromTimm, names: Sequence[str] = ()
) -> FirstWeights:
    """Copy the weights of an exported folder, or of timm, brought to the size of `model`.

    Position tables and static keys are interpolated. A classifier of other classes (another number,
    or other names where both have names) is left out: `model` keeps its own one.

    Args:
        model: what gets the weights.
        design: that of `model`.
        start: an exported network, equal but for size and classes; or weights of timm, for a
            network of timm with grafts (all but its new parts) or one that timm has, too.
        names: of the classes of `model`; none where they are only numbered.

    Raises:
        ConfigError: they are another network's.
        DataError: they are missing or damaged.
    """
    if isinstance(start, FromTimm):
        source, file = _of_timm(design, start), start.weights
    else:
        source, file = _of_folder(design, start), str(start)
    known = not names or not source.names or source.names == tuple(names)
    is_same = source.classes == design.num_classes and known
    own = () if is_same else classifier_names(model)
    load_state(model, state_of(source.network), file or source.title, own)
    line = f"starts from the weights of {source.title}"
    if not is_same:
        line += f" without its classifier of {source.classes:,} other classes"
    return FirstWeights(line, source.stated)


def _of_folder(design: Design, folder: Path) -> _Source:
    theirs = read_design(folder)
    if type(theirs) is not type(design):
        rule = f"holds another network ({theirs.name}); first weights are those of the same one"
        raise ConfigError(rule, file=folder)
    network: Any = load(folder)
    classes, names = network.num_classes, getattr(network, "label_names", ())
    stated = stated_pixels(folder, network)
    if network.image_hw != design.image_hw:
        network = brought_to(network, theirs, design.image_hw)
    return _Source(network, str(folder), classes, names, stated)


def _of_timm(design: Design, start: FromTimm) -> _Source:
    """timm loads its weights into the grafted network's host, or into the network that it has."""
    if isinstance(design, GraftFile):
        return _host(design, start)
    return _same_network(design, start)


def _host(design: GraftFile, start: FromTimm) -> _Source:
    """The graft with timm's weights in all that is not new; timm resizes and drops what it must."""
    ours, theirs = (split_model_name_tag(name)[0] for name in (design.model, start.name))
    if ours != theirs:
        rule = f"is another network than {design.model}"
        raise ConfigError(rule, address="init_from", value=start.text, nearest=f"{TIMM}{ours}")
    network = build_graft(design.model_copy(update={"model": start.name}), True, start.weights)
    stated = timm.get_pretrained_cfg(start.name)
    classes = design.num_classes if stated is None else stated.num_classes
    return _Source(network, start.text, classes, stated=_stated(network))


def _same_network(design: Design, start: FromTimm) -> _Source:
    """One of the papers' models that timm has, too."""
    _check_name(start)
    theirs: Any = timm_pretrained(start.name, start.weights, in_chans=design.in_chans)
    network: nn.Module
    stated = _stated(theirs)
    found, network = in_our_words(theirs)
    if found.image_hw != design.image_hw:
        network = brought_to(network, found, design.image_hw)
    return _Source(network, start.text, found.num_classes, stated=stated)


def _stated(network: nn.Module) -> Mapping[str, Any]:
    return getattr(network, "pretrained_cfg", None) or {}


def _check_name(start: FromTimm) -> None:
    if not timm.is_model(split_model_name_tag(start.name)[0]):
        nearest = nearest_name(start.name, timm.list_models())
        near = nearest and f"{TIMM}{nearest}"
        rule = "timm has no such model"
        raise ConfigError(rule, address="init_from", value=start.text, nearest=near)
