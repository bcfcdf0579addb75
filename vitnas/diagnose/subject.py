"""The network to diagnose. It is named by the zoo or timm, a model file, or a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from vitnas.config.files import is_folder
from vitnas.config.model import load_config
from vitnas.errors import ConfigError, VitnasError, nearest_name
from vitnas.exported.folder import CONFIG_FILE, LOG_FILE, has_network
from vitnas.exported.hub import read_preprocessing
from vitnas.exported.read import load
from vitnas.nn.model import build_model
from vitnas.nn.weights import load_weights
from vitnas.nn.zoo import zoo_config, zoo_names
from vitnas.nn.zoo.entrypoints import MEAN, STD
from vitnas.training.device import own_randomness, resolve_device

Numbers = Sequence[float]


@dataclass(frozen=True)
class Subject:
    """A network, and what is needed to show it images.

    Attributes:
        network: on the CPU.
        name: for titles and folders.
        weights: the source of its weights, in words.
        image_hw: (H, W) in pixels.
        in_chans: channels of an image.
        mean, std: mean and deviation that normalise its images, for pixels from 0 to 1; None =
            those of the data.
        log: file with the log of its training, or None.
    """

    network: nn.Module
    name: str
    weights: str
    image_hw: tuple[int, int]
    in_chans: int
    mean: Numbers | None = None
    std: Numbers | None = None
    log: Path | None = None


def load_subject(model: str, weights: str | None = None, seed: int = 0) -> Subject:
    """Build or load the network that `model` names.

    Args:
        model: a model of the zoo or of timm, a model file (.yaml), or a folder that `vitnas export`
            or `vitnas train` wrote.
        weights: a safetensors file of a named network or model file; None = random.
        seed: of random weights.

    Raises:
        ConfigError: there is no such network (the error names the nearest), or the weights belong
            to another one.
        DataError: the weights are missing or damaged.
        VitnasError: the folder has no network in it.
    """
    path = Path(model)
    if is_folder(path) and (has_network(path) or not _is_known(model)):
        return _from_folder(path, weights)
    network = _by_name(model, seed)
    how = f"random, seed {seed}"
    if weights is not None:
        load_weights(network, weights)
        how = weights
    name = path.stem if path.suffix == ".yaml" else model
    found = subject_of(network, name, how)
    return replace(found, mean=MEAN, std=STD) if model in zoo_names() else found


def subject_of(network: nn.Module, name: str, weights: str, log: Path | None = None) -> Subject:
    """A subject made from the attributes of `network`."""
    cfg: Any = getattr(network, "pretrained_cfg", None) or {}
    image_hw: Any = getattr(network, "image_hw", None) or _image_hw(network, cfg)
    return Subject(
        network.eval(),
        name,
        weights,
        (int(image_hw[0]), int(image_hw[1])),
        _in_chans(network),
        cfg.get("mean"),
        cfg.get("std"),
        log,
    )


def _in_chans(network: nn.Module) -> int:
    """What the network says, else the channels of its first convolution, else 3."""
    convolutions = (m for m in network.modules() if isinstance(m, nn.Conv2d))
    first: Any = next(convolutions, None)
    found: Any = getattr(network, "in_chans", None)
    return int(found or getattr(first, "in_channels", 3))


def _from_folder(folder: Path, weights: str | None) -> Subject:
    if weights is not None:
        raise VitnasError(f"{folder}: a folder has its own weights; leave --weights out")
    if not has_network(folder):
        raise VitnasError(
            f"{folder}: has no {CONFIG_FILE}; give a folder that vitnas export wrote, or a run "
            "with --trial"
        )
    log = folder / LOG_FILE
    found = log if log.is_file() else None
    subject = subject_of(load(folder), folder.resolve().name, "those of the folder", found)
    how = read_preprocessing(folder, subject.in_chans)
    return subject if how is None else replace(subject, mean=how.mean, std=how.std)


def _by_name(model: str, seed: int) -> nn.Module:
    path = Path(model)
    with own_randomness(seed, resolve_device("cpu")):
        if path.suffix in (".yaml", ".yml"):
            return build_model(load_config(path))
        if model in zoo_names():
            return build_model(zoo_config(model))
        if _is_known(model):
            import timm  # takes long to import, and most subjects do without it

            network: nn.Module = timm.create_model(model)
            return network
    if path.parent != Path():
        raise ConfigError("no such folder or model file", address="MODEL", value=model)
    import timm

    nearest = nearest_name(model, [*zoo_names(), *timm.list_models()])
    rule = "neither a model of the zoo or of timm, nor a folder or model file"
    raise ConfigError(rule, address="MODEL", value=model, nearest=nearest)


def _is_known(model: str) -> bool:
    """Whether it is a name of the zoo or of timm. Names that timm would download are not."""
    if model in zoo_names():
        return True
    if "/" in model or ":" in model:
        return False
    import timm

    return bool(timm.is_model(model))


def _image_hw(network: nn.Module, cfg: Any) -> tuple[int, int]:
    """Image size of a timm network: the one of its patch embedding, else of its weights."""
    found: Any = getattr(getattr(network, "patch_embed", None), "img_size", None)
    if found is None:
        found = tuple(cfg.get("input_size") or (3, 224, 224))[1:]
    return found if isinstance(found, tuple) else (found, found)
