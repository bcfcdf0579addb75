"""Weights of the papers' own code, or of timm, as a folder that `load` reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.design import ModelOrGraft
from vitnas.config.files import exists, write_text
from vitnas.config.findings import as_number
from vitnas.config.model import ModelConfig, load_config
from vitnas.errors import ConfigError, nearest_name
from vitnas.exported.card import conversion_card
from vitnas.exported.conversion import Conversion
from vitnas.exported.design import build_design, network_of
from vitnas.exported.folder import CARD_FILE, beside, check_free, sha256_of
from vitnas.exported.write import Content, write_network
from vitnas.nn.zoo import zoo_names
from vitnas.nn.zoo.weights import LAYOUTS, Layout

if TYPE_CHECKING:
    from torch import nn

    from vitnas.nn.model import HybridTransformer
    from vitnas.nn.zoo.weights.checkpoint import ForeignCheckpoint
    from vitnas.nn.zoo.weights.translate import Translation


def convert(
    checkpoint: str | Path,
    layout: str,
    to: str | Path,
    *,
    model: str | None = None,
    img_size: int | None = None,
    command: str | None = None,
    formats: tuple[str, ...] = (),
    notice: Callable[[str], None] = lambda line: None,
) -> Conversion:
    """Write a checkpoint of another code as a folder with weights and config.yaml or graft.yaml.

    The folder is written as a whole; after an error there is none. Checkpoint and network have the
    same tensors; exceptions are listed with their reasons.

    Args:
        checkpoint: a .pth or .pt file, whose code is never run, or a .safetensors file.
        layout: the code from which it comes, a key of `LAYOUTS`.
        to: the folder. It must not exist, or be empty.
        model: a model of the zoo or a model file; None = the network that has these shapes.
        img_size: side of the images in pixels, if the weights do not show it; None = the model's.
        command: the command that made the folder, for the model card; by default this process's.
        formats: which of `vitnas.exported.write.FORMATS` are written, too.
        notice: called with a line on the files of `formats`, and with one on each that is left out.

    Raises:
        ConfigError: there is no such layout or model, or the weights belong to another network. The
            error names missing and unexpected tensors and the likely network.
        DataError: the checkpoint cannot be read, or asks for code.
        RunError: the folder is not empty or cannot be written.
    """
    code, base = _layout(layout), None if model is None else _model(layout, model)
    folder = Path(to)
    check_free(folder)
    from vitnas.nn.zoo.weights.checkpoint import read_checkpoint

    read = read_checkpoint(checkpoint, code.constants)
    try:
        config = _config(code, base, read, img_size)
        conversion, weights = _converted(folder, code, config, read)
    except ConfigError as error:
        at_option = error.address.startswith("--")
        raise error if at_option else error.at(file=read.file) from None
    content = Content(config, weights, f"{config.name} of {code.title}", formats=formats)
    with beside(folder) as draft:
        written = write_network(draft, folder, content)
        write_text(draft / CARD_FILE, conversion_card(conversion, command, written))
    for line in written.lines():
        notice(line)
    return conversion


def _layout(name: str) -> Layout:
    if name not in LAYOUTS:
        rule = f"must be one of {', '.join(LAYOUTS)}"
        raise ConfigError(rule, address="--from", value=name, nearest=nearest_name(name, LAYOUTS))
    return LAYOUTS[name]


def _model(layout: str, name: str) -> ModelConfig:
    """A model of the zoo as the code of `layout` computes it, or a model file without changes."""
    if name in zoo_names():
        return LAYOUTS[layout].zoo(name)
    if Path(name).suffix in (".yaml", ".yml") or exists(name):
        return load_config(name)
    nearest = nearest_name(name.lower(), zoo_names())  # other codes' names have capitals
    rule = "must be a model of the zoo or a model file"
    raise ConfigError(rule, address="--model", value=name, nearest=nearest)


def _config(
    code: Layout, base: ModelConfig | None, read: ForeignCheckpoint, img_size: int | None
) -> ModelOrGraft:
    from vitnas.nn.zoo.weights.find import check_fit, find_config

    if base is None:
        return find_config(code, LAYOUTS.values(), read.state, read.model, img_size)
    shapes = {name: tuple(value.shape) for name, value in read.state.items()}
    config = code.fit(base, shapes, img_size)
    check_fit(code, LAYOUTS.values(), config, read.state)
    return config


def _converted(
    folder: Path, code: Layout, config: ModelOrGraft, read: ForeignCheckpoint
) -> tuple[Conversion, bytes]:
    """The conversion and its weights as bytes. The weights are loaded once as a check."""
    from vitnas.nn.weights import weights_bytes
    from vitnas.nn.zoo.weights.translate import translate

    shapes = {name: tuple(value.shape) for name, value in read.state.items()}
    translation = translate(code, config, read.state)
    model = build_design(config)
    model.load_state_dict(translation.state)
    weights = weights_bytes(model)
    network_of(config, weights)
    conversion = Conversion(
        folder,
        config,
        code,
        read.file,
        sha256_of(read.file),
        read.entry,
        len(read.state) - len(translation.dropped),
        _options(config, code),
        translation.dropped,
        (*code.remarks(config, shapes), *_notes(read, translation)),
    )
    return conversion, weights


def in_our_words(network: nn.Module) -> tuple[ModelConfig, HybridTransformer]:
    """A trained network of timm that the zoo has, too, as ours with its weights.

    Raises:
        ConfigError: the zoo does not have it.
    """
    from vitnas.nn.model import build_model
    from vitnas.nn.zoo.weights.find import find_config
    from vitnas.nn.zoo.weights.translate import translate

    code, state = LAYOUTS["timm"], network.state_dict()
    config = find_config(code, LAYOUTS.values(), state)
    assert isinstance(config, ModelConfig)
    model = build_model(config)
    model.load_state_dict(translate(code, config, state).state)
    return config, model


def _options(config: ModelOrGraft, code: Layout) -> dict[str, str]:
    """Address -> value of the fields that `code` sets and that differ from their defaults."""
    flat = _flat(config.to_tree())
    return {
        name: _spelled(value)
        for name, value in flat.items()
        if name in code.fixed or name.split(".")[-1] in code.fixed
    }


def _spelled(value: Any) -> str:
    if isinstance(value, float):
        return as_number(value) if value < 1e-3 else str(round(value, 6))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    """`{"broad": {"gamma": 0.4}}` -> `{"broad.gamma": 0.4}`."""
    items = enumerate(tree) if isinstance(tree, list) else tree.items()
    flat: dict[str, Any] = {}
    for name, value in items:
        address = f"{prefix}{name}"
        nested = isinstance(value, dict) or (isinstance(value, list) and value and prefix == "")
        flat |= _flat(value, f"{address}.") if nested else {address: value}
    return flat


def _notes(read: ForeignCheckpoint, translation: Translation) -> list[str]:
    notes = [f"{name} is {what}" for name, what in translation.filled.items()]
    if read.others:
        others = " and ".join(f"'{key}'" for key in read.others)
        notes.append(f"the weights are those under '{read.entry}'; the file has {others} too")
    return notes
