"""The network that a user names: a folder, a program's file, or a name of the zoo or of timm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vitnas.config.files import exists
from vitnas.diagnose.subject import load_subject, subject_of
from vitnas.environment import only_errors_of
from vitnas.errors import ConfigError, DataError, VitnasError, nearest_name, printable
from vitnas.exported.folder import GRAFT_FILE, WEIGHTS_FILE, has_network, why_no_network
from vitnas.exported.held_out import HeldOut
from vitnas.exported.hub import check_weights
from vitnas.exported.preprocessing import Preprocessing, of_timm
from vitnas.nn.weights import load_weights, shapes
from vitnas.nn.zoo import zoo_names
from vitnas.scoring.classifier import Classifier, count_classes, facts_beside
from vitnas.scoring.programs import RUNTIMES, open_program
from vitnas.training.device import resolve_device

_WEIGHTS = (".pth", ".pt", ".bin", ".safetensors", ".tar", ".ckpt")


def load_classifier(
    model: str | Path,
    device: str = "auto",
    weights: str | None = None,
    channels: int | None = None,
) -> Classifier:
    """The network that `model` names, with trained weights.

    Args:
        model: a folder that vitnas wrote, a .onnx or .pt2 file, or a name of timm or the zoo.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        weights: of a name, a safetensors file; None: timm's own, from its hub. In a folder that
            vitnas wrote, its files say what the classes are called and how images are prepared.
        channels: of the images, for a name with `weights`; None: its own.

    Raises:
        VitnasError: there is no such network, or its weights are missing, damaged or another's.
    """
    place, path, text = resolve_device(device), Path(model), str(model)
    is_there = exists(text)
    if weights is not None and (is_there or path.suffix in RUNTIMES):
        raise VitnasError(f"{text}: has its own weights; leave --weights out")
    if is_there and path.is_dir():
        return _of_folder(path, place)
    if path.suffix in RUNTIMES:
        return open_program(path, device)
    if path.suffix in _WEIGHTS and not has_network(path.parent):
        raise VitnasError(
            f"{text}: is a file of weights; vitnas convert makes a folder of it, or give a timm "
            "model's name and --weights"
        )
    if is_there:
        raise VitnasError(f"{text}: {_why_no_file(path)}")
    return _of_name(text, place, weights, channels)


def _why_no_file(path: Path) -> str:
    if has_network(path.parent):
        return f"is one file of a network; give its folder, {path.parent}"
    return "is neither a folder with a network nor a .onnx or .pt2 file"


def _of_folder(folder: Path, device: torch.device) -> Classifier:
    if not has_network(folder):
        raise VitnasError(f"{folder}: {why_no_network(folder)}")
    subject = load_subject(str(folder))
    shape = (subject.in_chans, *subject.image_hw)
    classes = count_classes(str(folder), subject.network, torch.zeros(2, *shape))
    preprocessing, names, held = facts_beside(folder, str(folder), shape, classes)
    if preprocessing is None and (folder / GRAFT_FILE).is_file():
        preprocessing = of_timm(getattr(subject.network, "pretrained_cfg", None) or {}, shape[0])
    network, hw = subject.network.to(device), subject.image_hw
    return Classifier(
        str(folder), "PyTorch", network, shape[0], hw, classes, device, preprocessing, names, held
    )


def _of_name(
    name: str, device: torch.device, weights: str | None, channels: int | None
) -> Classifier:
    _check_name(name)
    if weights is None and name in zoo_names():
        rule = "a model of the zoo has no trained weights of its own; give a folder, or --weights"
        raise ConfigError(rule, address="MODEL", value=name)
    network = _pretrained(name) if weights is None else _built(name, weights, channels)
    subject = subject_of(network, name, "")
    sides = (subject.in_chans, *subject.image_hw)
    classes = count_classes(name, network, torch.zeros(2, *sides))
    cfg: Any = getattr(network, "pretrained_cfg", None) or {}
    how: Preprocessing | None = None
    names: tuple[str, ...] = ()
    held: HeldOut | None = None
    if weights is None:
        names = _imagenet_names(network, cfg, classes)
    elif Path(weights).name == WEIGHTS_FILE:
        check_weights(Path(weights).parent)
        how, names, held = facts_beside(Path(weights).parent, name, sides, classes)
    how, hw = how or of_timm(cfg, sides[0]), subject.image_hw
    return Classifier(
        name, "PyTorch", network.to(device), sides[0], hw, classes, device, how, names, held
    )


def _check_name(name: str) -> None:
    """Refuse what is no name of the zoo or timm; names that timm would download are none."""
    import timm

    if name in zoo_names() or (
        not set(name) & set("/:") and bool(timm.is_model(name.split(".")[0]))
    ):
        return
    if Path(name).parent != Path():
        raise ConfigError("no such folder or file", address="MODEL", value=name)
    nearest = nearest_name(name, [*zoo_names(), *timm.list_models()])
    rule = "neither a folder, a .onnx or .pt2 file, nor a model of timm"
    raise ConfigError(rule, address="MODEL", value=name, nearest=nearest)


def _pretrained(name: str) -> nn.Module:
    import timm

    try:
        with only_errors_of("huggingface_hub"):  # which logs each of its retries
            network: nn.Module = timm.create_model(name, pretrained=True)
    except Exception as error:  # the hub, its client, timm and safetensors each have their own
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{name}: timm cannot get its weights: {printable(why)[:200]}; name a safetensors "
            "file with them in --weights"
        ) from None
    return network.eval()


def _built(name: str, weights: str, channels: int | None) -> nn.Module:
    """A network by its name with weights of a file, and with as many classes as these."""
    import timm

    from vitnas.nn.zoo.entrypoints import timm_names

    known = {} if channels is None else {"in_chans": channels}
    network = timm.create_model(timm_names.get(name, name), **known)
    classes = _rows(network.get_classifier(), network, shapes(weights))
    if classes not in (None, network.num_classes):
        network.reset_classifier(classes)
    load_weights(network, weights)
    built: nn.Module = network.eval()
    return built


def _rows(classifier: Any, network: nn.Module, stored: Mapping[str, Sequence[int]]) -> int | None:
    """How many scores the weights of a file give; None if they have none for the classifier."""
    parts = classifier if isinstance(classifier, tuple) else (classifier,)  # with distillation two
    ours = {id(tensor) for part in parts for tensor in part.parameters()}
    names = [name for name, tensor in network.named_parameters() if id(tensor) in ours]
    return next((stored[name][0] for name in names if stored.get(name)), None)


def _imagenet_names(network: nn.Module, cfg: Any, classes: int) -> tuple[str, ...]:
    """The names of the classes of timm's own weights: WordNet's, as folders have them."""
    from timm.data import ImageNetInfo, infer_imagenet_subset

    stated = cfg.get("label_names")
    if stated and len(stated) == classes:
        return tuple(stated)
    subset = infer_imagenet_subset(network)
    names = tuple(ImageNetInfo(subset).label_names()) if subset else ()
    return names if len(names) == classes else ()
